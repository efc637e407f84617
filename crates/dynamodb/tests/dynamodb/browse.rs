//! Browsing a table: all pages, foreign items, one partition of a table with a sort key.

use std::{collections::BTreeSet, num::NonZeroUsize, time::Duration};

use crate::support::{Fault, Fixture, SORTED, TABLE, claimed, completed, key, soon, write};
use futures_util::future::{Either, join_all, select};
use lambda_idempotency_core::{
    browse::{Browse as _, Left},
    clock::{Clock as _, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Status},
    store::{Guard, Store as _, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_dynamodb::{DynamoDbStore, SortKey};
use lambda_idempotency_testkit::{browse_conformance, clock::ManualClock};
use serde_json::{Value, json};

browse_conformance!(|| async { Fixture::start().await.store() });

const PLENTY: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

#[tokio::test]
async fn an_item_that_is_not_a_record_does_not_fail_the_page() {
    let fixture = Fixture::start().await;
    let record = IdempotencyRecord::new(Status::Completed, soon());
    let write = Write::new(key(1), Guard::Absent, Some(record.clone()));
    fixture.store().write(&[write], soon()).await;
    fixture.put(&json!({ "id": { "S": "settings" }, "colour": { "S": "s3cr3t" } }));
    let page = fixture.store().page(None, PLENTY, soon()).await.unwrap();
    assert_eq!((page.items.len(), &page.next), (2, &None));
    for (key, found) in page.items {
        if key.as_str() == "settings" {
            let error = found.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
            assert!(!format!("{error} {error:?}").contains("s3cr3t"));
        } else {
            assert_eq!(found.unwrap(), record);
        }
    }
    assert_eq!(fixture.store().count(soon()).await.unwrap(), 2);
}

/// The names of the attributes that a request asks for.
fn projected(request: &Value) -> BTreeSet<String> {
    let names = &request["ExpressionAttributeNames"];
    let asked = request["ProjectionExpression"].as_str().unwrap().split(", ");
    asked.map(|alias| names[alias].as_str().unwrap().to_owned()).collect()
}

/// Nothing that is not shown or needed is read: no result of any listing, of a sweep only the text that is left.
#[tokio::test]
async fn a_listing_is_a_consistent_scan_with_a_limit_and_without_results() {
    const TEXTS: [&str; 4] = ["data", "steps", "outbox", "payload"];
    let five = NonZeroUsize::new(5).unwrap();
    let mut record = completed(1, "1");
    (record.steps, record.outbox) = (Some("{}".into()), Some("[]".into()));
    let mut kept = claimed(1);
    kept.payload = Some("{}".into());
    let fixture = Fixture::indexed().await;
    let writes = [
        write(0, Guard::Absent, Some(record.clone())),
        write(1, Guard::Absent, Some(record)),
        write(2, Guard::Absent, Some(kept)),
    ];
    fixture.store().write(&writes, soon()).await;
    let indexed = fixture.builder().index("unfinished").build().unwrap();
    let sorted = Fixture::sorted().await;
    let in_partition = sorted.in_sorted(SortKey::new("sk", "orders")).build().unwrap();
    let derived = sorted.in_sorted(SortKey::derived("sk", "idempotency#")).build().unwrap();
    for (store, wire, operation) in [
        (fixture.store(), &fixture.wire, "Scan"),
        (in_partition, &sorted.wire, "Query"),
        (derived, &sorted.wire, "Scan"),
        (indexed, &fixture.wire, "GetItem"),
    ] {
        let listings: [(Option<Left>, &[&str]); 3] = [
            (None, &["steps", "outbox"]),
            (Some(Left::Messages), &["outbox"]),
            (Some(Left::Work), &["payload"]),
        ];
        for (left, texts) in listings {
            wire.take();
            let mut after = None;
            loop {
                let page = match left {
                    None => store.page(after.as_ref(), five, soon()).await.unwrap(),
                    Some(left) => store.left(left, after.as_ref(), five, soon()).await.unwrap(),
                };
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let sent = wire.take();
            let read = sent.iter().filter(|(sent, _)| sent == operation);
            let requests: Vec<_> = read.map(|(_, body)| body).collect();
            assert_eq!(requests.is_empty(), operation == "GetItem" && left.is_none(), "{sent:?}");
            for request in requests {
                assert_eq!(request["ConsistentRead"], true);
                let asked = projected(request);
                let of_texts = TEXTS.into_iter().filter(|text| asked.contains(*text));
                assert_eq!(of_texts.collect::<Vec<_>>(), texts, "{operation} {left:?}");
                for needed in ["id", "status", "owner", "expiration", "provenance", "application"] {
                    assert!(asked.contains(needed), "{operation} {left:?}: {asked:?}");
                }
            }
        }
    }
    fixture.wire.take();
    fixture.store().count(soon()).await.unwrap();
    let counted = json!({ "TableName": TABLE, "ConsistentRead": true, "Select": "COUNT" });
    assert_eq!(fixture.wire.take(), [("Scan".to_owned(), counted)]);
}

/// Records of which one is as large as DynamoDB allows. The index is asked once for each page, and the table for the records
/// that have room.
#[tokio::test]
async fn a_page_of_the_index_ends_at_some_megabytes() {
    let fixture = Fixture::indexed().await;
    let store = fixture.builder().index("unfinished").build().unwrap();
    let payload = format!("\"{}\"", "x".repeat(380 * 1024));
    let is_in_first_shard = |key: &Key| {
        let mix = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(16_777_619);
        let sum = key.as_str().bytes().fold(2_166_136_261, mix);
        (sum ^ (sum >> 16)) % 64 == 0
    };
    let mut all: Vec<_> = (0..4000).map(key).filter(is_in_first_shard).take(30).collect();
    for some in all.chunks(5) {
        let claim = |key: &Key| {
            let mut record = claimed(1);
            record.payload = Some(payload.as_str().into());
            Write::new(key.clone(), Guard::Absent, Some(record))
        };
        store.write(&some.iter().map(claim).collect::<Vec<_>>(), soon()).await;
    }
    fixture.wire.take();
    let first = store.left(Left::Work, None, PLENTY, soon()).await.unwrap();
    assert_eq!(fixture.wire.operations(), ["Query", "BatchGetItem"]);
    assert_eq!(first.items.len(), 25);
    let rest = store.left(Left::Work, first.next.as_ref(), PLENTY, soon()).await.unwrap();
    let mut keys: Vec<_> = first.items.into_iter().chain(rest.items).map(|(key, _)| key).collect();
    keys.sort();
    all.sort();
    assert_eq!(keys, all);
}

/// A table with a sort key may hold other items in other partitions.
#[tokio::test]
async fn with_a_sort_key_one_partition_is_listed() {
    let fixture = Fixture::sorted().await;
    let store =
        |partition: &'static str| fixture.in_sorted(SortKey::new("sk", partition)).build().unwrap();
    for (partition, count) in [("orders", 5), ("payments", 3)] {
        for number in 0..count {
            let record = Some(IdempotencyRecord::new(Status::Completed, soon()));
            let write = Write::new(key(number), Guard::Absent, record);
            store(partition).write(&[write], soon()).await;
        }
    }
    let (orders, two) = (store("orders"), NonZeroUsize::new(2).unwrap());
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let page = orders.page(after.as_ref(), two, soon()).await.unwrap();
        keys.extend(page.items.into_iter().map(|(key, _)| key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(keys, (0..5).map(key).collect::<Vec<_>>());
    assert_eq!(orders.count(soon()).await.unwrap(), 5);
    assert_eq!(store("payments").count(soon()).await.unwrap(), 3);
}

mod in_derived_partitions {
    use super::*;

    /// Beside other items, of which some have a similar primary key.
    async fn store() -> DynamoDbStore {
        let fixture = Fixture::sorted().await;
        for number in 0..20 {
            fixture.put_sorted(&format!("order#{number}"), &format!("op#{number}"));
        }
        fixture.in_sorted(SortKey::derived("sk", "idempotency#")).build().unwrap()
    }

    browse_conformance!(store);
}

#[tokio::test]
async fn with_derived_partitions_no_item_of_another_is_listed() {
    let fixture = Fixture::sorted().await;
    let store = fixture.in_sorted(SortKey::derived("sk", "idempotency#")).build().unwrap();
    for number in 0..5 {
        let record = Some(IdempotencyRecord::new(Status::Completed, soon()));
        store.write(&[Write::new(key(number), Guard::Absent, record)], soon()).await;
        fixture.put_sorted(&format!("order#{number}"), "idempotency#");
    }
    fixture.put_sorted("idempotency#op#1", "other");
    let page = store.page(None, PLENTY, soon()).await.unwrap();
    let mut keys: Vec<_> = page.items.into_iter().map(|(key, _)| key).collect();
    keys.sort();
    assert_eq!(keys, (0..5).map(key).collect::<Vec<_>>());
    let stored = fixture.db.get_item(
        serde_json::from_value(json!({
            "TableName": SORTED,
            "Key": { "id": { "S": "idempotency#op#3" }, "sk": { "S": "op#3" } },
        }))
        .unwrap(),
    );
    assert!(stored.unwrap().item.is_some(), "each has a partition of its own");
}

/// Each request costs a read unit at least, and a round trip.
#[tokio::test]
async fn with_derived_partitions_a_short_page_does_not_read_item_by_item() {
    let fixture = Fixture::sorted().await;
    let store = fixture.in_sorted(SortKey::derived("sk", "idempotency#")).build().unwrap();
    for number in 0..5 {
        let record = Some(IdempotencyRecord::new(Status::Completed, soon()));
        store.write(&[Write::new(key(number), Guard::Absent, record)], soon()).await;
    }
    for number in 0..100 {
        fixture.put_sorted(&format!("order#{number}"), "a");
    }
    fixture.wire.take();
    let (mut keys, mut after, two) = (Vec::new(), None, NonZeroUsize::new(2).unwrap());
    loop {
        let page = store.page(after.as_ref(), two, soon()).await.unwrap();
        assert!(page.items.len() <= 2);
        keys.extend(page.items.into_iter().map(|(key, _)| key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    keys.sort();
    assert_eq!(keys, (0..5).map(key).collect::<Vec<_>>());
    assert_eq!(fixture.wire.take().len(), 3, "a request for each page");
}

/// The cursor could not name an item, and what is not seen must not look as if it did not exist.
#[tokio::test]
async fn a_table_with_another_key_is_an_error_and_not_an_empty_page() {
    let fixture = Fixture::with_key("pk").await;
    fixture.put(&json!({ "pk": { "S": "a" }, "status": { "S": "COMPLETED" } }));
    let error = fixture.store().page(None, PLENTY, soon()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");

    let fixture = Fixture::sorted().await;
    for sort in ["a", "b"] {
        fixture.put_sorted("one", sort);
    }
    let store = DynamoDbStore::builder(fixture.client.clone(), SORTED).build().unwrap();
    let one = NonZeroUsize::new(1).unwrap();
    let error = store.page(None, one, soon()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
}

/// Reading a table is throttled for long, and a program that does it may process records as well.
#[tokio::test]
async fn a_listing_that_pauses_holds_no_slot() {
    for has_index in [false, true] {
        let fixture = Fixture::indexed().await;
        let clock = ManualClock::new(Timestamp::from_secs(1_000));
        let builder = fixture.builder().clock(clock.clone());
        let builder = if has_index { builder.index("unfinished") } else { builder };
        let (store, late) = (builder.build().unwrap(), clock.now().plus(Duration::from_secs(20)));
        let refused = || Fault::error("ProvisionedThroughputExceededException");
        fixture.wire.fault((0..20).map(|_| refused()));
        let listings = (0..20).map(|_| store.left(Left::Work, None, PLENTY, late));
        let claim = async {
            let mut sent = 0;
            while sent < 20 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                sent += fixture.wire.operations().len();
            }
            store.write(&[write(1, Guard::Absent, Some(claimed(1)))], late).await
        };
        // The clock stands still, so all of them pause for ever.
        let both = select(Box::pin(claim), join_all(listings));
        let both = tokio::time::timeout(Duration::from_secs(120), both).await;
        let Either::Left((verdicts, _)) = both.expect("it waits") else { panic!("a listing ends") };
        assert!(matches!(*verdicts, [Verdict::Written]), "{verdicts:?}");
    }
}
