//! The poller of an event source mapping: reads batches, invokes the function, and acts on its answer.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::Value;
use uuid::Uuid;

use super::event::Source;
use super::report::{DeadLetter, Disposition};
use crate::function::InvocationResult;

/// A source that is polled: a state machine without clock or network, so that tests need not wait.
pub trait Poller: Send {
    /// Which source it is.
    fn source(&self) -> Source;

    /// Reads the next batch, if one can be read now.
    fn receive(&mut self, now: Instant) -> Option<Batch>;

    /// Ends a batch after its invocation, and returns the disposition of each of its records.
    fn dispose(
        &mut self,
        batch: &Batch,
        result: &InvocationResult,
        now: Instant,
    ) -> Vec<Disposition>;

    /// How many records are neither done nor given up.
    fn left(&self) -> usize;

    /// When a batch may become readable without another answer; `None` if none will.
    fn next(&self) -> Option<Instant>;

    /// The records that were given up.
    fn into_dead_letters(self: Box<Self>) -> Vec<DeadLetter>;
}

/// Records that were read together.
#[derive(Clone, Debug)]
pub struct Batch {
    request_id: String,
    event: Value,
    deliveries: Vec<Delivery>,
}

/// One record of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// The shard or partition.
    pub(crate) lane: String,
    /// The number by which its queue finds it.
    pub(crate) serial: u64,
    pub(crate) id: Option<String>,
    /// The name of the record in the function's answer: of Kafka's an object with partition and offset, of others a text.
    pub(crate) item: Option<Value>,
    /// The number of this delivery of the record, from 1.
    pub(crate) count: u32,
}

impl Batch {
    pub(crate) fn new(event: Value, deliveries: Vec<Delivery>) -> Self {
        Self { request_id: Uuid::new_v4().to_string(), event, deliveries }
    }

    /// The same in an invocation with this id, as its retries have it.
    pub(crate) fn with_request_id(self, request_id: String) -> Self {
        Self { request_id, ..self }
    }

    /// The id of its invocation.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The event for the function.
    pub fn event(&self) -> &Value {
        &self.event
    }

    /// The id of each record, if it has one, and how often it has been delivered.
    pub fn records(&self) -> impl Iterator<Item = (Option<&str>, u32)> {
        self.deliveries.iter().map(|delivery| (delivery.id.as_deref(), delivery.count))
    }

    pub(crate) fn deliveries(&self) -> &[Delivery] {
        &self.deliveries
    }

    /// The positions of the records that failed, by the function's answer; `None` if the whole batch failed. An answer
    /// that the poller does not understand fails the whole batch.
    pub(crate) fn failed(&self, result: &InvocationResult) -> Option<BTreeSet<usize>> {
        let InvocationResult::Response(response) = result else { return None };
        if response.is_null() {
            return Some(BTreeSet::new());
        }
        let failures = match response.as_object()?.get("batchItemFailures") {
            None | Some(Value::Null) => return Some(BTreeSet::new()),
            Some(failures) => failures.as_array()?,
        };
        let mut failed = BTreeSet::new();
        for failure in failures {
            let item = failure.get("itemIdentifier")?;
            let named = |(_, delivery): &(usize, &Delivery)| delivery.item.as_ref() == Some(item);
            let mut named = self.deliveries.iter().enumerate().filter(named).peekable();
            named.peek()?;
            failed.extend(named.map(|(position, _)| position));
        }
        Some(failed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failed(response: Value) -> Option<Vec<usize>> {
        let delivery = |item: Value| Delivery {
            lane: String::new(),
            serial: 0,
            id: None,
            item: Some(item),
            count: 1,
        };
        let offset = json!({ "partition": "p", "offset": 7 });
        let batch = Batch::new(Value::Null, [json!("a"), json!("b"), offset].map(delivery).into());
        assert_eq!(batch.failed(&InvocationResult::TimedOut), None);
        let failed = batch.failed(&InvocationResult::Response(response));
        failed.map(|failed| failed.into_iter().collect())
    }

    #[test]
    fn a_response_without_failures_is_success() {
        for response in [
            json!(null),
            json!({}),
            json!({"batchItemFailures": null}),
            json!({"batchItemFailures": []}),
        ] {
            assert_eq!(failed(response.clone()), Some(vec![]), "{response}");
        }
    }

    #[test]
    fn only_named_records_fail_and_an_invalid_response_fails_all() {
        let one =
            |failure: Value| json!({ "batchItemFailures": [{ "itemIdentifier": "a" }, failure] });
        assert_eq!(failed(one(json!({ "itemIdentifier": "b" }))), Some(vec![0, 1]));
        let offset = json!({ "itemIdentifier": { "partition": "p", "offset": 7 } });
        assert_eq!(failed(one(offset)), Some(vec![0, 2]));
        for response in [
            one(json!({ "itemIdentifier": "" })),
            one(json!({ "itemIdentifier": null })),
            one(json!({ "itemIdentifier": "unknown" })),
            one(json!({ "itemIdentifier": "p@7" })),
            one(json!({ "itemIdentifier": { "partition": "p", "offset": 8 } })),
            one(json!({ "messageId": "b" })),
            one(json!("b")),
            json!({ "batchItemFailures": "a" }),
            json!("ok"),
        ] {
            assert_eq!(failed(response.clone()), None, "{response}");
        }
    }
}
