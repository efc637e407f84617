//! Transactions that DynamoDB refuses, and what each reason means.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    effects::{Effects, RefusalReason},
    store::{Guard, Store, StoreErrorKind},
};
use lambda_idempotency_dynamodb::DynamoDbEffects;
use lambda_idempotency_testkit::clock::ManualClock;
use serde_json::{Value, json};

use super::counts::{COUNTS, adding, commit, counts, effects, fixture, refused, stored};
use crate::support::{
    Fault, Fixture, PlainVerdict, TABLE, claimed, completed, one, plain, unknown, write,
};

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
    assert_eq!(plain(&verdict), PlainVerdict::Written, "the store recognises its own write");
    fixture.wire.fault([cancelled(&[found(&item), none()])]);
    let verdict = one(&fixture.store(), commit(effects(&["a"], None))).await;
    assert_eq!(plain(&verdict), PlainVerdict::Found(Some(claimed(1))), "without a lost answer");
}

#[tokio::test]
async fn each_reason_of_the_record_has_its_verdict() {
    let fixture = fixture().await;
    let gone = cancelled(&[reason("ConditionalCheckFailed"), none()]);
    fixture.wire.fault([gone]);
    let verdict = one(&fixture.store(), commit(effects(&["a"], None))).await;
    assert_eq!(plain(&verdict), PlainVerdict::Found(None), "the answer would have had the item");
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
async fn conflicts_and_throttling_are_sent_again() {
    for code in ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"] {
        for reasons in [[reason(code), none()], [none(), reason(code)]] {
            let fixture = fixture().await;
            fixture.wire.fault([cancelled(&reasons), cancelled(&reasons)]);
            let verdict = one(&fixture.store(), commit(effects(&["a"], None))).await;
            assert_eq!(plain(&verdict), PlainVerdict::Written, "{code}");
            assert_eq!(fixture.wire.operations().len(), 3, "{code}");
            assert_eq!(counts(&fixture), [1, 0], "{code}");
        }
    }
}

/// The owner of the record is decided first: it may have been taken over by the write that conflicts.
#[tokio::test]
async fn a_conflict_on_the_record_comes_before_a_refused_effect() {
    let fixture = fixture().await;
    let conflict = cancelled(&[reason("TransactionConflict"), reason("ConditionalCheckFailed")]);
    fixture.wire.fault([conflict]);
    let verdict = one(&fixture.store(), commit(effects(&["a"], None))).await;
    assert_eq!(plain(&verdict), PlainVerdict::Written);
}

/// In simulated time: the wire answers at once, so only the pauses take any.
#[tokio::test]
async fn throttling_until_the_deadline_is_not_in_doubt_and_a_lost_answer_before_it_is() {
    for lost in [false, true] {
        let fixture = fixture().await;
        let throttled = (0..500).map(|_| cancelled(&[none(), reason("ThrottlingError")]));
        let first = if lost { vec![Fault::Instead(500, json!({}))] } else { vec![] };
        fixture.wire.fault(first.into_iter().chain(throttled));
        let clock = ManualClock::new(Timestamp::from_secs(1_000));
        let store = fixture.builder().clock(clock.clone()).build().unwrap();
        let deadline = clock.now().plus(Duration::from_millis(300));
        let writes = [commit(effects(&["a"], None))];
        let mut verdicts = clock.drive(store.write(&writes, deadline)).await;
        let error = unknown(verdicts.pop().unwrap());
        assert_eq!((error.kind(), error.may_have_applied()), (StoreErrorKind::Throttled, lost));
    }
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
    assert!(refused.to_string().contains("(nowhere)"), "it names the table: {refused}");
    assert_eq!(stored(&fixture).await, Some(claimed(1)));
}

/// DynamoDB does not say which table it did not find.
#[tokio::test]
async fn a_table_of_records_that_is_gone_is_not_a_refused_effect() {
    let fixture = fixture().await;
    let request = json!({"TableName": TABLE});
    fixture.db.delete_table(serde_json::from_value(request).unwrap()).unwrap();
    let error = unknown(one(&fixture.store(), commit(effects(&["a"], None))).await);
    assert_eq!((error.kind(), error.may_have_applied()), (StoreErrorKind::Misconfigured, false));
    assert!(error.to_string().contains(TABLE), "{error}");
}

#[tokio::test]
async fn errors_of_transactions_quote_nothing() {
    let fixture = fixture().await;
    let invalid = json!({
        "Code": "ValidationError",
        "Message": "The provided value 's3cr3t' is not valid",
        "Item": {"name": {"S": "s3cr3t"}},
    });
    fixture.wire.fault([cancelled(&[none(), invalid])]);
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
async fn a_permission_that_is_missing_for_the_record_is_not_a_refused_effect() {
    let denied = |table: &str| {
        let message = format!(
            "User: arn:aws:sts::123456789012:assumed-role/f/f is not authorized to perform: \
             dynamodb:UpdateItem on resource: arn:aws:dynamodb:eu-west-1:123456789012:table/{table} \
             because no identity-based policy allows the dynamodb:UpdateItem action"
        );
        let kind = "com.amazonaws.dynamodb.v20120810#AccessDeniedException";
        Fault::Instead(400, json!({"__type": kind, "message": message}))
    };
    let fixture = fixture().await;
    fixture.wire.fault([denied(TABLE)]);
    let error = unknown(one(&fixture.store(), commit(effects(&["a"], None))).await);
    assert_eq!((error.kind(), error.may_have_applied()), (StoreErrorKind::Denied, false));
    assert!(error.to_string().contains("the role needs dynamodb:UpdateItem"), "{error}");
    for other in [COUNTS, &format!("{TABLE}-of-others"), &format!("{TABLE}2")] {
        fixture.wire.fault([denied(other)]);
        let refused = refused(one(&fixture.store(), commit(effects(&["a"], None))).await);
        assert_eq!(refused.reason(), RefusalReason::Denied, "{other}");
    }
}
