//! Samples of AWS events from which members were dropped, or in which they were changed, as a transformer of a pipe or a
//! rule may do: no record gets an identity that others could share, and none is acknowledged unprocessed.

use lambda_idempotency::keys::inspect;
use serde_json::{Value, json};

use crate::{
    samples::{everything, samples},
    support::World,
};

/// Members without which an identity is still that of one record, by their ends: not every object has a version, nor every
/// event of a bucket a sequencer, and a change of a whole database has no collection. The offsets of a topic are unique
/// until it is made again.
const OPTIONAL: [&str; 8] = [
    "/s3/object/versionId",
    "/s3/object/eTag",
    "/s3/object/sequencer",
    "/s3/object",
    "/event/ns",
    "/ns/db",
    "/ns/coll",
    "/timestamp",
];

/// The pointers to all members and items of a value.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect()
        }
        _ => return,
    };
    for (name, child) in children {
        let pointer = format!("{at}/{name}");
        pointers(child, &pointer, found);
        found.push(pointer);
    }
}

/// The event with one member removed, renamed or replaced, in each way.
fn mutations(event: &Value, pointer: &str) -> Vec<Value> {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/").replace("~0", "~");
    let mut mutated = Vec::new();
    for other in [Value::Null, json!(""), json!(7), json!({}), json!([])] {
        let mut event = event.clone();
        *event.pointer_mut(pointer).unwrap() = other;
        mutated.push(event);
    }
    let mut removed = event.clone();
    if let Some(Value::Object(members)) = removed.pointer_mut(parent) {
        let value = members.remove(&name).unwrap();
        let mut renamed = removed.clone();
        let members = renamed.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        members.insert(name.to_uppercase(), value);
        mutated.extend([removed, renamed]);
    }
    mutated
}

/// How many records an event has.
fn size(event: &Value) -> usize {
    let lists = |member: &str| -> Option<usize> {
        let lists = event.get(member)?.as_object()?.values();
        Some(lists.map(|list| list.as_array().map_or(1, Vec::len)).sum())
    };
    let list = |member: &str| event.get(member)?.as_array().map(Vec::len);
    event
        .as_array()
        .map(Vec::len)
        .or_else(|| list("Records"))
        .or_else(|| list("messages"))
        .or_else(|| list("events"))
        .or_else(|| lists("records"))
        .or_else(|| lists("rmqMessagesByQueue"))
        .unwrap_or(1)
}

fn identities(event: &Value) -> Vec<Option<Vec<String>>> {
    let records = inspect::event(&event.to_string(), None).unwrap();
    records.into_iter().map(|record| record.identity.ok()).collect()
}

/// Whether a part that was known is not any more.
fn is_weaker(before: &[String], after: &[String]) -> bool {
    after.first() == before.first()
        && (after.len() < before.len()
            || before.iter().zip(after).any(|(b, a)| a.is_empty() && !b.is_empty()))
}

#[tokio::test]
async fn no_change_weakens_an_identity_or_loses_a_record() {
    let (mut tried, mut faults) = (0, Vec::new());
    for (name, text) in samples() {
        if name.contains("aws_lambda_events") || name.contains("s3TestEvent") {
            continue;
        }
        let event: Value = serde_json::from_str(&text).unwrap();
        let before = identities(&event);
        let mut members = Vec::new();
        pointers(&event, "", &mut members);
        for pointer in members {
            for mutated in mutations(&event, &pointer) {
                tried += 1;
                let after = identities(&mutated);
                let is_optional = OPTIONAL.iter().any(|end| pointer.ends_with(end));
                let pairs = before.iter().flatten().zip(after.iter().flatten());
                let weaker = pairs.clone().find(|(before, after)| is_weaker(before, after));
                if let Some(weaker) = weaker.filter(|_| !is_optional) {
                    faults.push(format!("{name} {pointer} weakens {weaker:?}"));
                }

                let world = World::new();
                let function = everything(&world);
                let Ok(answer) = world.invoke(&function, &mutated).await else { continue };
                let named = answer.get("batchItemFailures").and_then(Value::as_array);
                let (called, named) = (world.ledger.total(), named.map_or(0, Vec::len));
                let copies = after.iter().flatten().collect::<std::collections::BTreeSet<_>>();
                let copies = after.iter().flatten().count() - copies.len();
                if called + named + copies < size(&mutated) {
                    faults.push(format!(
                        "{name} {pointer} loses a record: {called}, {answer}, {mutated}"
                    ));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} of {tried}: {:#?}", faults.len(), faults);
    assert!(tried > 3000, "{tried}");
}
