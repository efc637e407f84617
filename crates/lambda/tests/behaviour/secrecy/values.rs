//! Values that no delivery shows: documents, keys, producers, stored records, and what stores answer.

use lambda_idempotency::{
    MemoryStore,
    clock::Timestamp,
    keys::{
        KeyFormat, Secret, payload,
        powertools::PowertoolsKeys,
        producer::{Key, KeySpec},
    },
};
use lambda_idempotency_core::{
    admission::{Claim, Settlement, admit},
    record::{Fingerprint, IdempotencyRecord, Json, Owner, Status},
    store::{Guard, RecordVersion, Store, Verdict, Write},
};
use lambda_idempotency_keys::Document;
use lambda_idempotency_testkit::faults::{Fault, FaultyStore};
use serde_json::json;

use super::capture::{CANARY, Captured};

/// Expressions that select, decode and fail, on a document that consists of canaries.
const EXPRESSIONS: &str = "id; none; empty; nowhere; [id, nowhere]; {a: id, b: none}; json(text); json(id); json(b64); \
                           list[*].a; list[*]; object.[a, b]; powertools_json(text); powertools_base64(id); \
                           powertools_base64_gzip(b64); base64(id); base64(n); base64_gzip(id); n; length(id); id == 'a'";

#[test]
fn keys_of_producers() {
    let captured = Captured::default();
    let text = json!({
        "id": CANARY, "list": [CANARY, 1, null], "none": null, "empty": "", "n": 0.1,
        "object": { "a": CANARY }, "text": format!("{{\"{CANARY}\": "), "b64": "YzRuNHJ5",
    });
    let bodies = [
        text.to_string(),
        format!("{{\"{CANARY}\""),
        format!("{{\"id\":1,\"id\":\"{CANARY}\"}}"),
        CANARY.to_owned(),
        format!("{{\"{CANARY}\": 1e999, \"n\":0.1000000000000000055}}"),
        format!("[\"{CANARY}\\q\"]"),
    ];
    let secret = KeyFormat::Secret(Secret::new(CANARY.repeat(8)).unwrap());
    let ways: [&dyn Fn(KeySpec) -> KeySpec; 5] = [
        &|spec| spec.key_format(KeyFormat::Readable),
        &|spec| spec.key_format(secret.clone()),
        &|spec| spec.powertools(PowertoolsKeys::python("p")),
        &|spec| spec.powertools(PowertoolsKeys::typescript("t").accept_collisions()),
        &|_| KeySpec::without_key("op").key_fn(|_| Err("it is refused")),
    ];
    for (way, expression) in
        ways.into_iter().flat_map(|way| EXPRESSIONS.split("; ").map(move |it| (way, it)))
    {
        let spec = way(KeySpec::new("op", payload(expression)));
        captured.debug(&spec);
        let producer = match spec.producer() {
            Ok(producer) => producer.for_tenant(CANARY),
            Err(error) => {
                captured.error(&error);
                continue;
            }
        };
        captured.debug(&producer);
        for body in &bodies {
            match producer.message_of(body.clone()) {
                Ok(message) => captured.debug(&message),
                Err(error) => captured.error(&error),
            }
        }
        captured.error(&producer.key_of_bytes(&[CANARY.as_bytes(), &[0xff]].concat()).unwrap_err());
        let odd = std::collections::BTreeMap::from([((CANARY, 1), CANARY)]);
        captured.error(&producer.message(&odd).unwrap_err());
    }
    captured.debug(&Document::parse(&bodies[0]).unwrap());
    captured.error(&Secret::new(CANARY).unwrap_err());
    captured.assert_silent(
        "KeySpec {|Producer {|Message {|Document|Secret|part 2 of it|as a string|refused|at line",
    );
}

#[tokio::test]
async fn stored_records_and_answers_of_stores() {
    let captured = Captured::default();
    let json = || Json::from(format!("\"{CANARY}\""));
    let key = Key::from_text(format!("charge#~/{CANARY}"));
    let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
    record.owner = Some(Owner::from_bits(1));
    record.fingerprint = Some(Fingerprint::new("1f38"));
    (record.result, record.steps) = (Some(json()), Some(json()));
    (record.outbox, record.payload) = (Some(json()), Some(json()));
    let mut sent = record.clone();
    sent.outbox = None;
    let claim = Claim {
        owner: Owner::from_bits(2),
        lease_until: Timestamp::from_secs(60),
        retention: std::time::Duration::from_secs(60),
        clock_skew: std::time::Duration::from_secs(1),
        fingerprint: None,
        application: None,
        provenance: None,
        payload: Some(json()),
    };
    let (_, held) = claim.over(None, Timestamp::EPOCH);
    let complete = Settlement::Complete { result: Some(json()), outbox: Some(json()) };
    captured.debug(&Settlement::FailPermanently { result: Some(json()), error_type: "E".into() });
    for found in [None, Some(&record), Some(&sent)] {
        captured.debug(&held.settled(&complete, found, Timestamp::EPOCH));
        captured.debug(&admit(&claim, found, Timestamp::EPOCH));
    }
    captured.debug(&(claim, held, complete));
    let store = FaultyStore::new(MemoryStore::new());
    store.inject(Fault::lose_answer());
    let guard = Guard::Unchanged(RecordVersion::of(&record));
    let writes = [guard, Guard::Absent, Guard::Absent];
    for write in writes.map(|guard| Write::new(key.clone(), guard, Some(record.clone()))) {
        captured.debug(&write);
        captured.debug(&store.write(std::slice::from_ref(&write), Timestamp::EPOCH).await);
    }
    captured.debug(&(Verdict::Found(Some(record)), store.history(), store));
    captured.assert_silent("Overtaken|Completed|Found|Unknown|MemoryStore|charge#");
}

#[test]
#[should_panic(expected = "left: Some")]
fn a_leak_is_found() {
    let captured = Captured::default();
    let guard = captured.start();
    tracing::trace!(note = ?CANARY.as_bytes(), "at the lowest level");
    drop(guard);
    captured.assert_silent("at the lowest level");
}
