//! Change streams of DocumentDB: ordered by document, and delivered again as a whole batch.

use lambda_idempotency::{
    Failure, Operation,
    handler::Handler,
    keys::inspect::{self, AnySource},
    source::{DivertedRecord, DocumentDb, KeepOrder},
};
use lambda_runtime::Context;
use serde_json::{Value, json};

use crate::{
    support::World,
    support_streams::{collection, document},
};

/// A handler that does what the changed document says.
fn handler(world: &World) -> impl Handler<Value, Result<(), Failure>> {
    let handler = world.handler();
    async move |mut change: Value, call| handler(change["fullDocument"].take(), call).await
}
/// A dropped collection: this change has no document.
fn dropped(number: u32) -> Value {
    let mut change = document(number, "", "", "");
    let event = change["event"].as_object_mut().unwrap();
    event.retain(|name, _| !["documentKey", "fullDocument"].contains(&name.as_str()));
    event["operationType"] = "drop".into();
    change
}

#[test]
fn changes_of_one_document_wait_for_each_other() {
    let mut spaced = document(2, "", "b", "");
    spaced["event"]["documentKey"] = json!({ "_id": { "$oid": "d-1" } });
    let event = collection([document(1, "d-1", "a", ""), spaced, document(3, "d-2", "c", "")]);
    let groups = |event: &Value, source: &AnySource| -> Vec<_> {
        let none = Context::default();
        let records = inspect::invocation(&event.to_string(), source, None, &none).unwrap();
        records.into_iter().map(|record| record.group.unwrap()).collect()
    };
    let by_document = groups(&event, &AnySource::new());
    assert_eq!(by_document[0], by_document[1]);
    assert_ne!(by_document[0], by_document[2]);
    let all = groups(&event, &AnySource::new().order(KeepOrder::Shard));
    assert!(all.iter().all(|group| *group == all[0]), "{all:?}");
    // A change of the collection concerns all of its documents.
    let with_drop =
        collection([document(1, "d-1", "a", ""), dropped(2), document(3, "d-2", "c", "")]);
    let all = groups(&with_drop, &AnySource::new());
    assert!(all.iter().all(|group| *group == all[0]), "{all:?}");
}

#[tokio::test]
async fn with_order_none_later_changes_do_not_wait_for_a_failed_one() {
    let world = World::new();
    let source = DocumentDb::new().order(KeepOrder::None);
    let function = world.with_handler(source, &Operation::new("a"), handler(&world));
    let event =
        collection([document(1, "d-1", "a", "fail once"), dropped(2), document(3, "d-1", "b", "")]);
    world.invoke(&function, &event).await.unwrap_err();
    world.ledger.assert_each_once(["nobody", "b"]);
    assert_eq!(world.invoke(&function, &event).await.unwrap(), Value::Null);
    world.ledger.assert_each_once(["a", "nobody", "b"]);
}

#[tokio::test]
async fn after_a_failure_a_batch_with_a_dropped_collection_stops() {
    let world = World::new();
    let function = world.with_handler(DocumentDb::new(), &Operation::new("a"), handler(&world));
    let event =
        collection([document(1, "d-1", "a", "fail once"), dropped(2), document(3, "d-2", "c", "")]);
    world.invoke(&function, &event).await.unwrap_err();
    assert_eq!(world.ledger.total(), 0);
    assert_eq!(world.invoke(&function, &event).await.unwrap(), Value::Null);
    world.ledger.assert_each_once(["a", "nobody", "c"]);
}

/// Retries have no limit, so a change that never succeeds would stop the stream until it expires.
#[tokio::test]
async fn changes_that_never_succeed_can_be_put_aside() {
    let world = World::new();
    let aside = world.ledger.clone();
    let operation = Operation::new("a").key("fullDocument.id").max_failed_attempts(2);
    let source = DocumentDb::new().divert(move |diverted: DivertedRecord| {
        aside.record(format!("aside {}", diverted.record.id), "");
        async { Ok::<_, Failure>(()) }
    });
    let function = world.with_handler(source, &operation, handler(&world));
    let event = collection([
        document(1, "d-1", "a", "fail"),
        json!({ "event": { "documentKey": {}, "_id": { "_data": "t-2" } } }),
        json!({ "documentKey": {} }),
        document(3, "d-2", "c", ""),
    ]);
    world.invoke(&function, &event).await.unwrap_err();
    assert_eq!(world.invoke(&function, &event).await.unwrap(), Value::Null);
    let first = event["events"][0]["event"]["_id"]["_data"].as_str().unwrap();
    world.ledger.assert_each_once([&format!("aside {first}"), "aside t-2", "aside ", "c"]);
}
