//! Pages of all items: `Scan`, or `Query` where all records are in one partition. Where each record has a partition of
//! its own, a `Scan` passes over all items of the table, and a page has those of them that are records.
//!
//! The reads are strongly consistent, at a read unit for each 4 KB of what they pass over: a listing shows
//! what writes of operators compare with.

use std::num::NonZeroUsize;

use aws_sdk_dynamodb::types::{AttributeValue, Select};
use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left, Page, PageBuilder},
    clock::{BoxFuture, Timestamp},
    key::Key,
    request_slots::Purpose,
    retry::Budget,
    store::{Guard, RecordVersion, StoreError, Verdict, Write},
};

use crate::{
    attributes::{Partition, SortKey},
    error::{self, Doing, Failure, sdk_failure},
    index::{is_of_index, other_listing},
    item::{Item, decode, key_text, primary_key},
    limits::{backoff, leave},
    read::{Listing, Projection},
    store::DynamoDbStore,
};

/// A `Scan` that passes over items of others asks for at least so many: the fewer it asks for, the more requests there
/// are, and each costs a read unit at least.
const PASSED_OVER: i32 = 500;

/// A request for items.
struct Span {
    /// After the item of this primary key.
    after: Option<Item>,
    /// At most so many items; `None` if they are only counted.
    limit: Option<i32>,
    projection: Projection,
}

impl DynamoDbStore {
    /// Sends the request until it is answered, or the budget ends.
    async fn browse(&self, span: &Span, budget: &Budget<'_>) -> Result<Listing, Failure> {
        let mut backoff = backoff(&self.config);
        loop {
            if budget.left().is_zero() {
                return Err(error::too_late(&self.config));
            }
            let slot = self.slot(Purpose::Claim, budget).await?;
            let answer = match self.partition() {
                None => self.scan(span, None, budget).await,
                Some(Partition::Derived { prefix }) => self.scan(span, Some(prefix), budget).await,
                Some(Partition::Static(partition)) => self.query(span, partition, budget).await,
            };
            leave(slot).await;
            match answer {
                Err(failure) if failure.retry && backoff.pause(budget).await => {}
                answer => return answer,
            }
        }
    }

    fn partition(&self) -> Option<&Partition> {
        self.config.attributes.sort_key.as_ref().map(|sort_key| &sort_key.partition)
    }

    /// Scans all items, or those in partitions with this prefix.
    async fn scan(
        &self,
        span: &Span,
        prefix: Option<&str>,
        budget: &Budget<'_>,
    ) -> Result<Listing, Failure> {
        let doing = Doing { config: &self.config, operation: "Scan", permission: "Scan" };
        let request = self
            .client
            .scan()
            .table_name(&self.config.table)
            .consistent_read(true)
            .set_limit(span.limit)
            .set_select(span.limit.is_none().then_some(Select::Count))
            .set_projection_expression(span.projection.expression.clone())
            .set_expression_attribute_names(span.projection.names.clone())
            .set_exclusive_start_key(span.after.clone());
        let request = match prefix {
            None => request,
            Some(prefix) => request
                .filter_expression("begins_with(#id, :prefix)")
                .expression_attribute_names("#id", &*self.config.attributes.id)
                .expression_attribute_values(":prefix", AttributeValue::S(prefix.to_owned())),
        };
        match self.attempt(request.send(), budget).await {
            Err(late) => Err(error::timed_out(doing, late)),
            Ok(Err(error)) => Err(sdk_failure(doing, &error)),
            Ok(Ok(output)) => {
                Ok(Listing::new(output.items, output.count, output.last_evaluated_key))
            }
        }
    }

    async fn query(
        &self,
        span: &Span,
        partition: &str,
        budget: &Budget<'_>,
    ) -> Result<Listing, Failure> {
        let doing = Doing { config: &self.config, operation: "Query", permission: "Query" };
        let request = self
            .client
            .query()
            .table_name(&self.config.table)
            .consistent_read(true)
            .key_condition_expression("#id = :partition")
            .set_projection_expression(span.projection.expression.clone())
            .set_expression_attribute_names(span.projection.names.clone())
            .expression_attribute_names("#id", &*self.config.attributes.id)
            .expression_attribute_values(":partition", AttributeValue::S(partition.to_owned()))
            .set_limit(span.limit)
            .set_select(span.limit.is_none().then_some(Select::Count))
            .set_exclusive_start_key(span.after.clone());
        match self.attempt(request.send(), budget).await {
            Err(late) => Err(error::timed_out(doing, late)),
            Ok(Err(error)) => Err(sdk_failure(doing, &error)),
            Ok(Ok(output)) => {
                Ok(Listing::new(output.items, output.count, output.last_evaluated_key))
            }
        }
    }

    /// The cursor at this last item. A table with another key schema has none that this store could name: a key of
    /// another attribute, or of one more.
    fn cursor(&self, last: &Item) -> Result<Cursor, Failure> {
        let names = &self.config.attributes;
        if let (Some(SortKey { name, .. }), Some(Partition::Derived { .. })) =
            (&names.sort_key, self.partition())
        {
            // It may be an item that is not a record, with any partition.
            let text = |name: &str| last.get(name).and_then(|value| value.as_s().ok());
            return match (text(&names.id), text(name), last.len()) {
                (Some(partition), Some(sort), 2) => {
                    Ok(Cursor::from_text(format!("{}:{partition}{sort}", partition.len())))
                }
                _ => Err(error::other_schema(&self.config)),
            };
        }
        let key = self.key(last)?;
        if primary_key(names, &key) == *last {
            Ok(Cursor::from_text(key.as_str()))
        } else {
            Err(error::other_schema(&self.config))
        }
    }

