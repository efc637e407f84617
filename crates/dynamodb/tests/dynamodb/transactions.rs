//! Completions with effects: what is sent, and what each answer means.

mod cancelled;
mod counts;

use std::collections::BTreeSet;

use crate::support::{
    Fault, Fixture, PlainVerdict, TABLE, claimed, completed, one, owner, plain, released, soon,
    unknown, write,
};
use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue, Put, TransactWriteItem},
};
use counts::{
    COUNTS, adding, commit, count, counts, create_counts, effects, fixture, refused, stored,
};
use dynoxide::Database;
use lambda_idempotency_core::{
    clock::BoxFuture,
    effects::{Effects, RefusalReason},
    store::{Guard, Store, StoreError, StoreErrorKind},
};
use lambda_idempotency_dynamodb::{DynamoDbEffects, DynamoDbStore};
use lambda_idempotency_testkit::conformance::effects::EffectsKit;

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
async fn the_record_comes_first_under_its_guard() {
    let fixture = fixture().await;
    let verdict = one(&fixture.store(), commit(effects(&["a", "b"], None))).await;
    assert_eq!(plain(&verdict), PlainVerdict::Written);
    let sent = fixture.wire.take();
    let [(operation, body)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(operation, "TransactWriteItems");
    let [record, first, second] = &body["TransactItems"].as_array().unwrap()[..] else { panic!() };
    assert_eq!(record["Update"]["TableName"], TABLE);
    assert_eq!(record["Update"]["ConditionExpression"], "#status = :status AND #owner = :owner");
    assert_eq!(record["Update"]["ReturnValuesOnConditionCheckFailure"], "ALL_OLD");
    assert_eq!(first["Update"]["Key"]["name"]["S"], "a");
    assert_eq!(second["Update"]["Key"]["name"]["S"], "b");
    assert_eq!((counts(&fixture), stored(&fixture).await), ([1, 1], Some(completed(1, "1"))));
}

#[tokio::test]
async fn a_transaction_whose_answer_was_lost_is_sent_again_and_recognised_by_its_owner() {
    for fault in [Fault::LoseAnswer, Fault::Status(500), Fault::Status(503)] {
        let fixture = fixture().await;
        fixture.wire.fault([fault]);
        let verdict = one(&fixture.store(), commit(effects(&["a", "b"], None))).await;
        assert_eq!(plain(&verdict), PlainVerdict::Written);
        assert_eq!(fixture.wire.operations(), ["TransactWriteItems"; 2]);
        assert_eq!(counts(&fixture), [1, 1]);
    }
}

/// Processes that are restored from one snapshot have the same random numbers in their clients, and DynamoDB refuses
/// a token that was sent with another request.
#[tokio::test]
async fn no_token_is_sent_twice_even_if_the_client_repeats_its_own() {
    let mut tokens = BTreeSet::new();
    for _ in 0..2 {
        let fixture = fixture().await;
        let restored = fixture.client.config().to_builder().idempotency_token_provider("restored");
        let store = DynamoDbStore::new(Client::from_conf(restored.build()), TABLE);
        fixture.wire.fault([Fault::LoseAnswer]);
        assert_eq!(plain(&one(&store, commit(effects(&["a"], None))).await), PlainVerdict::Written);
        let sent = fixture.wire.take().into_iter();
        tokens
            .extend(sent.map(|(_, body)| body["ClientRequestToken"].as_str().unwrap().to_owned()));
    }
    assert_eq!(tokens.len(), 4, "{tokens:?}");
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
        assert_eq!(plain(&verdict), PlainVerdict::Written);
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
    assert_eq!(plain(&verdict), PlainVerdict::Written);
}
