use std::sync::Arc;

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Region},
    types::{AttributeValue, ConditionCheck, Delete, Put, Update},
};

use super::*;
use crate::{Attributes, DynamoDbStore, SortKey};

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.into())
}

fn item(put: Put) -> TransactWriteItem {
    TransactWriteItem::builder().put(put).build()
}

fn put(table: &str, id: &str, text: &str) -> TransactWriteItem {
    let put = Put::builder().table_name(table).item("id", s(id)).item("text", s(text));
    item(put.build().unwrap())
}

fn update(table: &str, id: &str) -> TransactWriteItem {
    let update = Update::builder().table_name(table).key("id", s(id));
    let update = update.update_expression("ADD #n :one").expression_attribute_names("#n", "n");
    let update = update.expression_attribute_values(":one", AttributeValue::N("1".into()));
    TransactWriteItem::builder().update(update.build().unwrap()).build()
}

fn delete(table: &str, id: &str) -> TransactWriteItem {
    let delete = Delete::builder().table_name(table).key("id", s(id)).build().unwrap();
    TransactWriteItem::builder().delete(delete).build()
}

fn check(table: &str, id: &str) -> TransactWriteItem {
    let check = ConditionCheck::builder().table_name(table).key("id", s(id));
    let check = check.condition_expression("attribute_exists(id)").build().unwrap();
    TransactWriteItem::builder().condition_check(check).build()
}

fn all(items: impl IntoIterator<Item = TransactWriteItem>) -> DynamoDbEffects {
    let mut effects = DynamoDbEffects::default();
    for item in items {
        effects.add(item).unwrap();
    }
    effects
}

#[test]
fn two_effects_for_one_item_are_refused() {
    let kinds = [put, |table: &str, id: &str, _: &str| update(table, id)];
    let arn = "arn:aws:dynamodb:eu-west-1:111122223333:table/orders";
    for (one, other) in [(0, 1), (1, 0), (1, 1)] {
        let mut effects = all([check("orders", "another"), kinds[one]("orders", "o-1", "")]);
        let refused = effects.add(kinds[other](arn, "o-1", "")).unwrap_err();
        let expected = DynamoDbEffectError::SameItem { table: arn.into(), position: 1 };
        assert_eq!(refused, expected, "{one} {other}");
        effects.add(kinds[other]("orders", "o-2", "")).unwrap();
        effects.add(kinds[other]("customers", "o-1", "")).unwrap();
    }
    for item in [put("orders", "o-1", "x"), delete("orders", "o-1"), check("orders", "o-1")] {
        let mut effects = all([item.clone()]);
        assert!(matches!(effects.add(item), Err(DynamoDbEffectError::SameItem { .. })));
    }
}

#[test]
fn an_item_without_or_with_several_actions_is_refused() {
    let none = TransactWriteItem::builder().build();
    let two = TransactWriteItem::builder()
        .set_put(put("orders", "o-1", "").put().cloned())
        .set_update(update("orders", "o-2").update().cloned())
        .build();
    for (item, actions) in [(none, 0), (two, 2)] {
        let refused = DynamoDbEffects::default().add(item).unwrap_err();
        assert_eq!(refused, DynamoDbEffectError::NotOneAction { actions });
    }
}

#[test]
fn ninety_nine_effects_have_room_beside_the_record() {
    let mut effects = all((0..99).map(|n| update("orders", &n.to_string())));
    assert_eq!(effects.items().len(), 99);
    let refused = effects.add(update("orders", "another")).unwrap_err();
    assert_eq!(refused, DynamoDbEffectError::TooMany);
    assert!(refused.to_string().contains("at most 99 effects"), "{refused}");
    assert_eq!(effects.items().len(), 99, "what was added before stays");
}

#[test]
fn effects_larger_than_a_transaction_are_refused() {
    let large = |bytes: usize| "x".repeat(bytes);
    let refused = DynamoDbEffects::default().add(put("orders", "o-1", &large(LARGEST)));
    assert!(matches!(refused, Err(DynamoDbEffectError::ItemTooLarge { .. })), "{refused:?}");
    let almost = large(LARGEST - 20);
    let mut effects = all((0..10).map(|n| put("orders", &n.to_string(), &almost)));
    let refused = effects.add(put("orders", "11", &almost)).unwrap_err();
    assert!(matches!(refused, DynamoDbEffectError::TooLarge { .. }), "{refused}");
    assert!(!effects.are_too_large_beside(1000) && effects.are_too_large_beside(MOST_BYTES));
}

#[test]
fn bytes_and_sets_count() {
    let large = vec![0; LARGEST];
    let texts: Vec<_> = (0..1000).map(|n| format!("{n:0500}")).collect();
    for value in [
        AttributeValue::B(large.clone().into()),
        AttributeValue::Bs(vec![large.into()]),
        AttributeValue::Ss(texts.clone()),
        AttributeValue::Ns(texts.iter().chain(&texts).cloned().collect()),
    ] {
        let put = Put::builder().table_name("orders").item("id", s("o-1")).item("value", value);
        let refused = DynamoDbEffects::default().add(item(put.build().unwrap()));
        assert!(matches!(refused, Err(DynamoDbEffectError::ItemTooLarge { .. })), "{refused:?}");
    }
}

#[test]
fn effects_on_idempotency_records_are_found() {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-west-1"))
        .build();
    let client = Client::from_conf(config);
    let own = DynamoDbStore::new(client.clone(), "idempotency").config;
    let effects = all([update("orders", "o-1"), delete("idempotency", "place#1")]);
    assert_eq!(effects.on_records(&own), Some(1));
    assert_eq!(all([update("orders", "o-1")]).on_records(&own), None);

    for sort_key in
        [SortKey::new("sk", "idempotency#orders"), SortKey::derived("sk", "idempotency#")]
    {
        let names = Attributes { sort_key: Some(sort_key), ..Attributes::default() };
        let shared = DynamoDbStore::builder(client.clone(), "orders").attributes(names).build();
        let shared = Arc::clone(&shared.unwrap().config);
        let effects = all([update("orders", "o-1"), update("orders", "idempotency#orders")]);
        assert_eq!(effects.on_records(&shared), Some(1), "other partitions hold other items");
    }
}

#[test]
fn debug_shows_no_items() {
    let shown = format!("{:?}", all([put("orders", "s3cr3t", "s3cr3t")]));
    assert!(!shown.contains("s3cr3t"), "{shown}");
}