    /// The primary key of the item at a cursor.
    fn start_of(&self, cursor: &Cursor) -> Item {
        let names = &self.config.attributes;
        let of_key = |text: &str| primary_key(names, &Key::from_text(text));
        let (Some(SortKey { name, .. }), Some(Partition::Derived { .. })) =
            (&names.sort_key, self.partition())
        else {
            return of_key(cursor.as_str());
        };
        let parts = cursor.as_str().split_once(':').and_then(|(length, both)| {
            let (partition, sort) = both.split_at_checked(length.parse().ok()?)?;
            let text = |text: &str| AttributeValue::S(text.to_owned());
            Some([(names.id.to_string(), text(partition)), (name.to_string(), text(sort))])
        });
        // A text that is not a cursor: DynamoDB goes on after the place where that key would be.
        parts.map_or_else(|| of_key(cursor.as_str()), |parts| parts.into_iter().collect())
    }

    /// Whether an item is of this store, where others have a similar partition.
    pub(crate) fn is_ours(&self, item: &Item, key: &Key) -> bool {
        let names = &self.config.attributes;
        item.get(names.id.as_ref()) == primary_key(names, key).get(names.id.as_ref())
    }

    /// The key of an item. Every item of a table has the attributes of its key, so a table with an item without ours
    /// has another key.
    pub(crate) fn key(&self, item: &Item) -> Result<Key, Failure> {
        let key = key_text(&self.config.attributes, item).map(Key::from_text);
        key.ok_or_else(|| error::other_schema(&self.config))
    }
}

impl DynamoDbStore {
    /// A page of all items, without the texts that it leaves out.
    async fn page_of(
        &self,
        left: Option<Left>,
        after: Option<&Cursor>,
        limit: NonZeroUsize,
        budget: &Budget<'_>,
    ) -> Result<Page, Failure> {
        if after.is_some_and(is_of_index) {
            return Err(other_listing("the whole table"));
        }
        let names = &self.config.attributes;
        let most = i32::try_from(limit.get()).unwrap_or(i32::MAX);
        let is_shared = matches!(self.partition(), Some(Partition::Derived { .. }));
        let span = Span {
            after: after.map(|cursor| self.start_of(cursor)),
            limit: Some(if is_shared { most.max(PASSED_OVER) } else { most }),
            projection: Projection::without(Left::unread(left), names),
        };
        let Listing { items, mut last, .. } = self.browse(&span, budget).await?;
        let mut page = PageBuilder::new(limit);
        let mut before = None;
        for item in &items {
            let key = self.key(item)?;
            if !self.is_ours(item, &key) {
                continue;
            }
            if !page.has_room() {
                // The next page begins behind the last record of this one.
                last = before;
                break;
            }
            let read = decode(names, item).map(Some);
            before = Some(primary_key(names, &key));
            page.add(key, read.map_err(|problem| error::corrupt(&self.config, problem)))?;
        }
        let next = last.as_ref().map(|last| self.cursor(last)).transpose();
        Ok(page.until(next?))
    }
}

impl Browse for DynamoDbStore {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let budget = self.config.timing.budget(call_deadline);
            let page = self.page_of(None, after, limit, &budget).await;
            page.map_err(|failure| failure.report(false))
        })
    }

    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let budget = self.config.timing.budget(call_deadline);
            let page = match &self.config.index {
                None => self.page_of(Some(left), after, limit, &budget).await,
                Some(index) => self.left_in_index(index, left, after, limit, &budget).await,
            };
            page.map_err(|failure| failure.report(false))
        })
    }

    fn mark_sent<'a>(
        &'a self,
        records: &'a [(Key, RecordVersion)],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), StoreError>>> {
        Box::pin(async move {
            let mark = |(key, seen): &(Key, RecordVersion)| {
                let guard = Guard::Unchanged(seen.clone());
                Write::new(key.clone(), guard, Some(seen.to_record()))
            };
            let marks: Vec<_> = records.iter().map(mark).collect();
            let verdicts = self.write_all(&marks, call_deadline).await.into_iter();
            let done = |verdict| match verdict {
                Verdict::Unknown(error) => Err(error),
                _ => Ok(()),
            };
            verdicts.map(done).collect()
        })
    }

    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let budget = self.config.timing.budget(call_deadline);
            let (mut count, mut span) =
                (0u64, Span { after: None, limit: None, projection: Projection::default() });
            loop {
                let answer = self.browse(&span, &budget).await;
                let answer = answer.map_err(|failure| failure.report(false))?;
                count = count.saturating_add(answer.count);
                let Some(last) = answer.last else { return Ok(count) };
                // As `page` does: a table with another key is an error.
                self.cursor(&last).map_err(|failure| failure.report(false))?;
                span.after = Some(last);
            }
        })
    }
}
