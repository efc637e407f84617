//! The index of what workers have left, in which there is nothing else.
//!
//! An item with messages or a payload has one attribute more, and an index with that attribute as its key has only such
//! items. The attribute says in which of the [`SHARDS`] of the index the item is: DynamoDB takes 1000 writes a second
//! for one value of a partition key, and an item that comes and goes takes two.
//!
//! An index is eventually consistent, so it only says where to look. Each item that it names is read from the table.

use std::num::NonZeroUsize;

use aws_sdk_dynamodb::{
    error::{ProvideErrorMetadata, SdkError},
    operation::query::QueryError,
    types::AttributeValue,
};
use lambda_idempotency_core::{
    browse::{Cursor, Left, Page, PageBuilder},
    request_slots::Purpose,
    retry::Budget,
    store::StoreErrorKind,
};

use crate::{
    error::{self, Doing, Failure, permissions, sdk_failure},
    item::Item,
    limits::{backoff, leave},
    read::Listing,
    store::DynamoDbStore,
    value::{SHARDS, shard},
};

/// How many records are read at a time: their texts may have megabytes together.
const AT_A_TIME: usize = 25;

impl DynamoDbStore {
    /// A page of one shard: one request to the index, and a few or none to the table.
    pub(crate) async fn left_in_index(
        &self,
        index: &str,
        left: Left,
        after: Option<&Cursor>,
        limit: NonZeroUsize,
        budget: &Budget<'_>,
    ) -> Result<Page, Failure> {
        let position = match after {
            None => Position { shard: 0, after: None },
            Some(cursor) => {
                Position::read(cursor.as_str()).ok_or_else(|| other_listing("this index"))?
            }
        };
        let most = i32::try_from(limit.get()).unwrap_or(i32::MAX);
        let Listing { items, last, .. } =
            self.index_page(index, left, &position, most, budget).await?;
        let (mut keys, mut last) = (Vec::new(), last.as_ref());
        for item in &items {
            let key = self.key(item)?;
            if self.is_ours(item, &key) {
                keys.push((key, item));
            }
        }
        let (mut page, mut unread) = (PageBuilder::new(limit), keys.as_slice());
        while let Some((chunk, rest)) = unread.split_at_checked(unread.len().min(AT_A_TIME))
            && !chunk.is_empty()
        {
            let keys = chunk.iter().map(|(key, _)| key);
            let texts = Left::unread(Some(left));
            let mut records = self.read_all(keys, texts, Purpose::Claim, budget).await;
            for (key, _) in chunk {
                // The index may not know of one that was deleted.
                page.add(key.clone(), records.remove(key).unwrap_or(Ok(None)))?;
            }
            unread = rest;
            if !(page.has_room() || rest.is_empty()) {
                // The next page begins behind the last one that was read.
                last = chunk.last().map(|(_, item)| *item);
                break;
            }
        }
        let next = match last {
            Some(last) => Some(self.after(position.shard, last)?.text()),
            None if position.shard.saturating_add(1) < SHARDS => {
                let shard = position.shard.saturating_add(1);
                Some(Position { shard, after: None }.text())
            }
            None => None,
        };
        Ok(page.until(next.map(Cursor::from_text)))
    }

    async fn index_page(
        &self,
        index: &str,
        left: Left,
        position: &Position<'_>,
        limit: i32,
        budget: &Budget<'_>,
    ) -> Result<Listing, Failure> {
        let names = &self.config.attributes;
        let shard = shard(left, position.shard);
        let start = position.after.map(|(partition, sort)| {
            let text = |text: &str| AttributeValue::S(text.to_owned());
            let sort_key = names.sort_key.iter().map(|key| (key.name.to_string(), text(sort)));
            let mut start: Item = sort_key.collect();
            start.insert(names.id.to_string(), text(partition));
            start.insert(names.unfinished.to_string(), shard.clone());
            start
        });
        let mut backoff = backoff(&self.config);
        loop {
            if budget.left().is_zero() {
                return Err(error::too_late(&self.config));
            }
            let slot = self.slot(Purpose::Claim, budget).await?;
            let request = self
                .client
                .query()
                .table_name(&self.config.table)
                .index_name(index)
                .key_condition_expression("#unfinished = :shard")
                .expression_attribute_names("#unfinished", &*names.unfinished)
                .expression_attribute_values(":shard", shard.clone())
                .limit(limit)
                .set_exclusive_start_key(start.clone());
            let doing = Doing { config: &self.config, operation: "Query", permission: "Query" };
            let answer = self.attempt(request.send(), budget).await;
            leave(slot).await;
            let failure = match answer {
                Err(late) => error::timed_out(doing, late),
                Ok(Err(error)) => index_failure(doing, index, &error),
                Ok(Ok(output)) => {
                    return Ok(Listing::new(output.items, output.count, output.last_evaluated_key));
                }
            };
            if !(failure.retry && backoff.pause(budget).await) {
                return Err(failure);
            }
        }
    }

