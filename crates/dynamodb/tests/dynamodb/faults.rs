//! Throttling and refusals, and their errors.

use std::{error::Error, time::Duration};

use crate::support::{
    Fault, Fixture, PlainVerdict, TABLE, claimed, claims, completed, delete, one, owner, plain,
    put, soon, unknown, write,
};
use futures_util::future::join;
use lambda_idempotency_core::{
    clock::{Clock, SystemClock, Timestamp},
    key::Key,
    store::{Guard, Store, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_dynamodb::DynamoDbStore;
use lambda_idempotency_testkit::clock::ManualClock;
use serde_json::json;

#[tokio::test]
async fn throttled_members_are_sent_again_without_the_others() {
    let codes = [
        "ThrottlingError",
        "ProvisionedThroughputExceeded",
        "RequestLimitExceeded",
        "TransactionConflict",
    ];
    for code in codes {
        let fixture = Fixture::start().await;
        fixture.wire.fault([Fault::Refuse(vec![1, 3, 4], code), Fault::Refuse(vec![0], code)]);
        let verdicts = fixture.store().write(&claims(10), soon()).await;
        assert!(verdicts.iter().all(|v| plain(v) == PlainVerdict::Written), "{verdicts:?}");
        let sent = fixture.wire.take();
        let sizes: Vec<_> =
            sent.iter().map(|(_, body)| body["Statements"].as_array().map(Vec::len)).collect();
        // The last throttled write is sent alone.
        assert_eq!(sizes, [Some(10), Some(3), None], "{code}");
        assert_eq!(sent[2].0, "PutItem");
    }
}

#[tokio::test]
async fn a_throttled_request_is_sent_again() {
    for code in ["ThrottlingException", "ProvisionedThroughputExceededException"] {
        for count in [1, 10] {
            let fixture = Fixture::start().await;
            fixture.wire.fault([Fault::error(code), Fault::error(code)]);
            let verdicts = fixture.store().write(&claims(count), soon()).await;
            assert!(verdicts.iter().all(|v| plain(v) == PlainVerdict::Written), "{verdicts:?}");
            assert_eq!(fixture.wire.take().len(), 3);
        }
    }
}

/// In simulated time: the wire refuses at once, so only the pauses take any.
#[tokio::test]
async fn throttling_until_the_deadline_is_a_throttled_error() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let store = fixture.builder().clock(clock.clone()).build().unwrap();
    let soon = || clock.now().plus(Duration::from_millis(400));
    for count in [1, 3] {
        fixture.wire.fault((0..500).map(|_| Fault::error("ThrottlingException")));
        let (claims, ends) = (claims(count), soon());
        for verdict in clock.drive(store.write(&claims, ends)).await {
            let error = unknown(verdict);
            assert_eq!(error.kind(), StoreErrorKind::Throttled);
            assert!(error.is_transient() && !error.may_have_applied());
        }
        assert!(ends.since(clock.now()) <= Duration::from_millis(24), "a pause and a request");
        // The pauses are 1, 2 and then 4 ms, of which a half is random.
        let requests = fixture.wire.take().len();
        assert!((90..=190).contains(&requests), "{requests}");
    }
    let read = clock.drive(store.read(&[crate::support::key(0)], soon())).await.pop().unwrap();
    assert_eq!(read.unwrap_err().kind(), StoreErrorKind::Throttled);
}

/// An `INSERT` that is refused in a batch does not say which record it met. Then the record is read, and this may fail.
#[tokio::test]
async fn a_write_that_was_refused_is_not_in_doubt_if_what_it_met_cannot_be_read() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let limit = Duration::from_millis(500);
    let store = fixture.builder().clock(clock.clone()).attempt_timeout(limit).build().unwrap();
    let late = clock.now().plus(limit);
    fixture.put(&json!({"id": {"S": "op#0"}, "status": {"S": "INPROGRESS"}}));
    fixture.wire.fault([Fault::Pass, Fault::Hang]);
    let claims = claims(2);
    let time = async {
        while fixture.wire.signed().len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for _ in 0..=limit.as_millis() {
            clock.advance(Duration::from_millis(1));
            tokio::task::yield_now().await;
        }
    };
    let (verdicts, ()) = join(store.write(&claims, late), time).await;
    let [refused, written] = <[Verdict; 2]>::try_from(verdicts).unwrap();
    assert_eq!(plain(&written), PlainVerdict::Written);
    let error = unknown(refused);
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(!error.may_have_applied(), "{error}");
}

