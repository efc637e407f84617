//! Consistent reads: one key by `GetItem`, several by `BatchGetItem`.

use crate::{
    attributes::Attributes,
    error::{self, Doing, Failure, sdk_failure},
    item::{Item, decode, key_text, primary_key},
    limits::{backoff, bounded, fit_key, leave},
    store::DynamoDbStore,
};
use aws_sdk_dynamodb::types::KeysAndAttributes;
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    request_slots::Purpose,
    retry::Budget,
    store::StoreError,
};
use std::collections::HashMap;

/// The most keys in a `BatchGetItem`.
const MOST: usize = 100;

/// The result for each key: the record or nothing, or the error.
pub(crate) type Answers<'k> = HashMap<&'k Key, Result<Option<IdempotencyRecord>, Failure>>;

/// The result of one request: items, and the keys that it left unprocessed.
struct Fetched<'k> {
    items: Vec<Item>,
    left: Vec<&'k Key>,
}

/// The answer to a request for items.
pub(crate) struct Listing {
    pub(crate) items: Vec<Item>,
    pub(crate) count: u64,
    pub(crate) last: Option<Item>,
}

impl Listing {
    pub(crate) fn new(items: Option<Vec<Item>>, count: i32, last: Option<Item>) -> Self {
        Self { items: items.unwrap_or_default(), count: u64::try_from(count).unwrap_or(0), last }
    }
}

/// The parts of an item that a request asks for, with the names in it; all of the item if no text is left out.
#[derive(Clone, Default)]
pub(crate) struct Projection {
    pub(crate) expression: Option<String>,
    pub(crate) names: Option<HashMap<String, String>>,
}

impl Projection {
    /// Without these texts, which have the names of fields.
    pub(crate) fn without(unread: &[&str], attributes: &Attributes) -> Self {
        if unread.is_empty() {
            return Self::default();
        }
        let alias = |(position, name): (usize, &str)| (format!("#{position}"), name.to_owned());
        let names: HashMap<_, _> = attributes.without(unread).enumerate().map(alias).collect();
        let expression = names.keys().cloned().collect::<Vec<_>>().join(", ");
        Self { expression: Some(expression), names: Some(names) }
    }
}

impl DynamoDbStore {
    /// The record of each key, in their order.
    pub(crate) async fn read_each(
        &self,
        keys: &[Key],
        call_deadline: Timestamp,
    ) -> Vec<Result<Option<IdempotencyRecord>, StoreError>> {
        let budget = self.config.timing.budget(call_deadline);
        let answers = self.read_all(keys.iter(), &[], Purpose::Claim, &budget).await;
        let missing = || Err(error::too_late(&self.config));
        let answer = |key| answers.get(key).cloned().unwrap_or_else(missing);
        keys.iter().map(|key| answer(key).map_err(|f| f.report(false))).collect()
    }

