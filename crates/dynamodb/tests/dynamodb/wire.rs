//! The exact content of the requests, and their number.

use std::time::Duration;

use crate::support::{
    Fault, Fixture, PlainVerdict, TABLE, claimed, claims, completed, key, one, owner, plain,
    released, soon, write,
};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use lambda_idempotency_core::{
    browse::Browse as _,
    clock::Timestamp,
    key::Key,
    record::{Fingerprint, IdempotencyRecord, Provenance, Status},
    store::{Guard, RecordVersion, Store, StoreErrorKind, Verdict},
};
use lambda_idempotency_dynamodb::{Attributes, DynamoDbStore};
use serde_json::{Value, json};

const ONE: &str = "00000000000000000000000000000001";

async fn sent(fixture: &Fixture, w: lambda_idempotency_core::store::Write) -> (String, Value) {
    one(&fixture.store(), w).await;
    let mut sent = fixture.wire.take();
    assert_eq!(sent.len(), 1);
    sent.remove(0)
}

#[tokio::test]
async fn a_claim_is_a_put_under_attribute_not_exists() {
    let fixture = Fixture::start().await;
    let (operation, body) = sent(&fixture, write(0, Guard::Absent, Some(claimed(1)))).await;
    assert_eq!(operation, "PutItem");
    assert_eq!(
        body,
        json!({
            "TableName": TABLE,
            "Item": {
                "id": {"S": "op#0"},
                "status": {"S": "INPROGRESS"},
                "expiration": {"N": "4000000000"},
                "in_progress_expiration": {"N": "3900000000123"},
                "owner": {"S": ONE},
            },
            "ConditionExpression": "attribute_not_exists(#id)",
            "ExpressionAttributeNames": {"#id": "id"},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        })
    );
}

#[tokio::test]
async fn a_takeover_is_a_put_that_names_the_whole_record_version() {
    let fixture = Fixture::start().await;
    let seen = Guard::Unchanged(RecordVersion::of(&released(2)));
    let (_, body) = sent(&fixture, write(0, seen, Some(claimed(1)))).await;
    assert_eq!(
        body["ConditionExpression"],
        "#status = :status AND attribute_not_exists(#owner) AND #last_owner = :last_owner AND \
         #lease = :lease AND #expiry = :expiry"
    );
    assert_eq!(
        body["ExpressionAttributeValues"],
        json!({
            ":status": {"S": "INPROGRESS"},
            ":last_owner": {"S": owner(2).to_string()},
            ":lease": {"N": "1"},
            ":expiry": {"N": "4000000000"},
        })
    );
}

