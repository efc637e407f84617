//! The effects that the store commits together with a completion.

use std::fmt;

use aws_sdk_dynamodb::types::TransactWriteItem;
use lambda_idempotency_core::effects::{RefusalReason, RefusedEffect};

use crate::{
    config::Config,
    item::{Item, LARGEST, size},
};

/// The most items of a transaction. One of them is the idempotency record.
const MOST_ITEMS: usize = 100;
/// The most bytes of the items of a transaction.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// The effects that a [`DynamoDbStore`](crate::DynamoDbStore) commits together with the completion of a
/// key, in one `TransactWriteItems`: puts, updates, deletes and condition checks, in the order in which
/// they were added.
///
/// [`add`](Self::add) checks DynamoDB's limits as far as they can be checked without DynamoDB.
///
/// ```
/// use aws_sdk_dynamodb::types::{AttributeValue, Delete, TransactWriteItem};
/// use lambda_idempotency_dynamodb::DynamoDbEffects;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let id = AttributeValue::S("o-1".into());
/// let delete = Delete::builder().table_name("orders").key("id", id).build()?;
/// let delete = TransactWriteItem::builder().delete(delete).build();
///
/// let mut effects = DynamoDbEffects::default();
/// effects.add(delete.clone())?;
/// assert_eq!(
///     effects.add(delete).unwrap_err().to_string(),
///     "this effect is for the same item of table orders as effect 1, and a transaction of DynamoDB \
///      does one thing to each item: make one update of both"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct DynamoDbEffects {
    items: Vec<TransactWriteItem>,
    bytes: usize,
}

/// Why an effect does not fit into a transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DynamoDbEffectError {
    /// The item says nothing to do, or several things.
    #[error(
        "a `TransactWriteItem` has exactly one of `put`, `update`, `delete` and `condition_check`, \
         and this one has {actions}: add one for each"
    )]
    NotOneAction {
        /// How many it has.
        actions: usize,
    },
    /// There are as many as a transaction can have.
    #[error(
        "a transaction of DynamoDB has at most {MOST_ITEMS} items, and the idempotency record is one \
         of them: collect at most {} effects in a call, or split the work into several records",
        MOST_ITEMS - 1
    )]
    TooMany,
    /// An item is larger than DynamoDB holds.
    #[error(
        "an item of {bytes} bytes, and DynamoDB holds {LARGEST}: keep large values elsewhere, and \
         a reference in the item"
    )]
    ItemTooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// The items together are larger than a transaction can be.
    #[error(
        "the effects of this call have {bytes} bytes together, and a transaction of DynamoDB takes \
         {MOST_BYTES}: collect less in a call"
    )]
    TooLarge {
        /// How large they would be together.
        bytes: usize,
    },
    /// Another effect is for the same item.
    #[error(
        "this effect is for the same item of table {table} as effect {}, and a transaction of \
         DynamoDB does one thing to each item: make one update of both", .position + 1
    )]
    SameItem {
        /// The table.
        table: String,
        /// The position of the other effect, from 0.
        position: usize,
    },
}

impl DynamoDbEffects {
    /// Adds an effect. Two effects must not be for one item. Two such puts are noticed only by
    /// DynamoDB, unless they are equal, because a put does not say which attributes are the key.
    ///
    /// # Errors
    /// It does not fit into the transaction. Effects that were added before stay.
    pub fn add(&mut self, item: TransactWriteItem) -> Result<(), DynamoDbEffectError> {
        let actions = actions(&item);
        if actions != 1 {
            return Err(DynamoDbEffectError::NotOneAction { actions });
        }
        if self.items.len() + 1 >= MOST_ITEMS {
            return Err(DynamoDbEffectError::TooMany);
        }
        let target = Target::of(&item);
        if let Some(target) = &target {
            let same = |other: &TransactWriteItem| {
                Target::of(other).is_some_and(|other| other.is_same(target))
            };
            if let Some(position) = self.items.iter().position(same) {
                let table = target.table.to_owned();
                return Err(DynamoDbEffectError::SameItem { table, position });
            }
        }
        let bytes = target.map_or(0, |target| size(target.attributes));
        if bytes > LARGEST {
            return Err(DynamoDbEffectError::ItemTooLarge { bytes });
        }
        let bytes = self.bytes.saturating_add(bytes).saturating_add(values(&item));
        if bytes > MOST_BYTES {
            return Err(DynamoDbEffectError::TooLarge { bytes });
        }
        self.bytes = bytes;
        self.items.push(item);
        Ok(())
    }

