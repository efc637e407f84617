//! Change streams of DocumentDB: ordered by document, and delivered again as a whole batch.

use lambda_idempotency::{
    Call, Failure, Operation,
    inspect::{self, AnySource},
    source::{DivertedRecord, DocumentDb, KeepOrder},
};
use lambda_runtime::Context;
use serde_json::{Value, json};

use crate::{
    support::{World, diagnostic, without},
    support_streams::{DOCUMENTS, collection, document},
};

/// A handler that does what the changed document says.
fn handler(
    world: &World,
) -> impl Fn(Value, Call) -> lambda_idempotency::store::BoxFuture<'static, Result<(), Failure>>
+ AsyncFn(Value, Call) -> Result<(), Failure>
+ Clone
+ Send
+ Sync
+ 'static {
    let handler = world.handler();
    move |mut change, call| handler(change["fullDocument"].take(), call)
}

/// A dropped collection: this change has no document.
fn dropped(number: u32) -> Value {
    let mut change = document(number, "", "", "");
    let event = change["event"].as_object_mut().unwrap();
    event.retain(|name, _| !["documentKey", "fullDocument"].contains(&name.as_str()));
    event["operationType"] = "drop".into();
    change
}

#[tokio::test]
async fn a_batch_is_delivered_again_whole_and_processed_records_are_replayed() {
    let world = World::new();
    let function =
        world.idempotency().on(DocumentDb::new(), &Operation::new("a"), handler(&world)).unwrap();
    let event = collection([
        document(1, "d-1", "a", "fail once"),
        document(2, "d-1", "b", ""),
        document(3, "d-2", "c", ""),
    ]);
    let (kind, text) = diagnostic(world.invoke(&function, &event).await.unwrap_err());
    assert_eq!(kind, "Idempotency.RecordsReturned");
    assert!(text.contains("2 of 3 documentdb"), "{text}");
    world.ledger.assert_each_once(["c"]);
    world.ledger.assert_never("b");
    assert_eq!(world.invoke(&function, &event).await.unwrap(), Value::Null);
    for _ in 0..2 {
        assert_eq!(world.invoke(&function, &event).await.unwrap(), Value::Null);
        world.ledger.assert_each_once(["a", "b", "c"]);
    }
}

/// The next batch may contain changes of an earlier one; each change has one identity.
#[tokio::test]
async fn the_identity_of_a_change_is_cluster_collection_and_resume_token() {
    let world = World::new();
    let function =
        world.idempotency().on(DocumentDb::new(), &Operation::new("a"), handler(&world)).unwrap();
    let change = document(1, "d-1", "a", "");
    let mut elsewhere = change.clone();
    elsewhere["event"]["ns"]["coll"] = "refunds".into();
    let mut other_cluster = collection([change.clone()]);
    other_cluster["eventSourceArn"] = format!("{DOCUMENTS}-eu").into();
    for (event, executed) in [
        (collection([change.clone()]), 1),
        (collection([change.clone(), change]), 1),
        (collection([elsewhere]), 2),
        (other_cluster, 3),
        (collection([document(2, "d-1", "a", "")]), 4),
    ] {
        world.invoke(&function, &event).await.unwrap();
        assert_eq!(world.ledger.executed("a"), executed);
    }
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
    let function = world.idempotency().on(source, &Operation::new("a"), handler(&world)).unwrap();
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
    let function =
        world.idempotency().on(DocumentDb::new(), &Operation::new("a"), handler(&world)).unwrap();
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
    let function = world.idempotency().on(source, &operation, handler(&world)).unwrap();
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

#[tokio::test]
async fn a_change_without_a_resume_token_needs_a_key() {
    let world = World::new();
    let idempotency = world.idempotency();
    let mut change = document(1, "d-1", "a", "");
    change["event"] = without(change["event"].take(), "_id");
    let event = collection([change]);
    let plain = idempotency.on(DocumentDb::new(), &Operation::new("a"), handler(&world)).unwrap();
    let (_, text) = diagnostic(world.invoke(&plain, &event).await.unwrap_err());
    assert!(text.contains("_id._data") && text.contains(".key("), "{text}");
    assert_eq!(world.ledger.total(), 0);
}

#[tokio::test]
async fn a_cluster_filter_accepts_its_name_or_arn() {
    let world = World::new();
    let event = collection([document(1, "d-1", "a", "")]);
    for (cluster, taken) in [
        ("shop", true),
        (DOCUMENTS, true),
        ("orders", false),
        ("arn:aws:rds:eu-west-1:1:cluster:shop", false),
    ] {
        let source = DocumentDb::new().cluster(cluster);
        let function =
            world.idempotency().on(source, &Operation::new("a"), handler(&world)).unwrap();
        assert_eq!(world.invoke(&function, &event).await.is_ok(), taken, "{cluster}");
    }
    let function =
        world.idempotency().on(DocumentDb::new(), &Operation::new("b"), handler(&world)).unwrap();
    assert_eq!(world.invoke(&function, &collection([])).await.unwrap(), Value::Null);
}