    /// Behind the last item of a page. An index with a sort key of its own has another key.
    fn after<'i>(&self, shard: u32, last: &'i Item) -> Result<Position<'i>, Failure> {
        let names = &self.config.attributes;
        let text = |name: &str| last.get(name).and_then(|value| value.as_s().ok());
        let sort = match &names.sort_key {
            None => Some(""),
            Some(sort_key) => text(&sort_key.name).map(String::as_str),
        };
        let attributes = 2 + usize::from(names.sort_key.is_some());
        match (text(&names.id), sort) {
            (Some(partition), Some(sort)) if last.len() == attributes => {
                Ok(Position { shard, after: Some((partition, sort)) })
            }
            _ => Err(error::other_schema(&self.config)),
        }
    }
}

/// The words of DynamoDB for an index that is missing, has another key, or is being built.
const UNFIT: [&str; 4] =
    ["specified index", "missed key schema element", "match schema type", "backfilling"];

fn index_failure(doing: Doing<'_>, index: &str, error: &SdkError<QueryError>) -> Failure {
    let failure = sdk_failure(doing, error);
    let message = error.message().unwrap_or_default();
    let is_unfit = UNFIT.iter().any(|sign| message.contains(sign));
    let cause = failure.cause().unwrap_or_default().to_owned();
    let other = |kind, remedy: String| {
        Failure::new(kind, format!("{doing}, index {index}: {remedy}")).because(cause)
    };
    let attribute = &doing.config.attributes.unfinished;
    match failure.kind() {
        StoreErrorKind::Refused if is_unfit => other(
            StoreErrorKind::Misconfigured,
            format!(
                "the table needs this global secondary index, with the partition key `{attribute}` of type S and no sort \
                 key, and it has to be active: make it so, or build the store without \
                 `DynamoDbStoreBuilder::index`, which reads the whole table"
            ),
        ),
        StoreErrorKind::Denied if !failure.retry => other(
            StoreErrorKind::Denied,
            format!(
                "the role needs {} on the index (the ARN of the table, and `/index/{index}`)",
                permissions(doing.permission)
            ),
        ),
        _ => failure,
    }
}

/// A position in the index: in this shard, after the item of this primary key.
struct Position<'c> {
    shard: u32,
    /// The partition key, and the sort key or nothing.
    after: Option<(&'c str, &'c str)>,
}

impl<'c> Position<'c> {
    fn text(&self) -> String {
        let Self { shard, after } = self;
        let after = after.map(|(partition, sort)| format!("{}:{partition}{sort}", partition.len()));
        format!("{shard} {}", after.unwrap_or_default())
    }

    fn read(text: &'c str) -> Option<Self> {
        let (shard, after) = text.split_once(' ')?;
        let shard = shard.parse().ok().filter(|shard| *shard < SHARDS)?;
        if after.is_empty() {
            return Some(Self { shard, after: None });
        }
        let (length, both) = after.split_once(':')?;
        let after = both.split_at_checked(length.parse().ok()?)?;
        Some(Self { shard, after: Some(after) })
    }
}

/// Whether a cursor is of an index. Read from the table, it would be a place anywhere, and what is before would be missing.
pub(crate) fn is_of_index(cursor: &Cursor) -> bool {
    Position::read(cursor.as_str()).is_some()
}

/// A cursor of the other listing: the store was built with an index since, or without one.
pub(crate) fn other_listing(what: &str) -> Failure {
    let context = format!("a cursor that is not of {what}: begin without one");
    Failure::new(StoreErrorKind::Refused, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        for after in [None, Some(("op#1", "")), Some(("a 7:ü", "op#1"))] {
            let text = Position { shard: 7, after }.text();
            let read = Position::read(&text).unwrap();
            assert_eq!((read.shard, read.after), (7, after), "{text}");
        }
        for text in ["", "op#1", "64 ", "1 4:op"] {
            assert!(Position::read(text).is_none(), "{text}");
        }
    }
}