#[tokio::test]
async fn an_undo_is_a_delete_under_the_token() {
    let fixture = Fixture::start().await;
    let (operation, body) = sent(&fixture, write(0, Guard::OwnedBy(owner(1)), None)).await;
    assert_eq!(operation, "DeleteItem");
    assert_eq!(
        body,
        json!({
            "TableName": TABLE,
            "Key": {"id": {"S": "op#0"}},
            "ConditionExpression": "#status = :status AND #owner = :owner",
            "ExpressionAttributeNames": {"#status": "status", "#owner": "owner"},
            "ExpressionAttributeValues": {":status": {"S": "INPROGRESS"}, ":owner": {"S": ONE}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        })
    );
}

#[tokio::test]
async fn statements_quote_names_and_carry_no_values() {
    let fixture = Fixture::start().await;
    let mut done = completed(1, "7");
    done.provenance = Some(Provenance::of_texts(Timestamp::EPOCH, |_| None));
    let writes = [
        write(0, Guard::Absent, Some(claimed(1))),
        // The owner that the guard names is there, and the provenance is that of the claim.
        write(1, Guard::OwnedBy(owner(1)), Some(done)),
        write(2, Guard::OwnedBy(owner(1)), None),
        write(3, Guard::Unchanged(RecordVersion::of(&claimed(2))), Some(claimed(1))),
    ];
    fixture.store().write(&writes, soon()).await;
    let (operation, body) = fixture.wire.take().remove(0);
    assert_eq!(operation, "BatchExecuteStatement");
    let statements = body["Statements"].as_array().unwrap();
    let text = |index: usize| statements[index]["Statement"].as_str().unwrap().to_owned();
    assert_eq!(
        statements[0],
        json!({
            "Statement": "INSERT INTO \"idempotency\" VALUE {'id': ?, 'status': ?, \
                          'expiration': ?, 'in_progress_expiration': ?, 'owner': ?}",
            "Parameters": [
                {"S": "op#0"}, {"S": "INPROGRESS"}, {"N": "4000000000"}, {"N": "3900000000123"},
                {"S": ONE},
            ],
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        })
    );
    assert_eq!(
        text(1),
        "UPDATE \"idempotency\" SET \"status\" = ? SET \"expiration\" = ? SET \"data\" = ? \
         REMOVE \"in_progress_expiration\" REMOVE \"steps\" REMOVE \"payload\" REMOVE \"unfinished\" \
         WHERE \"id\" = ? AND \"status\" = ? AND \"owner\" = ?"
    );
    assert_eq!(
        text(2),
        "DELETE FROM \"idempotency\" WHERE \"id\" = ? AND \"status\" = ? AND \"owner\" = ?"
    );
    assert!(
        text(3).ends_with(
            "WHERE \"id\" = ? AND \"status\" = ? AND \"owner\" = ? AND \"last_owner\" IS MISSING \
             AND \"in_progress_expiration\" = ? AND \"expiration\" = ?"
        ),
        "{}",
        text(3)
    );
}

/// Twenty-five to a request, and one read for all claims that failed.
#[tokio::test]
async fn claims_share_requests_and_so_do_duplicates() {
    for (claimants, requests) in [(10, 1), (100, 4)] {
        let fixture = Fixture::start().await;
        let verdicts = fixture.store().write(&claims(claimants), soon()).await;
        assert!(verdicts.iter().all(|v| plain(v) == PlainVerdict::Written));
        assert_eq!(fixture.wire.operations(), vec!["BatchExecuteStatement"; requests]);
        let others = (0..claimants).map(|n| write(n, Guard::Absent, Some(claimed(999))));
        let verdicts = fixture.store().write(&others.collect::<Vec<_>>(), soon()).await;
        for (n, verdict) in verdicts.iter().enumerate() {
            assert_eq!(plain(verdict), PlainVerdict::Found(Some(claimed(n as u128))));
        }
        let sent = fixture.wire.operations();
        assert_eq!(sent[..requests], vec!["BatchExecuteStatement"; requests]);
        assert_eq!(sent[requests..], ["BatchGetItem"]);
    }
}

/// If the answer contains the existing item, the store does not read it again.
#[tokio::test]
async fn late_settlements_are_one_request() {
    let fixture = Fixture::start().await;
    fixture.store().write(&claims(10), soon()).await;
    fixture.wire.take();
    let late: Vec<_> =
        (0..10).map(|n| write(n, Guard::OwnedBy(owner(50)), Some(completed(50, "1")))).collect();
    let verdicts = fixture.store().write(&late, soon()).await;
    assert!(verdicts.iter().all(|v| matches!(v, Verdict::Found(Some(_)))));
    assert_eq!(fixture.wire.operations(), ["BatchExecuteStatement"]);
}

#[tokio::test]
async fn large_records_are_spread_over_requests() {
    let fixture = Fixture::start().await;
    let large = format!("\"{}\"", "x".repeat(350 * 1024));
    let writes: Vec<_> =
        (0..25).map(|n| write(n, Guard::Absent, Some(completed(1, &large)))).collect();
    let verdicts = fixture.store().write(&writes, soon()).await;
    assert!(verdicts.iter().all(|v| plain(v) == PlainVerdict::Written));
    // 11 items of 350 KiB are a little less than 4 MiB.
    assert_eq!(fixture.wire.operations().len(), 3);
}

#[tokio::test]
async fn reads_are_consistent() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    let keys: Vec<Key> = (0..3).map(key).collect();
    store.read(&keys[..1], soon()).await;
    // A key that is there twice is read once, because DynamoDB refuses duplicate keys.
    store.read(&[key(0), key(1), key(0)], soon()).await;
    let sent = fixture.wire.take();
    assert_eq!((sent[0].0.as_str(), &sent[0].1["ConsistentRead"]), ("GetItem", &json!(true)));
    let asked = &sent[1].1["RequestItems"][TABLE];
    assert_eq!(asked["ConsistentRead"], true);
    assert_eq!(asked["Keys"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn unprocessed_keys_are_read_again() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    store.write(&claims(3), soon()).await;
    fixture.wire.take();
    let left = json!({"Responses": {}, "UnprocessedKeys": {TABLE: {
        "ConsistentRead": true, "Keys": [{"id": {"S": "op#1"}}],
    }}});
    fixture.wire.fault([Fault::Instead(200, left)]);
    let keys: Vec<Key> = (0..3).map(key).collect();
    let read = store.read(&keys, soon()).await;
    // The answer above has no items for the other two keys.
    assert!(matches!(&read[..], [Ok(None), Ok(Some(_)), Ok(None)]), "{read:?}");
    assert_eq!(fixture.wire.operations(), ["BatchGetItem", "GetItem"]);
}

#[tokio::test]
async fn the_next_page_is_read_at_once_after_progress_and_with_a_pause_without() {
    let fixture = Fixture::start().await;
    // A pause would last beyond the call's deadline, so that the call would end instead.
    let hour = Duration::from_secs(3600);
    let store = fixture.builder().backoff(hour, hour).build().unwrap();
    let left = |keys: &[&str]| {
        let keys: Vec<_> = keys.iter().map(|key| json!({"id": {"S": key}})).collect();
        let left = json!({"ConsistentRead": true, "Keys": keys});
        Fault::Instead(200, json!({"Responses": {}, "UnprocessedKeys": {TABLE: left}}))
    };
    let keys: Vec<Key> = (0..2).map(key).collect();
    fixture.wire.fault([left(&["op#1"])]);
    let read = store.read(&keys, soon()).await;
    assert!(matches!(&read[..], [Ok(None), Ok(None)]), "{read:?}");
    assert_eq!(fixture.wire.operations(), ["BatchGetItem", "GetItem"]);
    fixture.wire.fault([left(&["op#0", "op#1"])]);
    let read = store.read(&keys, soon()).await;
    for answer in read {
        assert_eq!(answer.unwrap_err().kind(), StoreErrorKind::Throttled);
    }
    assert_eq!(fixture.wire.operations(), ["BatchGetItem"]);
}

#[tokio::test]
async fn the_retries_of_the_client_are_off() {
    let fixture = Fixture::start().await;
    let config = fixture.client.config().to_builder().retry_config(RetryConfig::standard()).build();
    let client = aws_sdk_dynamodb::Client::from_conf(config);
    let store = DynamoDbStore::new(client, TABLE);
    fixture.wire.fault([Fault::LoseAnswer]);
    let verdict = one(&store, write(0, Guard::Absent, Some(claimed(1)))).await;
    assert_eq!(plain(&verdict), PlainVerdict::Written, "the store itself sent it again");
}

#[tokio::test]
async fn other_attribute_names_in_every_request() {
    let fixture = Fixture::with_key("pk 1").await;
    let mut names = Attributes::default();
    names.id = "pk 1".into();
    names.status = "select.status[0]".into();
    names.expiration = "ttl".into();
    names.in_progress_expiration = "#lease".into();
    names.data = ":data?".into();
    names.validation = "größe".into();
    names.owner = "from".into();
    names.last_owner = "where".into();
    names.failed_attempts = "a-b".into();
    names.lost_attempts = "1".into();
    names.consecutive_losses = "in a row".into();
    names.fence = "fence\u{20ac}".into();
    names.error = "$".into();
    names.application = "select".into();
    let store = fixture.builder().attributes(names).build().unwrap();
    let mut full =
        IdempotencyRecord::new(Status::PermanentlyFailed, Timestamp::from_secs(4_000_000_000));
    full.owner = Some(owner(1));
    full.last_owner = Some(owner(2));
    full.failed_attempts = 1;
    full.lost_attempts = 2;
    full.consecutive_losses = 1;
    full.fence = 1_700_000_000_123;
    full.lease_until = Some(Timestamp::from_millis(5));
    full.fingerprint = Some(Fingerprint::new("f"));
    full.result = Some("{}".into());
    full.error_type = Some("E".into());
    full.application = Some("orders-prod".into());
    for count in [1, 3] {
        let mut before = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(1));
        before.owner = Some(owner(count as u128));
        before.fence = full.fence;
        before.fingerprint.clone_from(&full.fingerprint);
        before.application.clone_from(&full.application);
        let keys: Vec<_> = (0..count).map(|n| key(n + 10 * count)).collect();
        let every = |guard: Guard, record: Option<&IdempotencyRecord>| {
            let write = |key: &Key| {
                lambda_idempotency_core::store::Write::new(
                    key.clone(),
                    guard.clone(),
                    record.cloned(),
                )
            };
            keys.iter().map(write).collect::<Vec<_>>()
        };
        for (guard, record) in [
            (Guard::Absent, Some(&before)),
            (Guard::OwnedBy(owner(count as u128)), Some(&full)),
            (Guard::Unchanged(RecordVersion::of(&full)), Some(&before)),
            (Guard::Unchanged(RecordVersion::of(&before)), None),
        ] {
            let verdicts = store.write(&every(guard.clone(), record), soon()).await;
            assert!(
                verdicts.iter().all(|v| plain(v) == PlainVerdict::Written),
                "{guard:?}: {verdicts:?}"
            );
            for read in store.read(&keys, soon()).await {
                assert_eq!(read.unwrap().as_ref(), record);
            }
        }
    }
}

/// A table of another version, or of another library, may have attributes that this one does not know, and values in another
/// encoding. A renewal, a step and a mark leave all of them as they are.
#[tokio::test]
async fn a_write_of_a_part_leaves_everything_else_as_it_is_stored() {
    let mut held = claimed(1);
    (held.steps, held.payload) = (Some("{}".into()), Some(" {\"n\": 1.0}".into()));
    let renewed = |steps: &str| {
        let mut record = held.clone();
        record.expires_at = Timestamp::from_secs(4_000_000_009);
        record.lease_until = Some(Timestamp::from_millis(3_900_000_000_999));
        record.steps = Some(steps.into());
        record
    };
    let mut done = completed(1, "1");
    done.lease_until = held.lease_until;
    let version = |record: &IdempotencyRecord| Guard::Unchanged(RecordVersion::of(record));
    let changed = json!({
        "expiration": {"N": "4000000009"}, "in_progress_expiration": {"N": "3900000000999"},
    });
    for statements in [true, false] {
        for shared in [1, 3] {
            for (name, status, wanted, gone) in [
                ("a renewal", "INPROGRESS", renewed("{}"), None),
                ("a step", "INPROGRESS", renewed("{\"a\":1}"), None),
                ("a mark", "COMPLETED", done.clone(), Some("outbox")),
                ("a mark of a relay", "COMPLETED", done.clone(), Some("outbox")),
            ] {
                let fixture = Fixture::start().await;
                let builder = fixture.builder();
                let builder = if statements { builder } else { builder.without_partiql() };
                let store = builder.build().unwrap();
                let seen = if gone.is_some() { &done } else { &held };
                let stored = |n: usize| {
                    let mut item = json!({
                        "id": {"S": format!("op#{n}")}, "status": {"S": status},
                        "expiration": {"N": "4000000000"},
                        "in_progress_expiration": {"N": "3900000000123"}, "owner": {"S": ONE},
                        "data": {"M": {"big": {"N": "1.50"}, "tags": {"SS": ["x"]}}},
                        "failed_attempts": {"N": "0"}, "steps": {"S": "{}"}, "error": {"S": "E"},
                        "payload": {"S": " {\"n\": 1.0}"}, "outbox": {"S": "[]"},
                        "provenance": {"M": {"claimed_at": {"N": "7"}, "new": {"BOOL": true}}},
                        "of_a_later_version": {"NS": ["1", "2"]},
                    });
                    item["unfinished"] = json!({"S": "messages#01"});
                    item
                };
                (0..shared).for_each(|n| fixture.put(&stored(n)));
                let before: Vec<_> =
                    (0..shared).map(|n| fixture.item(key(n).as_str()).unwrap()).collect();
                if name == "a mark of a relay" {
                    let sent: Vec<_> =
                        (0..shared).map(|n| (key(n), RecordVersion::of(seen))).collect();
                    let answers = store.mark_sent(&sent, soon()).await;
                    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
                } else {
                    let write = |n| write(n, version(seen), Some(wanted.clone()));
                    let writes: Vec<_> = (0..shared).map(write).collect();
                    for verdict in store.write(&writes, soon()).await {
                        assert_eq!(plain(&verdict), PlainVerdict::Written, "{name}");
                    }
                }
                let (requests, operation) = match (statements, shared) {
                    (true, 3) => (1, "BatchExecuteStatement"),
                    _ => (shared, "UpdateItem"),
                };
                assert_eq!(fixture.wire.operations(), vec![operation; requests], "{name}");
                for (n, mut expected) in before.into_iter().enumerate() {
                    let item = expected.as_object_mut().unwrap();
                    if let Some(gone) = gone {
                        item.remove(gone);
                        item.remove("unfinished");
                    } else {
                        item.extend(changed.as_object().unwrap().clone());
                        item.insert("steps".into(), json!({"S": &*wanted.steps.clone().unwrap()}));
                    }
                    let found = fixture.item(key(n).as_str()).unwrap();
                    assert_eq!(found, expected, "{name}, {shared} together, {statements}");
                }
            }
        }
    }
}

/// The guard decides, as in a write of the whole record; and a write whose answer was lost is recognised.
#[tokio::test]
async fn a_write_of_a_part_has_its_guard_and_knows_its_own_work() {
    let fixture = Fixture::start().await;
    let store = fixture.builder().build().unwrap();
    let mut renewed = claimed(1);
    renewed.lease_until = Some(Timestamp::from_millis(3_900_000_000_999));
    let seen = Guard::Unchanged(RecordVersion::of(&claimed(1)));
    let renewal = || write(0, seen.clone(), Some(renewed.clone()));
    assert_eq!(plain(&one(&store, renewal()).await), PlainVerdict::Found(None));
    let mut claim = claimed(1);
    claim.error_type = Some("E".into());
    one(&store, write(0, Guard::Absent, Some(claim.clone()))).await;
    fixture.wire.fault([Fault::LoseAnswer]);
    assert_eq!(plain(&one(&store, renewal()).await), PlainVerdict::Written);
    claim.lease_until = renewed.lease_until;
    assert_eq!(plain(&one(&store, renewal()).await), PlainVerdict::Found(Some(claim)));
    let sent = fixture.wire.operations();
    assert!(sent.iter().filter(|sent| *sent == "UpdateItem").count() == 4, "{sent:?}");
}
