//! Completions with effects: what is sent, and what each answer means.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod support;

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem, Update};
use dynoxide::Database;
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, SystemClock},
    effects::{Effects, RefusalReason, RefusedEffect},
    record::IdempotencyRecord,
    store::{Guard, Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_dynamodb::{DynamoDbEffects, DynamoDbStore};
use lambda_idempotency_testkit::conformance::effects::EffectsKit;
use serde_json::{Value, json};
use support::{
    Fault, Fixture, TABLE, Told, claimed, completed, key, one, owner, released, soon, told,
    unknown, write,
};

const COUNTS: &str = "counts";

/// A table of the application.
fn create_counts(db: &Database) {
    let table = json!({
        "TableName": COUNTS,
        "KeySchema": [{"AttributeName": "name", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "name", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    });
    db.create_table(serde_json::from_value(table).unwrap()).unwrap();
}

fn count(db: &Database, name: &str) -> u64 {
    let request = json!({"TableName": COUNTS, "Key": {"name": {"S": name}}});
    let item = db.get_item(serde_json::from_value(request).unwrap()).unwrap().item;
    let Some(item) = item else { return 0 };
    serde_json::to_value(item).unwrap()["n"]["N"].as_str().unwrap().parse().unwrap()
}

/// Adds 1 to the count of a name, under a condition that holds or not.
fn adding(table: &str, name: &str, holds: bool) -> TransactWriteItem {
    let update = Update::builder()
        .table_name(table)
        .key("name", AttributeValue::S(name.to_owned()))
        .update_expression("ADD n :one")
        .condition_expression(if holds {
            "attribute_not_exists(never)"
        } else {
            "attribute_exists(never)"
        })
        .expression_attribute_values(":one", AttributeValue::N("1".into()));
    TransactWriteItem::builder().update(update.build().unwrap()).build()
}

fn effects(names: &[&str], refused: Option<usize>) -> Option<Effects> {
    let mut effects = DynamoDbEffects::default();
    for (position, name) in names.iter().enumerate() {
        effects.add(adding(COUNTS, name, refused != Some(position))).unwrap();
    }
    Some(Effects::new(effects))
}

/// A table of counts, and key 0 held by owner 1.
async fn fixture() -> Fixture {
    let fixture = Fixture::start().await;
    create_counts(&fixture.db);
    let claim = one(&fixture.store(), write(0, Guard::Absent, Some(claimed(1)))).await;
    assert_eq!(told(&claim), Told::Written);
    fixture.wire.take();
    fixture
}

/// Owner 1 completes key 0.
fn commit(effects: Option<Effects>) -> Write {
    write(0, Guard::OwnedBy(owner(1)), Some(completed(1, "1"))).with_effects(effects)
}

async fn stored(fixture: &Fixture) -> Option<IdempotencyRecord> {
    fixture.store().read(&[key(0)], soon()).await.pop().unwrap().unwrap()
}

fn counts(fixture: &Fixture) -> [u64; 2] {
    ["a", "b"].map(|name| count(&fixture.db, name))
}

/// A transaction that is cancelled for these reasons: codes, messages and items.
fn cancelled(reasons: &[Value]) -> Fault {
    let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
    let message = "Transaction cancelled, please refer cancellation reasons for specific reasons";
    Fault::Instead(400, json!({"__type": kind, "Message": message, "CancellationReasons": reasons}))
}

fn reason(code: &str) -> Value {
    json!({"Code": code, "Message": "it says so"})
}

fn none() -> Value {
    json!({"Code": "None"})
}

fn refused(verdict: Verdict) -> RefusedEffect {
    match verdict {
        Verdict::EffectRefused(refused) => refused,
        other => panic!("not refused: {other:?}"),
    }
}

struct Kit(Database);

impl EffectsKit for Kit {
    fn adding(&self, names: &[String], refused: Option<usize>) -> Effects {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        effects(&names, refused).unwrap()
    }

    fn count<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64> {
        let count = count(&self.0, name);
        Box::pin(async move { count })
    }
}

mod conformance {
    use super::{DynamoDbStore, Fixture, Kit, create_counts};

    async fn make() -> (DynamoDbStore, Kit) {
        let fixture = Fixture::start().await;
        create_counts(&fixture.db);
        (fixture.store(), Kit(fixture.db.clone()))
    }

    lambda_idempotency_testkit::effects_conformance!(make);
}

#[tokio::test]
async fn the_record_comes_first_under_its_guard_and_with_a_token() {
    let fixture = fixture().await;
    let verdict = one(&fixture.store(), commit(effects(&["a", "b"], None))).await;
    assert_eq!(told(&verdict), Told::Written);
    let sent = fixture.wire.take();
    let [(operation, body)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(operation, "TransactWriteItems");
    let [record, first, second] = &body["TransactItems"].as_array().unwrap()[..] else { panic!() };
    assert_eq!(record["Put"]["TableName"], TABLE);
    assert_eq!(record["Put"]["ConditionExpression"], "#status = :status AND #owner = :owner");
    assert_eq!(record["Put"]["ReturnValuesOnConditionCheckFailure"], "ALL_OLD");
    assert_eq!(first["Update"]["Key"]["name"]["S"], "a");
    assert_eq!(second["Update"]["Key"]["name"]["S"], "b");
    let token = body["ClientRequestToken"].as_str().unwrap();
    assert!(token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{token}");
    assert_eq!((counts(&fixture), stored(&fixture).await), ([1, 1], Some(completed(1, "1"))));
}

#[tokio::test]
async fn a_transaction_whose_answer_was_lost_is_sent_again_with_the_same_token() {
    for fault in [Fault::LoseAnswer, Fault::Status(500), Fault::Status(503)] {
        let fixture = fixture().await;
        fixture.wire.fault([fault]);
        let verdict = one(&fixture.store(), commit(effects(&["a", "b"], None))).await;
        assert_eq!(told(&verdict), Told::Written);
        let tokens: Vec<_> = fixture
            .wire
            .take()
            .into_iter()
            .map(|(_, body)| body["ClientRequestToken"].clone())
            .collect();
        assert!(tokens.len() == 2 && tokens[0] == tokens[1], "{tokens:?}");
        assert_eq!(counts(&fixture), [1, 1]);
    }
}

/// After ten minutes DynamoDB has forgotten the token; some servers ignore it.
#[tokio::test]
async fn without_the_token_a_lost_answer_is_found_out_by_the_record() {
    let fixture = fixture().await;
    let item = fixture.item("op#0").unwrap();
    let done = {
        let other = Fixture::start().await;
        let record = write(0, Guard::Absent, Some(completed(1, "1")));
        one(&other.store(), record).await;
        other.item("op#0").unwrap()
    };
    let found = |item: &Value| json!({"Code": "ConditionalCheckFailed", "Message": "it says so", "Item": item});
    fixture.wire.fault([Fault::LoseAnswer, cancelled(&[found(&done), none()])]);
    let verdict = one(&fixture.store(), commit(effects(&["a"], None))).await;
    assert_eq!(told(&verdict), Told::Written, "the store recognises its own write");
    fixture.wire.fault([cancelled(&[found(&item), none()])]);
    let verdict = one(&fixture.store(), commit(effects(&["a"], None))).await;
    assert_eq!(told(&verdict), Told::Found(Some(claimed(1))), "without a lost answer");
}

#[tokio::test]
async fn each_reason_of_the_record_has_its_verdict() {
    let fixture = fixture().await;
    let gone = cancelled(&[reason("ConditionalCheckFailed"), none()]);
    fixture.wire.fault([gone]);
    let verdict = one(&fixture.store(), commit(effects(&["a"], None))).await;
    assert_eq!(told(&verdict), Told::Found(None), "the answer would have had the item");
    for code in ["ItemCollectionSizeLimitExceeded", "ValidationError"] {
        fixture.wire.fault([cancelled(&[reason(code), none()])]);
        let error = unknown(one(&fixture.store(), commit(effects(&["a"], None))).await);
        assert!(!error.may_have_applied() && !error.is_transient(), "{code}: {error}");
    }
    assert_eq!((counts(&fixture), stored(&fixture).await), ([0, 0], Some(claimed(1))));
}

#[tokio::test]
async fn each_reason_of_an_effect_has_its_refusal() {
    for (code, reason_of) in [
        ("ConditionalCheckFailed", RefusalReason::ConditionFailed),
        ("ItemCollectionSizeLimitExceeded", RefusalReason::TooLarge),
        ("ValidationError", RefusalReason::Invalid),
        ("AccessDenied", RefusalReason::Denied),
        ("SomethingNew", RefusalReason::Invalid),
    ] {
        let fixture = fixture().await;
        fixture.wire.fault([cancelled(&[none(), none(), reason(code)])]);
        let refused = refused(one(&fixture.store(), commit(effects(&["a", "b"], None))).await);
        assert_eq!((refused.reason(), refused.position()), (reason_of, Some(1)), "{code}");
        assert_eq!(fixture.wire.operations(), ["TransactWriteItems"], "{code} is not retried");
    }
    let too_large = json!({
        "Code": "ValidationError",
        "Message": "Item size to update has exceeded the maximum allowed size",
    });
    let fixture = fixture().await;
    fixture.wire.fault([cancelled(&[none(), too_large])]);
    let refused = refused(one(&fixture.store(), commit(effects(&["a"], None))).await);
    assert_eq!(refused.reason(), RefusalReason::TooLarge);
}

#[tokio::test]
async fn conflicts_and_throttling_are_sent_again_with_the_same_token() {
    for code in ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"] {
        for reasons in [[reason(code), none()], [none(), reason(code)]] {
            let fixture = fixture().await;
            fixture.wire.fault([cancelled(&reasons), cancelled(&reasons)]);
            let verdict = one(&fixture.store(), commit(effects(&["a"], None))).await;
            assert_eq!(told(&verdict), Told::Written, "{code}");
            let tokens: Vec<_> = fixture
                .wire
                .take()
                .into_iter()
                .map(|(_, body)| body["ClientRequestToken"].clone())
                .collect();
            assert!(tokens.len() == 3 && tokens.windows(2).all(|two| two[0] == two[1]));
            assert_eq!(counts(&fixture), [1, 0], "{code}");
        }
    }
}

/// Who owns the record is decided first: it may have been taken over by the write that conflicts.
#[tokio::test]
async fn a_conflict_on_the_record_comes_before_a_refused_effect() {
    let fixture = fixture().await;
    let conflict = cancelled(&[reason("TransactionConflict"), reason("ConditionalCheckFailed")]);
    fixture.wire.fault([conflict]);
    let verdict = one(&fixture.store(), commit(effects(&["a"], None))).await;
    assert_eq!(told(&verdict), Told::Written);
}

#[tokio::test]
async fn throttling_until_the_deadline_is_not_in_doubt_and_a_lost_answer_before_it_is() {
    for lost in [false, true] {
        let fixture = fixture().await;
        let throttled = (0..500).map(|_| cancelled(&[none(), reason("ThrottlingError")]));
        let first = if lost { vec![Fault::Instead(500, json!({}))] } else { vec![] };
        fixture.wire.fault(first.into_iter().chain(throttled));
        let deadline = SystemClock.now().plus(Duration::from_millis(300));
        let write = commit(effects(&["a"], None));
        let verdict = fixture.store().write(&[write], deadline).await.pop().unwrap();
        let error = unknown(verdict);
        assert_eq!((error.kind(), error.may_have_applied()), (StoreErrorKind::Throttled, lost));
    }
}

#[tokio::test]
async fn a_request_in_progress_is_waited_for() {
    let fixture = fixture().await;
    let in_progress = || Fault::error("TransactionInProgressException");
    fixture.wire.fault([Fault::LoseAnswer, in_progress(), in_progress()]);
    let verdict = one(&fixture.store(), commit(effects(&["a"], None))).await;
    assert_eq!((told(&verdict), counts(&fixture)), (Told::Written, [1, 0]));
}

#[tokio::test]
async fn a_token_that_was_used_otherwise_leaves_the_write_in_doubt() {
    let fixture = fixture().await;
    fixture.wire.fault([Fault::error("IdempotentParameterMismatchException")]);
    let error = unknown(one(&fixture.store(), commit(effects(&["a"], None))).await);
    assert!(error.may_have_applied() && !error.is_transient(), "{error}");
}

#[tokio::test]
async fn a_request_that_is_refused_because_of_an_effect_is_a_refused_effect() {
    for (code, reason) in [
        ("AccessDeniedException", RefusalReason::Denied),
        ("ValidationException", RefusalReason::Invalid),
        ("ResourceNotFoundException", RefusalReason::Invalid),
    ] {
        let fixture = fixture().await;
        fixture.wire.fault([Fault::error(code)]);
        let refused = refused(one(&fixture.store(), commit(effects(&["a"], None))).await);
        assert_eq!((refused.reason(), refused.position()), (reason, None), "{code}");
        assert!(refused.to_string().contains(code), "{refused}");
    }
    for code in ["UnrecognizedClientException", "ExpiredTokenException"] {
        let fixture = fixture().await;
        fixture.wire.fault([Fault::error(code)]);
        let error = unknown(one(&fixture.store(), commit(effects(&["a"], None))).await);
        assert_eq!(error.kind(), StoreErrorKind::Denied, "credentials are no effect: {code}");
    }
}

#[tokio::test]
async fn a_table_that_does_not_exist_is_a_refused_effect() {
    let fixture = fixture().await;
    let mut missing = DynamoDbEffects::default();
    missing.add(adding("nowhere", "a", true)).unwrap();
    let refused = refused(one(&fixture.store(), commit(Some(Effects::new(missing)))).await);
    assert_eq!(refused.reason(), RefusalReason::Invalid);
    assert_eq!(stored(&fixture).await, Some(claimed(1)));
}

/// DynamoDB does not say which table it did not find.
#[tokio::test]
async fn a_table_of_records_that_is_gone_is_no_refused_effect() {
    let fixture = fixture().await;
    let request = json!({"TableName": TABLE});
    fixture.db.delete_table(serde_json::from_value(request).unwrap()).unwrap();
    let error = unknown(one(&fixture.store(), commit(effects(&["a"], None))).await);
    assert_eq!((error.kind(), error.may_have_applied()), (StoreErrorKind::Misconfigured, false));
    assert!(error.to_string().contains(TABLE), "{error}");
}

#[tokio::test]
async fn effects_on_idempotency_records_are_refused_before_anything_is_sent() {
    let fixture = fixture().await;
    let mut own = DynamoDbEffects::default();
    own.add(adding(COUNTS, "a", true)).unwrap();
    own.add(adding(TABLE, "op#1", true)).unwrap();
    let refused = refused(one(&fixture.store(), commit(Some(Effects::new(own)))).await);
    assert_eq!((refused.reason(), refused.position()), (RefusalReason::Invalid, Some(1)));
    assert!(refused.to_string().contains("idempotency records"), "{refused}");
    assert!(fixture.wire.operations().is_empty());
}

#[tokio::test]
async fn writes_with_effects_are_sent_by_themselves_and_the_others_together() {
    let fixture = Fixture::start().await;
    create_counts(&fixture.db);
    let claims = (0..6).map(|n| write(n, Guard::Absent, Some(claimed(n as u128))));
    fixture.store().write(&claims.collect::<Vec<_>>(), soon()).await;
    fixture.wire.take();
    let names = ["0", "1", "2", "3", "4", "5"];
    let writes: Vec<_> = (0..6)
        .map(|n| {
            let record = if n == 5 { released(5) } else { completed(n as u128, "1") };
            let write = write(n, Guard::OwnedBy(owner(n as u128)), Some(record));
            write.with_effects((n < 3).then(|| effects(&[names[n]], None)).flatten())
        })
        .collect();
    for verdict in fixture.store().write(&writes, soon()).await {
        assert_eq!(told(&verdict), Told::Written);
    }
    let mut operations = fixture.wire.operations();
    operations.sort_unstable();
    let transaction = "TransactWriteItems";
    assert_eq!(operations, ["BatchExecuteStatement", transaction, transaction, transaction]);
    assert_eq!(names.map(|name| count(&fixture.db, name)), [1, 1, 1, 0, 0, 0]);
}

#[tokio::test]
async fn a_result_that_is_too_large_leaves_the_claim_and_its_effects() {
    let fixture = fixture().await;
    let large = format!("\"{}\"", "x".repeat(410 * 1024));
    let commit = write(0, Guard::OwnedBy(owner(1)), Some(completed(1, &large)));
    let verdict = one(&fixture.store(), commit.with_effects(effects(&["a"], None))).await;
    let error: StoreError = unknown(verdict);
    assert_eq!((error.kind(), error.may_have_applied()), (StoreErrorKind::TooLarge, false));
    assert_eq!((counts(&fixture), stored(&fixture).await), ([0, 0], Some(claimed(1))));
}

#[tokio::test]
async fn errors_of_transactions_quote_nothing() {
    let fixture = fixture().await;
    let told = json!({
        "Code": "ValidationError",
        "Message": "The provided value 's3cr3t' is not valid",
        "Item": {"name": {"S": "s3cr3t"}},
    });
    fixture.wire.fault([cancelled(&[none(), told])]);
    let verdict = one(&fixture.store(), commit(effects(&["s3cr3t"], None))).await;
    assert!(!format!("{verdict:?}").contains("s3cr3t"), "{verdict:?}");
    assert!(!refused(verdict).to_string().contains("s3cr3t"));
}

/// DynamoDB repeats a number that it cannot read, and without quotation marks.
#[tokio::test]
async fn errors_of_transactions_repeat_no_number_that_the_handler_collected() {
    let message = "The parameter cannot be converted to a numeric value: s3cr3t";
    let whole = "com.amazonaws.dynamodb.v20120810#ValidationException";
    for fault in [
        cancelled(&[none(), json!({"Code": "ValidationError", "Message": message})]),
        Fault::Instead(400, json!({"__type": whole, "message": message})),
    ] {
        let fixture = fixture().await;
        fixture.wire.fault([fault]);
        let verdict = one(&fixture.store(), commit(effects(&["a"], None))).await;
        assert!(!format!("{verdict:?}").contains("s3cr3t"), "{verdict:?}");
        let refused = refused(verdict).to_string();
        assert!(refused.contains("cannot be converted to a numeric value"), "{refused}");
    }
}

/// Then the effects are not to blame.
#[tokio::test]
async fn a_permission_that_is_missing_for_the_record_is_no_refused_effect() {
    let denied = |table: &str| {
        let message = format!(
            "User: arn:aws:sts::123456789012:assumed-role/f/f is not authorized to perform: \
             dynamodb:PutItem on resource: arn:aws:dynamodb:eu-west-1:123456789012:table/{table} \
             because no identity-based policy allows the dynamodb:PutItem action"
        );
        let kind = "com.amazonaws.dynamodb.v20120810#AccessDeniedException";
        Fault::Instead(400, json!({"__type": kind, "message": message}))
    };
    let fixture = fixture().await;
    fixture.wire.fault([denied(TABLE)]);
    let error = unknown(one(&fixture.store(), commit(effects(&["a"], None))).await);
    assert_eq!((error.kind(), error.may_have_applied()), (StoreErrorKind::Denied, false));
    assert!(error.to_string().contains("the role needs dynamodb:PutItem"), "{error}");
    for other in [COUNTS, &format!("{TABLE}-of-others"), &format!("{TABLE}2")] {
        fixture.wire.fault([denied(other)]);
        let refused = refused(one(&fixture.store(), commit(effects(&["a"], None))).await);
        assert_eq!(refused.reason(), RefusalReason::Denied, "{other}");
    }
}

/// The caller leaves the result out then, and the effects are committed.
#[tokio::test]
async fn a_result_that_leaves_no_room_for_the_effects_is_too_large() {
    let fixture = fixture().await;
    let mut large = DynamoDbEffects::default();
    let put = |n: u32| {
        let name = AttributeValue::S(n.to_string());
        let value = AttributeValue::S("x".repeat(390 * 1024));
        let put = Put::builder().table_name(COUNTS).item("name", name).item("v", value).build();
        TransactWriteItem::builder().put(put.unwrap()).build()
    };
    for n in 0..10 {
        large.add(put(n)).unwrap();
    }
    let effects = Some(Effects::new(large));
    let result = format!("\"{}\"", "x".repeat(300 * 1024));
    let complete = |record| write(0, Guard::OwnedBy(owner(1)), Some(record));
    let whole = complete(completed(1, &result)).with_effects(effects.clone());
    let error = unknown(one(&fixture.store(), whole).await);
    assert_eq!((error.kind(), error.may_have_applied()), (StoreErrorKind::TooLarge, false));
    assert!(fixture.wire.operations().is_empty(), "nothing was sent");
    let mut without = completed(1, &result);
    without.result = None;
    let verdict = one(&fixture.store(), complete(without).with_effects(effects)).await;
    assert_eq!(told(&verdict), Told::Written);
}