    /// The effects, in the order in which they were added.
    #[must_use]
    pub fn items(&self) -> &[TransactWriteItem] {
        &self.items
    }

    /// The names of their tables, each once.
    pub(crate) fn tables(&self) -> Vec<&str> {
        let mut tables: Vec<&str> =
            self.items.iter().filter_map(Target::of).map(|target| target.table).collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    /// Whether there is no room for an idempotency record of this size.
    pub(crate) fn are_too_large_beside(&self, record: usize) -> bool {
        self.bytes.saturating_add(record) > MOST_BYTES
    }

    /// Why the effects cannot be committed with a record of this size, whatever its result.
    pub(crate) fn refusal(&self, config: &Config, record: usize) -> Option<RefusedEffect> {
        if let Some(position) = self.on_records(config) {
            let detail = format!("it would change idempotency records, in table {}", config.table);
            let refused = RefusedEffect::new(RefusalReason::Invalid).at(position);
            return Some(refused.with_detail(detail));
        }
        self.are_too_large_beside(record).then(|| {
            let detail =
                "with the idempotency record, the effects of the call are larger than 4 MB";
            RefusedEffect::new(RefusalReason::TooLarge).with_detail(detail)
        })
    }

    /// The position of an effect that would change idempotency records.
    fn on_records(&self, config: &Config) -> Option<usize> {
        self.items.iter().position(|item| {
            let Some(target) = Target::of(item) else { return false };
            let sort_key = config.attributes.sort_key.as_ref();
            let is_other_partition = sort_key.is_some_and(|sort_key| {
                let partition = target.attributes.get(config.attributes.id.as_ref());
                let partition = partition.and_then(|partition| partition.as_s().ok());
                !partition.is_some_and(|partition| sort_key.partition.may_be(partition))
            });
            plain_name(target.table) == plain_name(&config.table) && !is_other_partition
        })
    }
}

/// Without the items, which hold the application's data.
impl fmt::Debug for DynamoDbEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDbEffects")
            .field("items", &self.items.len())
            .field("bytes", &self.bytes)
            .finish()
    }
}

/// The item that an effect is for.
struct Target<'a> {
    table: &'a str,
    /// The key, or all attributes of an item that is put.
    attributes: &'a Item,
    is_put: bool,
}

impl<'a> Target<'a> {
    fn of(item: &'a TransactWriteItem) -> Option<Self> {
        let key = |table, attributes| Self { table, attributes, is_put: false };
        if let Some(put) = item.put() {
            return Some(Self { is_put: true, ..key(put.table_name(), put.item()) });
        }
        if let Some(update) = item.update() {
            return Some(key(update.table_name(), update.key()));
        }
        if let Some(delete) = item.delete() {
            return Some(key(delete.table_name(), delete.key()));
        }
        item.condition_check().map(|check| key(check.table_name(), check.key()))
    }

    fn is_same(&self, other: &Target<'_>) -> bool {
        let has =
            |item: &Item, key: &Item| key.iter().all(|(name, value)| item.get(name) == Some(value));
        let is_same_item = match (self.is_put, other.is_put) {
            (true, false) => has(self.attributes, other.attributes),
            (false, true) => has(other.attributes, self.attributes),
            (true, true) | (false, false) => self.attributes == other.attributes,
        };
        plain_name(self.table) == plain_name(other.table) && is_same_item
    }
}

/// The name of a table that may be given by its ARN.
pub(crate) fn plain_name(table: &str) -> &str {
    table.rsplit_once(":table/").map_or(table, |(_, name)| name)
}

fn actions(item: &TransactWriteItem) -> usize {
    let actions = [
        item.put().is_some(),
        item.update().is_some(),
        item.delete().is_some(),
        item.condition_check().is_some(),
    ];
    actions.into_iter().filter(|is_there| *is_there).count()
}

/// The bytes of the values of expressions, which become parts of an item.
fn values(item: &TransactWriteItem) -> usize {
    item.update().and_then(|update| update.expression_attribute_values()).map_or(0, size)
}

#[cfg(test)]
mod tests {
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
            assert!(
                matches!(refused, Err(DynamoDbEffectError::ItemTooLarge { .. })),
                "{refused:?}"
            );
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
}
