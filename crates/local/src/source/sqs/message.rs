//! A message of a queue, and the record of it in an event.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::source::poller::Delivery;

#[derive(Clone, Debug)]
pub(super) struct Message {
    /// The queue's number for the message, because message ids may be missing or repeated.
    pub(super) serial: u64,
    pub(super) record: Value,
    pub(super) receives: u32,
    pub(super) visible_at: Instant,
    sent_ms: u64,
    first_received_ms: Option<u64>,
}

impl Message {
    pub(super) fn new(serial: u64, record: Value, now: Instant) -> Self {
        let sent = attribute(&record, "SentTimestamp").and_then(|sent| sent.parse().ok());
        let sent_ms = sent.unwrap_or_else(|| epoch_ms(now));
        Self { serial, record, receives: 0, visible_at: now, sent_ms, first_received_ms: None }
    }

    /// The message group in a FIFO queue. Fair queues have groups too, but keep no order.
    pub(super) fn group(&self) -> Option<&str> {
        let arn = self.record.get("eventSourceARN").and_then(Value::as_str);
        arn.filter(|arn| arn.ends_with(".fifo"))?;
        attribute(&self.record, "MessageGroupId")
    }

    fn id(&self) -> Option<&str> {
        self.record.get("messageId").and_then(Value::as_str)
    }

    /// Delivers it once more.
    pub(super) fn receive(&mut self, now: Instant) -> (Value, Delivery) {
        self.receives += 1;
        let first_received_ms = *self.first_received_ms.get_or_insert_with(|| epoch_ms(now));
        let delivery = Delivery {
            item: self.id().map(Value::from),
            lane: String::new(),
            serial: self.serial,
            id: self.id().map(str::to_owned),
            count: self.receives,
        };
        (self.stamped(first_received_ms), delivery)
    }

    /// The record as the function gets it: with a receipt handle and counts of this delivery.
    fn stamped(&self, first_received_ms: u64) -> Value {
        let mut record = self.record.clone();
        if self.id().is_none_or(str::is_empty) {
            return record;
        }
        if let Value::Object(record) = &mut record {
            record.insert("receiptHandle".to_owned(), Value::String(Uuid::new_v4().to_string()));
            let attributes = record.entry("attributes").or_insert_with(|| json!({}));
            if let Value::Object(attributes) = attributes {
                for (name, value) in [
                    ("ApproximateReceiveCount", u64::from(self.receives)),
                    ("ApproximateFirstReceiveTimestamp", first_received_ms),
                    ("SentTimestamp", self.sent_ms),
                ] {
                    attributes.insert(name.to_owned(), Value::String(value.to_string()));
                }
            }
        }
        record
    }
}

/// An instant in milliseconds since 1970.
fn epoch_ms(at: Instant) -> u64 {
    let ago = Instant::now().saturating_duration_since(at);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.saturating_sub(ago).as_millis()).unwrap_or(u64::MAX)
}

fn attribute<'r>(record: &'r Value, name: &str) -> Option<&'r str> {
    record.get("attributes")?.get(name)?.as_str()
}