#[tokio::test]
async fn after_the_deadline_nothing_is_sent() {
    let fixture = Fixture::start().await;
    for verdict in fixture.store().write(&claims(3), Timestamp::EPOCH).await {
        let error = unknown(verdict);
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert!(!error.may_have_applied(), "nothing was sent: {error}");
    }
    let read = fixture.store().read(&[crate::support::key(0)], Timestamp::EPOCH).await;
    assert!(read[0].is_err());
    assert_eq!(fixture.wire.operations(), [""; 0]);
}

#[tokio::test]
async fn a_denied_request_names_the_permission_that_the_role_needs() {
    let fixture = Fixture::start().await;
    fixture.wire.fault([Fault::error("AccessDeniedException")]);
    let error = unknown(one(&fixture.store(), claims(1).remove(0)).await);
    assert_eq!(error.kind(), StoreErrorKind::Denied);
    assert!(!error.is_transient());
    assert_eq!(
        error.to_string(),
        "access to the store denied: PutItem on DynamoDB table idempotency: the role needs \
         dynamodb:PutItem on the table"
    );
    assert_eq!(error.source().unwrap().to_string(), "AccessDeniedException: it says so");

    fixture.wire.fault([Fault::error("AccessDeniedException")]);
    let mut writes = claims(2);
    writes.push(write(2, Guard::OwnedBy(owner(2)), None));
    for verdict in fixture.store().write(&writes, soon()).await {
        let text = unknown(verdict).to_string();
        assert!(
            text.contains("dynamodb:PartiQLDelete, dynamodb:PartiQLInsert on the table")
                || text.contains("dynamodb:PartiQLDelete, dynamodb:PartiQLInsert (or"),
            "{text}"
        );
    }
    assert_eq!(fixture.wire.operations(), ["PutItem", "BatchExecuteStatement"]);
}

#[tokio::test]
async fn a_denied_write_does_not_affect_others_of_its_batch() {
    let fixture = Fixture::start().await;
    fixture.wire.fault([Fault::Refuse(vec![1], "AccessDenied")]);
    let mut verdicts = fixture.store().write(&claims(3), soon()).await;
    let error = unknown(verdicts.remove(1));
    assert_eq!(error.kind(), StoreErrorKind::Denied);
    assert!(error.to_string().contains("dynamodb:PartiQLInsert"), "{error}");
    assert!(verdicts.iter().all(|v| plain(v) == PlainVerdict::Written));
}

#[tokio::test]
async fn a_missing_table_is_named_with_its_region() {
    let fixture = Fixture::start().await;
    let store = DynamoDbStore::new(fixture.client.clone(), "orderz");
    for count in [1, 2] {
        for verdict in store.write(&claims(count), soon()).await {
            let error = unknown(verdict);
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
            let text = error.to_string();
            assert!(text.contains("table orderz does not exist in region eu-west-1"), "{text}");
        }
    }
    let error = store.read(&[crate::support::key(0)], soon()).await.pop().unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
}

