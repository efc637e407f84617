//! A table of the application, and effects that count in it.

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use dynoxide::Database;
use lambda_idempotency_core::{
    effects::{Effects, RefusedEffect},
    record::IdempotencyRecord,
    store::{Guard, Store, Verdict, Write},
};
use lambda_idempotency_dynamodb::DynamoDbEffects;
use serde_json::json;

use crate::support::{
    Fixture, PlainVerdict, claimed, completed, key, one, owner, plain, soon, write,
};

pub(crate) const COUNTS: &str = "counts";

/// A table of the application.
pub(crate) fn create_counts(db: &Database) {
    let table = json!({
        "TableName": COUNTS,
        "KeySchema": [{"AttributeName": "name", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "name", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    });
    db.create_table(serde_json::from_value(table).unwrap()).unwrap();
}

pub(crate) fn count(db: &Database, name: &str) -> u64 {
    let request = json!({"TableName": COUNTS, "Key": {"name": {"S": name}}});
    let item = db.get_item(serde_json::from_value(request).unwrap()).unwrap().item;
    let Some(item) = item else { return 0 };
    serde_json::to_value(item).unwrap()["n"]["N"].as_str().unwrap().parse().unwrap()
}

/// Adds 1 to the count of a name, under a condition that holds or not.
pub(crate) fn adding(table: &str, name: &str, holds: bool) -> TransactWriteItem {
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

pub(crate) fn effects(names: &[&str], refused: Option<usize>) -> Option<Effects> {
    let mut effects = DynamoDbEffects::default();
    for (position, name) in names.iter().enumerate() {
        effects.add(adding(COUNTS, name, refused != Some(position))).unwrap();
    }
    Some(Effects::new(effects))
}

/// A table of counts, and key 0 held by owner 1.
pub(crate) async fn fixture() -> Fixture {
    let fixture = Fixture::start().await;
    create_counts(&fixture.db);
    let claim = one(&fixture.store(), write(0, Guard::Absent, Some(claimed(1)))).await;
    assert_eq!(plain(&claim), PlainVerdict::Written);
    fixture.wire.take();
    fixture
}

/// Owner 1 completes key 0.
pub(crate) fn commit(effects: Option<Effects>) -> Write {
    write(0, Guard::OwnedBy(owner(1)), Some(completed(1, "1"))).with_effects(effects)
}

pub(crate) async fn stored(fixture: &Fixture) -> Option<IdempotencyRecord> {
    fixture.store().read(&[key(0)], soon()).await.pop().unwrap().unwrap()
}

pub(crate) fn counts(fixture: &Fixture) -> [u64; 2] {
    ["a", "b"].map(|name| count(&fixture.db, name))
}

pub(crate) fn refused(verdict: Verdict) -> RefusedEffect {
    match verdict {
        Verdict::EffectRefused(refused) => refused,
        other => panic!("not refused: {other:?}"),
    }
}
