//! The index of what workers have left: what is in it, what a sweep reads, and what does not belong there.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left},
    clock::{Clock, SystemClock},
    key::Key,
    outbox::{MemorySender, Relay},
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, Store, StoreErrorKind, Write},
};
use lambda_idempotency_dynamodb::{DynamoDbStore, SortKey};
use lambda_idempotency_testkit::browse_conformance;
use serde_json::json;

use crate::support::{
    Fault, Fixture, SORTED, TABLE, claimed, completed, delete, key, one, owner, soon, write,
};

const PLENTY: NonZeroUsize = NonZeroUsize::new(100).unwrap();
const MESSAGE: &str = r#"[{"to":"parcels","body":"{}"}]"#;
/// How many requests a sweep sends to the index.
const SHARDS: usize = 64;

fn kept(by: u128) -> IdempotencyRecord {
    let mut record = claimed(by);
    record.payload = Some(r#"{"order":1}"#.into());
    record
}

fn unsent(by: u128) -> IdempotencyRecord {
    let mut record = completed(by, "1");
    record.outbox = Some(MESSAGE.into());
    record
}

fn indexed(fixture: &Fixture) -> DynamoDbStore {
    fixture.builder().index("unfinished").build().unwrap()
}

/// All pages.
async fn left(store: &DynamoDbStore, left: Left, limit: NonZeroUsize) -> Vec<(Key, bool)> {
    let (mut found, mut after) = (Vec::new(), None::<Cursor>);
    loop {
        let page = store.left(left, after.as_ref(), limit, soon()).await.unwrap();
        assert!(page.items.len() <= limit.get());
        found.extend(page.items.into_iter().map(|(key, item)| (key, item.is_ok())));
        after = page.next;
        if after.is_none() {
            found.sort();
            return found;
        }
    }
}

mod with_an_index {
    use super::*;

    async fn store() -> DynamoDbStore {
        indexed(&Fixture::indexed().await)
    }

    browse_conformance!(store);
}

mod with_an_index_and_a_partition_for_each_record {
    use super::*;

    async fn store() -> DynamoDbStore {
        let fixture = Fixture::sorted().await;
        fixture.add_index(SORTED, "unfinished", "unfinished");
        let sort_key = SortKey::derived("sk", "idempotency#");
        fixture.in_sorted(sort_key).index("unfinished").build().unwrap()
    }

    browse_conformance!(store);
}

/// In both ways of writing: one write alone, and several together.
#[tokio::test]
async fn a_record_is_in_the_index_from_the_claim_that_keeps_it_to_the_last_mark() {
    for company in [0, 2] {
        let fixture = Fixture::indexed().await;
        let store = indexed(&fixture);
        let send = async |guard: Guard, record: IdempotencyRecord| {
            let mut writes = vec![write(0, guard, Some(record))];
            for _ in 0..company {
                let other = Key::from_text(format!("op#{:?}", SystemClock.now()));
                writes.push(Write::new(other, Guard::Absent, Some(completed(9, "1"))));
            }
            store.write(&writes, soon()).await;
        };
        let shards = || fixture.item("op#0").unwrap()["unfinished"]["S"].clone();
        send(Guard::Absent, kept(1)).await;
        assert!(shards().as_str().unwrap().starts_with("work#"));
        assert_eq!(left(&store, Left::Work, PLENTY).await, [(key(0), true)]);
        assert_eq!(left(&store, Left::Messages, PLENTY).await, []);
        send(Guard::OwnedBy(owner(1)), unsent(1)).await;
        assert!(shards().as_str().unwrap().starts_with("messages#"));
        assert_eq!(left(&store, Left::Work, PLENTY).await, []);
        assert_eq!(left(&store, Left::Messages, PLENTY).await, [(key(0), true)]);
        send(Guard::Unchanged(RecordVersion::of(&unsent(1))), completed(1, "1")).await;
        assert!(shards().is_null());
        assert_eq!(left(&store, Left::Messages, PLENTY).await, []);
    }
}

/// A step takes the room of the record that a claim keeps: an item that still had it would be too large for both.
#[tokio::test]
async fn a_step_without_the_kept_record_takes_it_from_the_item_and_the_index() {
    for company in [0, 2] {
        let fixture = Fixture::indexed().await;
        let store = indexed(&fixture);
        let claims: Vec<_> =
            (0..=company).map(|n| write(n, Guard::Absent, Some(kept(1)))).collect();
        store.write(&claims, soon()).await;
        let mut step = claimed(1);
        step.steps = Some(r#"{"pay":1}"#.into());
        step.lease_until = step.lease_until.map(|until| until.plus(Duration::from_secs(9)));
        let seen = Guard::Unchanged(RecordVersion::of(&kept(1)));
        let steps: Vec<_> =
            (0..=company).map(|n| write(n, seen.clone(), Some(step.clone()))).collect();
        store.write(&steps, soon()).await;
        assert_eq!(store.read(&[key(0)], soon()).await.remove(0).unwrap(), Some(step));
        assert!(fixture.item("op#0").unwrap()["unfinished"].is_null());
        assert_eq!(left(&store, Left::Work, PLENTY).await, []);
    }
}

/// The functions of a table need not know of its index, nor does a command that changes a record.
#[tokio::test]
async fn a_store_without_the_setting_writes_what_one_with_it_finds() {
    let fixture = Fixture::indexed().await;
    one(&fixture.store(), write(0, Guard::Absent, Some(kept(1)))).await;
    assert_eq!(left(&indexed(&fixture), Left::Work, PLENTY).await, [(key(0), true)]);
}

/// An item of an earlier version has no attribute. A sweep without the index finds it.
#[tokio::test]
async fn an_item_without_the_attribute_is_found_by_a_sweep_over_the_whole_table() {
    let fixture = Fixture::indexed().await;
    fixture.put(&json!({
        "id": { "S": "op#0" },
        "status": { "S": "COMPLETED" },
        "expiration": { "N": "4000000000" },
        "outbox": { "S": MESSAGE },
    }));
    assert_eq!(left(&indexed(&fixture), Left::Messages, PLENTY).await, []);
    assert_eq!(left(&fixture.store(), Left::Messages, PLENTY).await, [(key(0), true)]);
    let sender = Arc::new(MemorySender::new());
    let relay = Relay::new(fixture.store(), Arc::clone(&sender));
    assert_eq!(relay.run(None, soon()).await.unwrap().sent, 1);
    assert_eq!(sender.sent().len(), 1);
}

#[tokio::test]
async fn a_sweep_reads_the_index_and_what_is_in_it() {
    let fixture = Fixture::indexed().await;
    let store = indexed(&fixture);
    for number in 0..200 {
        one(&store, write(number, Guard::Absent, Some(completed(1, "1")))).await;
    }
    for number in 200..203 {
        one(&store, write(number, Guard::Absent, Some(unsent(1)))).await;
    }
    fixture.wire.take();
    let sender = Arc::new(MemorySender::new());
    let relay = Relay::new(store, Arc::clone(&sender));
    let relayed = relay.run(None, soon()).await.unwrap();
    assert_eq!((relayed.swept.examined, relayed.sent, sender.sent().len()), (3, 3, 3));
    let sent = fixture.wire.operations();
    let count = |wanted: &str| sent.iter().filter(|operation| *operation == wanted).count();
    assert_eq!((count("Query"), count("Scan")), (SHARDS, 0), "{sent:?}");
    // Each is read when it is found, and written once.
    assert!(sent.len() <= SHARDS + 3 * 2, "{sent:?}");
    fixture.wire.take();
    let again = relay.run(None, soon()).await.unwrap();
    assert_eq!((again.swept.examined, again.sent), (0, 0));
    assert_eq!(fixture.wire.operations(), ["Query"; SHARDS]);
}

/// A worker has sent the messages of one record, and another was deleted, and the index does not know yet.
#[tokio::test]
async fn an_index_that_is_behind_doubles_nothing() {
    let fixture = Fixture::indexed().await;
    let store = indexed(&fixture);
    fixture.put(&json!({
        "id": { "S": "op#0" },
        "status": { "S": "COMPLETED" },
        "expiration": { "N": "4000000000" },
        "unfinished": { "S": "messages#07" },
    }));
    let sender = Arc::new(MemorySender::new());
    let relay = Relay::new(store.clone(), Arc::clone(&sender));
    let relayed = relay.run(None, soon()).await.unwrap();
    assert_eq!((relayed.swept.examined, relayed.sent, sender.sent().len()), (1, 0, 0));

    one(&store, write(1, Guard::Absent, Some(unsent(1)))).await;
    let shard = fixture.item("op#1").unwrap()["unfinished"]["S"].as_str().unwrap().to_owned();
    let cursor = Cursor::from_text(format!("{} ", shard.split_once('#').unwrap().1));
    let gone = Fault::Before(Box::new(|db| delete(db, "op#1")));
    fixture.wire.fault([Fault::Pass, gone]);
    let page = store.left(Left::Messages, Some(&cursor), PLENTY, soon()).await.unwrap();
    assert!(page.items.is_empty(), "{page:?}");
}

#[tokio::test]
async fn a_foreign_item_in_the_index_is_unreadable_and_keeps_no_other_from_being_found() {
    let fixture = Fixture::indexed().await;
    let store = indexed(&fixture);
    one(&store, write(0, Guard::Absent, Some(kept(1)))).await;
    let shard = fixture.item("op#0").unwrap()["unfinished"].clone();
    fixture.put(&json!({ "id": { "S": "a s3cr3t" }, "unfinished": shard }));
    fixture.put(&json!({ "id": { "S": "elsewhere" }, "unfinished": { "S": "mine" } }));
    let found = left(&store, Left::Work, PLENTY).await;
    assert_eq!(found, [(Key::from_text("a s3cr3t"), false), (key(0), true)]);
    let one = NonZeroUsize::MIN;
    assert_eq!(left(&store, Left::Work, one).await, found);
}

/// Items of others, in other partitions, with the attribute of the index.
#[tokio::test]
async fn an_item_of_another_partition_in_the_index_is_passed_over() {
    for sort_key in [SortKey::new("sk", "orders"), SortKey::derived("sk", "idempotency#")] {
        let fixture = Fixture::sorted().await;
        fixture.add_index(SORTED, "unfinished", "unfinished");
        let store = fixture.in_sorted(sort_key).index("unfinished").build().unwrap();
        one(&store, write(0, Guard::Absent, Some(kept(1)))).await;
        for number in 0..64 {
            let item = json!({
                "id": { "S": "another" },
                "sk": { "S": format!("op#{number}") },
                "unfinished": { "S": format!("work#{number:02}") },
            });
            let put = json!({ "TableName": SORTED, "Item": item });
            fixture.db.put_item(serde_json::from_value(put).unwrap()).unwrap();
        }
        for limit in [NonZeroUsize::MIN, PLENTY] {
            assert_eq!(left(&store, Left::Work, limit).await, [(key(0), true)]);
        }
    }
}

#[tokio::test]
async fn a_missing_index_and_one_with_another_key_are_errors_with_their_remedy() {
    let missing = Fixture::start().await;
    let other = Fixture::start().await;
    other.add_index(TABLE, "unfinished", "somethingElse");
    for fixture in [missing, other] {
        let error = indexed(&fixture).left(Left::Work, None, PLENTY, soon()).await.unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{text}");
        for said in ["index unfinished", "partition key `unfinished` of type S", "whole table"] {
            assert!(text.contains(said), "{text}");
        }
    }
}

/// As DynamoDB answers while it fills a new index, and a role that has no permission for it.
#[tokio::test]
async fn an_index_that_is_being_built_or_is_not_allowed_is_an_error_with_its_remedy() {
    let fixture = Fixture::indexed().await;
    let answer = |code: &str, message: &str| {
        let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
        Fault::Instead(400, json!({ "__type": kind, "message": message }))
    };
    let message = "Cannot read from backfilling global secondary index: unfinished";
    fixture
        .wire
        .fault([answer("ValidationException", message), Fault::error("AccessDeniedException")]);
    let store = indexed(&fixture);
    let building = store.left(Left::Work, None, PLENTY, soon()).await.unwrap_err();
    assert_eq!(building.kind(), StoreErrorKind::Misconfigured, "{building}");
    assert!(building.to_string().contains("has to be active"), "{building}");
    let denied = store.left(Left::Work, None, PLENTY, soon()).await.unwrap_err();
    assert_eq!(denied.kind(), StoreErrorKind::Denied, "{denied}");
    let said = "dynamodb:Query on the index (the ARN of the table, and `/index/unfinished`)";
    assert!(denied.to_string().contains(said), "{denied}");
}

#[tokio::test]
async fn a_throttled_page_is_asked_for_again() {
    let fixture = Fixture::indexed().await;
    let store = indexed(&fixture);
    one(&store, write(0, Guard::Absent, Some(kept(1)))).await;
    let throttled = || Fault::error("ProvisionedThroughputExceededException");
    fixture.wire.fault([throttled(), throttled()]);
    assert_eq!(left(&store, Left::Work, PLENTY).await, [(key(0), true)]);
}

/// `.index(..)` was turned on, or off, between two runs.
#[tokio::test]
async fn a_cursor_of_another_listing_is_refused() {
    let fixture = Fixture::indexed().await;
    let store = indexed(&fixture);
    for number in 0..2 {
        one(&store, write(number, Guard::Absent, Some(unsent(1)))).await;
    }
    let cursor = async |store: &DynamoDbStore| {
        let page = store.left(Left::Messages, None, NonZeroUsize::MIN, soon()).await.unwrap();
        page.next.unwrap()
    };
    for (from, to) in [(&store, &fixture.store()), (&fixture.store(), &store)] {
        let cursor = cursor(from).await;
        let error = to.left(Left::Messages, Some(&cursor), PLENTY, soon()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("begin without one"), "{error}");
    }
    for text in ["op#1", "64 ", ""] {
        let cursor = Cursor::from_text(text);
        let error = store.left(Left::Work, Some(&cursor), PLENTY, soon()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
    }
}

/// The record that is found is written under a guard that names all that was read.
#[tokio::test]
async fn two_relays_that_find_the_same_record_send_with_one_id() {
    let fixture = Fixture::indexed().await;
    let store = indexed(&fixture);
    one(&store, write(0, Guard::Absent, Some(unsent(1)))).await;
    let sender = Arc::new(MemorySender::new());
    let relays =
        [0, 1].map(|_| Relay::new(store.clone(), Arc::clone(&sender)).with_min_age(Duration::ZERO));
    let (one, other) = tokio::join!(relays[0].run(None, soon()), relays[1].run(None, soon()));
    assert!(one.unwrap().sent + other.unwrap().sent >= 1);
    let ids: std::collections::BTreeSet<_> =
        sender.sent().iter().map(|message| message.id().to_owned()).collect();
    assert_eq!(ids.len(), 1);
    let status = fixture.item("op#0").unwrap();
    assert!(status.get("outbox").is_none() && status.get("unfinished").is_none(), "{status}");
    assert_eq!(status["status"]["S"], "COMPLETED");
}