#[tokio::test]
async fn a_table_with_another_key_is_misconfigured() {
    let fixture = Fixture::with_key("pk").await;
    for count in [1, 2] {
        for verdict in fixture.store().write(&claims(count), soon()).await {
            let error = unknown(verdict);
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
            assert!(error.to_string().contains("partition key `id`"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_refused_statement_is_sent_as_a_single_write() {
    let fixture = Fixture::start().await;
    fixture.wire.fault([Fault::Refuse(vec![1], "ValidationError")]);
    let verdicts = fixture.store().write(&claims(3), soon()).await;
    assert!(verdicts.iter().all(|v| plain(v) == PlainVerdict::Written), "{verdicts:?}");
    assert_eq!(fixture.wire.operations(), ["BatchExecuteStatement", "PutItem"]);
}

#[tokio::test]
async fn a_write_that_is_too_large_is_not_sent() {
    let fixture = Fixture::start().await;
    let huge = format!("\"{}\"", "x".repeat(400 * 1024));
    let large = format!("\"{}\"", "x".repeat(400 * 1024 - 200));
    for (count, operation) in [(1, None), (3, Some("BatchExecuteStatement"))] {
        let mut writes = claims(count);
        writes[0].record = Some(completed(1, &huge));
        let mut verdicts = fixture.store().write(&writes, soon()).await;
        let error = unknown(verdicts.remove(0));
        assert_eq!(error.kind(), StoreErrorKind::TooLarge);
        assert!(!format!("{error:?}").contains("xxx"));
        assert!(verdicts.iter().all(|v| plain(v) == PlainVerdict::Written));
        assert_eq!(fixture.wire.operations(), Vec::from_iter(operation));
    }
    let fits = write(7, Guard::Absent, Some(completed(1, &large)));
    assert_eq!(plain(&one(&fixture.store(), fits).await), PlainVerdict::Written);
}

#[tokio::test]
async fn an_invalid_key_does_not_affect_others_of_its_batch() {
    let fixture = Fixture::start().await;
    for text in [String::new(), "k".repeat(2049)] {
        let mut writes = claims(3);
        let key = Key::from_text(text.clone());
        writes[1] = Write { key: key.clone(), ..writes[1].clone() };
        let mut verdicts = fixture.store().write(&writes, soon()).await;
        assert_eq!(unknown(verdicts.remove(1)).kind(), StoreErrorKind::Refused);
        let mut read = fixture.store().read(&[key, crate::support::key(0)], soon()).await;
        assert!(read.pop().unwrap().is_ok());
        assert_eq!(read.pop().unwrap().unwrap_err().kind(), StoreErrorKind::Refused);
    }
}

#[tokio::test]
async fn a_corrupt_item_does_not_affect_others_of_its_batch() {
    let fixture = Fixture::start().await;
    fixture.put(&json!({"id": {"S": "op#1"}, "status": {"S": "secret"}}));
    let verdicts = fixture.store().write(&claims(3), soon()).await;
    let [Verdict::Written, Verdict::Unknown(error), Verdict::Written] = &verdicts[..] else {
        panic!("{verdicts:?}")
    };
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    let text = format!("{error} {error:?}");
    assert!(text.contains("attribute `status`"), "{text}");
    assert!(!text.contains("secret") && !text.contains("op#1"), "{text}");
    let error = unknown(one(&fixture.store(), claims(2).remove(1)).await);
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    let keys = [crate::support::key(0), crate::support::key(1)];
    let mut read = fixture.store().read(&keys, soon()).await;
    assert_eq!(read.pop().unwrap().unwrap_err().kind(), StoreErrorKind::Corrupt);
    assert_eq!(read.pop().unwrap().unwrap(), Some(claimed(0)));
}

#[tokio::test]
async fn a_failed_claim_whose_item_was_deleted_is_written_again() {
    let fixture = Fixture::start().await;
    let taken = || {
        Fault::Before(Box::new(|db| {
            put(
                db,
                &json!({"id": {"S": "op#1"}, "status": {"S": "COMPLETED"}, "expiration": {"N": "9"}}),
            );
        }))
    };
    let gone = || Fault::Before(Box::new(|db| delete(db, "op#1")));
    fixture.wire.fault([taken(), gone()]);
    let verdicts = fixture.store().write(&claims(3), soon()).await;
    assert!(verdicts.iter().all(|v| plain(v) == PlainVerdict::Written), "{verdicts:?}");
    assert_eq!(
        fixture.wire.operations(),
        ["BatchExecuteStatement", "GetItem", "PutItem"],
        "only this claim is read and written again"
    );
}

#[tokio::test]
async fn a_record_that_comes_and_goes_is_contended_after_three_rounds() {
    let fixture = Fixture::start().await;
    let lost = || Fault::error("ConditionalCheckFailedException");
    fixture.wire.fault([lost(), Fault::Pass, lost(), Fault::Pass, lost()]);
    let error = unknown(one(&fixture.store(), claims(1).remove(0)).await);
    assert_eq!(error.kind(), StoreErrorKind::Contended);
    assert!(!error.may_have_applied());
    assert_eq!(
        fixture.wire.operations(),
        ["PutItem", "GetItem", "PutItem", "GetItem", "PutItem", "GetItem"]
    );
}

#[tokio::test]
async fn without_a_server_the_store_is_unavailable() {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::v2026_01_12())
        .region(aws_sdk_dynamodb::config::Region::new("eu-west-1"))
        .endpoint_url("http://127.0.0.1:1")
        .credentials_provider(aws_sdk_dynamodb::config::Credentials::new("i", "s", None, None, "t"))
        .build();
    let client = aws_sdk_dynamodb::Client::from_conf(config);
    let store = DynamoDbStore::new(client, TABLE);
    let call_deadline = SystemClock.now().plus(Duration::from_millis(2500));
    let writes = claims(1);
    let error = unknown(store.write(&writes, call_deadline).await.pop().unwrap());
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("refused"), "{cause}");
    assert!(!error.may_have_applied(), "no connection, no request: {error}");
}

#[tokio::test]
async fn without_credentials_requests_are_denied_at_once() {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(aws_sdk_dynamodb::config::BehaviorVersion::v2026_01_12())
        .region(aws_sdk_dynamodb::config::Region::new("eu-west-1"))
        .endpoint_url("http://127.0.0.1:1")
        .build();
    let client = aws_sdk_dynamodb::Client::from_conf(config);
    let store = DynamoDbStore::new(client, TABLE);
    let error = unknown(one(&store, claims(1).remove(0)).await);
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error} {:?}", error.source());
}