    /// Reads each key without these texts, once if it occurs twice, and repeats requests until the budget ends.
    pub(crate) async fn read_all<'k>(
        &self,
        keys: impl Iterator<Item = &'k Key>,
        unread: &[&str],
        purpose: Purpose,
        budget: &Budget<'_>,
    ) -> Answers<'k> {
        let mut keys: Vec<&Key> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        let mut unfit: Answers<'k> = HashMap::new();
        keys.retain(|key| match fit_key(&self.config, key) {
            Ok(()) => true,
            Err(failure) => unfit.insert(key, Err(failure)).is_some(),
        });
        let mut requests: Vec<BoxFuture<'_, _>> = Vec::new();
        for chunk in keys.chunks(MOST) {
            let projection = Projection::without(unread, &self.config.attributes);
            let read = self.read_chunk(chunk.to_vec(), projection, Some(purpose), budget);
            requests.push(Box::pin(read));
        }
        bounded(requests).await.into_iter().chain(unfit).collect()
    }

    /// Reads these keys, which one request can ask for. Without a purpose, in the slot that the caller has.
    pub(crate) async fn read_chunk<'k>(
        &self,
        mut pending: Vec<&'k Key>,
        projection: Projection,
        purpose: Option<Purpose>,
        budget: &Budget<'_>,
    ) -> Vec<(&'k Key, Result<Option<IdempotencyRecord>, Failure>)> {
        let mut answers = Vec::with_capacity(pending.len());
        let mut backoff = backoff(&self.config);
        loop {
            if budget.left().is_zero() {
                let failure = error::too_late(&self.config);
                answers.extend(pending.into_iter().map(|key| (key, Err(failure.clone()))));
                return answers;
            }
            let slot = match purpose {
                None => None,
                Some(purpose) => match self.slot(purpose, budget).await {
                    Ok(slot) => Some(slot),
                    Err(failure) => {
                        answers.extend(pending.into_iter().map(|key| (key, Err(failure.clone()))));
                        return answers;
                    }
                },
            };
            let page = self.read_page(&pending, projection.clone(), budget).await;
            if let Some(slot) = slot {
                leave(slot).await;
            }
            self.heard(page.as_ref().err());
            let (pause, failure) = match page {
                Ok(page) => {
                    let progress = page.left.len() < pending.len();
                    let mut found = self.by_key(&page.items);
                    for key in pending {
                        if page.left.contains(&key) {
                            continue;
                        }
                        answers.push((key, found.remove(key.as_str()).transpose()));
                    }
                    pending = page.left;
                    (!progress, error::unprocessed(&self.config))
                }
                Err(failure) => (true, failure),
            };
            if pending.is_empty() {
                return answers;
            }
            if pause && !(failure.retry && backoff.pause(budget).await) {
                answers.extend(pending.into_iter().map(|key| (key, Err(failure.clone()))));
                return answers;
            }
            if pause {
                tracing::debug!(table = %self.config.table, keys = pending.len(), kind = ?failure.kind(), "reading again");
            }
        }
    }

    fn by_key<'i>(
        &self,
        items: &'i [Item],
    ) -> HashMap<&'i str, Result<IdempotencyRecord, Failure>> {
        let names = &self.config.attributes;
        let read = |item| decode(names, item).map_err(|c| error::corrupt(&self.config, c));
        items.iter().filter_map(|item| Some((key_text(names, item)?, read(item)))).collect()
    }

    async fn read_page<'k>(
        &self,
        keys: &[&'k Key],
        projection: Projection,
        budget: &Budget<'_>,
    ) -> Result<Fetched<'k>, Failure> {
        match keys {
            [key] => self.get_one(key, projection, budget).await,
            _ => self.get_many(keys, projection, budget).await,
        }
    }

    async fn get_one<'k>(
        &self,
        key: &Key,
        projection: Projection,
        budget: &Budget<'_>,
    ) -> Result<Fetched<'k>, Failure> {
        let doing = Doing { config: &self.config, operation: "GetItem", permission: "GetItem" };
        let request = self
            .client
            .get_item()
            .table_name(&self.config.table)
            .set_key(Some(primary_key(&self.config.attributes, key)))
            .set_projection_expression(projection.expression)
            .set_expression_attribute_names(projection.names)
            .consistent_read(true);
        match self.attempt(request.send(), budget).await {
            Err(late) => Err(error::timed_out(doing, late)),
            Ok(Err(error)) => Err(sdk_failure(doing, &error)),
            Ok(Ok(output)) => {
                Ok(Fetched { items: output.item.into_iter().collect(), left: vec![] })
            }
        }
    }

    async fn get_many<'k>(
        &self,
        keys: &[&'k Key],
        projection: Projection,
        budget: &Budget<'_>,
    ) -> Result<Fetched<'k>, Failure> {
        let names = &self.config.attributes;
        let doing =
            Doing { config: &self.config, operation: "BatchGetItem", permission: "BatchGetItem" };
        let asked = keys.iter().map(|key| primary_key(names, key)).collect();
        let asked = KeysAndAttributes::builder()
            .set_keys(Some(asked))
            .set_projection_expression(projection.expression)
            .set_expression_attribute_names(projection.names)
            .consistent_read(true);
        let asked = asked.build().map_err(|_| error::unprocessed(&self.config))?;
        let request = self.client.batch_get_item().request_items(&self.config.table, asked);
        match self.attempt(request.send(), budget).await {
            Err(late) => Err(error::timed_out(doing, late)),
            Ok(Err(error)) => Err(sdk_failure(doing, &error)),
            Ok(Ok(output)) => {
                // The request named one table, by name or ARN, so all items are from it.
                let items = output.responses.unwrap_or_default().into_values().flatten().collect();
                let left = output.unprocessed_keys.unwrap_or_default();
                let left: Vec<Item> = left.into_values().flat_map(|left| left.keys).collect();
                let left: Vec<_> = left.iter().filter_map(|key| key_text(names, key)).collect();
                let left = keys.iter().filter(|key| left.contains(&key.as_str())).copied();
                Ok(Fetched { items, left: left.collect() })
            }
        }
    }
}
