//! Pages of all items: `Scan`, or `Query` where all records are in one partition.
//!
//! The reads are strongly consistent, at a read unit for each 4 KB of what they pass over: a listing shows
//! what writes of operators compare with.

use std::num::NonZeroUsize;

use aws_sdk_dynamodb::types::{AttributeValue, Select};
use lambda_idempotency_core::{
    browse::{Browse, Cursor, Page},
    clock::{BoxFuture, Timestamp},
    key::Key,
    store::StoreError,
};

use crate::{
    attributes::SortKey,
    error::{Doing, Failure, sdk_failure},
    item::{Item, decode, key_text, primary_key},
    retry::{Backoff, Budget},
    store::DynamoDbStore,
};

/// What one request answers.
struct Answer {
    items: Vec<Item>,
    count: u64,
    last: Option<Item>,
}

impl Answer {
    fn new(items: Option<Vec<Item>>, count: i32, last: Option<Item>) -> Self {
        Self { items: items.unwrap_or_default(), count: u64::try_from(count).unwrap_or(0), last }
    }
}

/// What one request asks for.
struct Ask {
    /// After the item of this key.
    after: Option<Key>,
    /// At most so many items; `None` if they are only counted.
    limit: Option<i32>,
}

impl DynamoDbStore {
    /// Sends the request until it is answered, or the budget ends.
    async fn browse(&self, ask: &Ask, budget: &Budget<'_>) -> Result<Answer, Failure> {
        let mut backoff = Backoff::new(&self.config);
        loop {
            if budget.left().is_zero() {
                return Err(Failure::too_late(&self.config));
            }
            let answer = match &self.config.attributes.sort_key {
                None => self.scan(ask, budget).await,
                Some(sort_key) => self.query(ask, sort_key, budget).await,
            };
            match answer {
                Err(failure) if failure.retry && backoff.pause(budget).await => {}
                answer => return answer,
            }
        }
    }

    fn start_of(&self, ask: &Ask) -> Option<Item> {
        ask.after.as_ref().map(|key| primary_key(&self.config.attributes, key))
    }

    async fn scan(&self, ask: &Ask, budget: &Budget<'_>) -> Result<Answer, Failure> {
        let doing = Doing { config: &self.config, operation: "Scan", permission: "Scan" };
        let request = self
            .client
            .scan()
            .table_name(&self.config.table)
            .consistent_read(true)
            .set_limit(ask.limit)
            .set_select(ask.limit.is_none().then_some(Select::Count))
            .set_exclusive_start_key(self.start_of(ask));
        match budget.attempt(request.send()).await {
            Err(late) => Err(Failure::timed_out(doing, late)),
            Ok(Err(error)) => Err(sdk_failure(doing, &error)),
            Ok(Ok(output)) => {
                Ok(Answer::new(output.items, output.count, output.last_evaluated_key))
            }
        }
    }

    async fn query(
        &self,
        ask: &Ask,
        sort_key: &SortKey,
        budget: &Budget<'_>,
    ) -> Result<Answer, Failure> {
        let doing = Doing { config: &self.config, operation: "Query", permission: "Query" };
        let request = self
            .client
            .query()
            .table_name(&self.config.table)
            .consistent_read(true)
            .key_condition_expression("#id = :partition")
            .expression_attribute_names("#id", &*self.config.attributes.id)
            .expression_attribute_values(
                ":partition",
                AttributeValue::S(sort_key.partition.to_string()),
            )
            .set_limit(ask.limit)
            .set_select(ask.limit.is_none().then_some(Select::Count))
            .set_exclusive_start_key(self.start_of(ask));
        match budget.attempt(request.send()).await {
            Err(late) => Err(Failure::timed_out(doing, late)),
            Ok(Err(error)) => Err(sdk_failure(doing, &error)),
            Ok(Ok(output)) => {
                Ok(Answer::new(output.items, output.count, output.last_evaluated_key))
            }
        }
    }

    /// The key to go on after. A table with another key schema has none that this store could name: a key of another
    /// attribute, or of one more.
    fn next(&self, last: Option<Item>) -> Result<Option<Key>, Failure> {
        let Some(last) = last else { return Ok(None) };
        let key = self.key(&last)?;
        if primary_key(&self.config.attributes, &key) == last {
            Ok(Some(key))
        } else {
            Err(Failure::other_schema(&self.config))
        }
    }

    /// The key of an item. Every item of a table has the attributes of its key, so a table with an item without ours
    /// has another key.
    fn key(&self, item: &Item) -> Result<Key, Failure> {
        let key = key_text(&self.config.attributes, item).map(Key::from_text);
        key.ok_or_else(|| Failure::other_schema(&self.config))
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
            let budget = Budget::new(&self.config, call_deadline);
            let after = after.map(|cursor| Key::from_text(cursor.as_str()));
            let limit = Some(i32::try_from(limit.get()).unwrap_or(i32::MAX));
            let answer = self.browse(&Ask { after, limit }, &budget).await;
            let answer = answer.map_err(|failure| failure.report(false))?;
            let names = &self.config.attributes;
            let items = answer.items.iter().map(|item| {
                let record = decode(names, item)
                    .map_err(|problem| Failure::corrupt(&self.config, problem).report(false));
                Ok((self.key(item)?, record))
            });
            let items = items.collect::<Result<_, Failure>>();
            let items = items.map_err(|failure| failure.report(false))?;
            let next = self.next(answer.last).map_err(|failure| failure.report(false))?;
            Ok(Page::new(items, next.map(|key| Cursor::from_text(key.as_str()))))
        })
    }

    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let budget = Budget::new(&self.config, call_deadline);
            let (mut count, mut ask) = (0u64, Ask { after: None, limit: None });
            loop {
                let answer = self.browse(&ask, &budget).await;
                let answer = answer.map_err(|failure| failure.report(false))?;
                count = count.saturating_add(answer.count);
                let next = self.next(answer.last).map_err(|failure| failure.report(false))?;
                let Some(key) = next else { return Ok(count) };
                ask.after = Some(key);
            }
        })
    }
}
