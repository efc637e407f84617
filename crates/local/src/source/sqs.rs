//! A standard queue, and the poller between it and the function.
//!
//! A message that is received becomes invisible for a while. If its batch succeeds, it is deleted; if not, it appears
//! again when that while is over, with a new receipt handle and a higher receive count. Received too often, it goes to
//! the dead-letter queue: here at the last failure, where AWS would wait for the next attempt to receive it.
//!
//! [`Queue`] has neither a clock nor a network, so that every rule can be tested without waiting.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{BatchVerdict, DeadLetter, Fate, Source};
use crate::InvocationResult;
use crate::function::new_id;

/// Settings of the queue and of its event source mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqsConfig {
    /// How long a received message stays invisible. AWS demands at least the function's timeout, and advises six times
    /// that; less makes messages appear again while they are still being worked on, which a test may want. `None` is
    /// the function's timeout.
    pub visibility: Option<Duration>,
    /// How many messages an invocation gets at most.
    pub batch_size: usize,
    /// How often a message is received before it goes to the dead-letter queue.
    pub max_receive_count: u32,
    /// Whether the poller reads `batchItemFailures` in the function's answer.
    pub report_batch_item_failures: bool,
}

impl Default for SqsConfig {
    /// Batches of 10, partial failures on, five receives. Fewer may not do for a message whose
    /// process died: until the dead one's lease is over, its next deliveries find the key busy.
    fn default() -> Self {
        Self {
            visibility: None,
            batch_size: 10,
            max_receive_count: 5,
            report_batch_item_failures: true,
        }
    }
}

/// A standard queue with its dead-letter queue.
#[derive(Clone, Debug)]
pub struct Queue {
    config: SqsConfig,
    visibility: Duration,
    messages: Vec<Message>,
    dead: Vec<DeadLetter>,
    sent: u64,
}

#[derive(Clone, Debug)]
struct Message {
    serial: u64,
    record: Value,
    receives: u32,
    visible_at: Instant,
    sent_ms: u64,
    first_received_ms: Option<u64>,
}

/// Messages that were received together.
#[derive(Clone, Debug)]
pub struct Batch {
    event: Value,
    received: Vec<Received>,
}

#[derive(Clone, Debug)]
struct Received {
    serial: u64,
    id: Option<String>,
    receives: u32,
}

impl Batch {
    /// The event for the function: `{"Records":[...]}`.
    pub fn event(&self) -> &Value {
        &self.event
    }

    /// Of each message: its id, if it has one, and how often it has been received.
    pub fn messages(&self) -> impl Iterator<Item = (Option<&str>, u32)> {
        self.received.iter().map(|received| (received.id.as_deref(), received.receives))
    }
}

impl Queue {
    /// An empty queue. A `visibility` that was left open is taken from the function's timeout.
    pub fn new(config: SqsConfig, function_timeout: Duration) -> Self {
        let visibility = config.visibility.unwrap_or(function_timeout);
        Self { config, visibility, messages: Vec::new(), dead: Vec::new(), sent: 0 }
    }

    /// Sends a message in the shape of an SQS record. What it lacks of a real one is added when it is received; one
    /// without a `messageId` is left exactly as it is.
    pub fn send(&mut self, record: Value, now: Instant, now_ms: u64) {
        let sent_ms = attribute(&record, "SentTimestamp").unwrap_or(now_ms);
        self.sent += 1;
        self.messages.push(Message {
            serial: self.sent,
            record,
            receives: 0,
            visible_at: now,
            sent_ms,
            first_received_ms: None,
        });
    }

    /// Receives up to a batch of the messages that are visible.
    pub fn receive(&mut self, now: Instant, now_ms: u64) -> Option<Batch> {
        let visible = self.messages.iter_mut().filter(|message| message.visible_at <= now);
        let (records, received): (Vec<Value>, Vec<Received>) = visible
            .take(self.config.batch_size.max(1))
            .map(|message| {
                message.receives += 1;
                message.visible_at = now + self.visibility;
                let first_ms = *message.first_received_ms.get_or_insert(now_ms);
                let record = stamped(message, first_ms);
                let id = id(&message.record).map(str::to_owned);
                (record, Received { serial: message.serial, id, receives: message.receives })
            })
            .unzip();
        (!received.is_empty()).then(|| Batch { event: json!({ "Records": records }), received })
    }

    /// Does with a batch what the poller does after the invocation, and tells the fate of each of its messages.
    pub fn settle(&mut self, batch: &Batch, result: &InvocationResult) -> Vec<Fate> {
        let ids: BTreeSet<String> =
            batch.received.iter().filter_map(|received| received.id.clone()).collect();
        let verdict = BatchVerdict::of(result, &ids, self.config.report_batch_item_failures);
        batch.received.iter().map(|received| self.settle_one(received, &verdict)).collect()
    }

    fn settle_one(&mut self, received: &Received, verdict: &BatchVerdict) -> Fate {
        let Some(at) = self.messages.iter().position(|message| message.serial == received.serial)
        else {
            return Fate::Done; // another delivery of the same message was faster
        };
        if verdict.is_done(received.id.as_deref()) {
            self.messages.remove(at);
            return Fate::Done;
        }
        if received.receives < self.config.max_receive_count {
            return Fate::Returned;
        }
        let message = self.messages.remove(at);
        self.dead.push(DeadLetter {
            source: Source::Sqs,
            record: received.id.clone(),
            receive_count: message.receives,
            event: message.record,
        });
        Fate::DeadLettered
    }

    /// When the next message becomes visible; `None` if there is none left.
    pub fn next_visible(&self) -> Option<Instant> {
        self.messages.iter().map(|message| message.visible_at).min()
    }

    /// Messages that are neither deleted nor dead.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there is no message left.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The dead-letter queue.
    pub fn dead_letters(&self) -> &[DeadLetter] {
        &self.dead
    }

    pub(crate) fn into_dead_letters(self) -> Vec<DeadLetter> {
        self.dead
    }
}

fn id(record: &Value) -> Option<&str> {
    record.get("messageId").and_then(Value::as_str)
}

fn attribute(record: &Value, name: &str) -> Option<u64> {
    record.get("attributes")?.get(name)?.as_str()?.parse().ok()
}

/// The record as the function gets it: with a receipt handle and counts of this delivery.
fn stamped(message: &Message, first_received_ms: u64) -> Value {
    let mut record = message.record.clone();
    if id(&record).is_none_or(str::is_empty) {
        return record;
    }
    if let Value::Object(record) = &mut record {
        record.insert("receiptHandle".to_owned(), Value::String(new_id()));
        let attributes = record.entry("attributes").or_insert_with(|| json!({}));
        if let Value::Object(attributes) = attributes {
            for (name, value) in [
                ("ApproximateReceiveCount", u64::from(message.receives)),
                ("ApproximateFirstReceiveTimestamp", first_received_ms),
                ("SentTimestamp", message.sent_ms),
            ] {
                attributes.insert(name.to_owned(), Value::String(value.to_string()));
            }
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(3);

    fn record(id: &str) -> Value {
        json!({ "messageId": id, "body": "{}", "eventSource": "aws:sqs" })
    }

    fn queue(config: SqsConfig, now: Instant, ids: &[&str]) -> Queue {
        let mut queue = Queue::new(config, TIMEOUT);
        for id in ids {
            queue.send(record(id), now, 5);
        }
        queue
    }

    fn failing(id: &str) -> InvocationResult {
        InvocationResult::Response(json!({ "batchItemFailures": [{ "itemIdentifier": id }] }))
    }

    #[test]
    fn a_failed_message_comes_back_when_its_visibility_ends() {
        let now = Instant::now();
        let mut queue = queue(SqsConfig::default(), now, &["a", "b"]);
        let batch = queue.receive(now, 10).unwrap();
        assert_eq!(queue.settle(&batch, &failing("b")), [Fate::Done, Fate::Returned]);
        assert!(queue.receive(now + TIMEOUT - Duration::from_millis(1), 10).is_none());
        assert_eq!(queue.next_visible(), Some(now + TIMEOUT));
        let again = queue.receive(now + TIMEOUT, 3010).unwrap();
        assert_eq!(again.messages().collect::<Vec<_>>(), [(Some("b"), 2)]);
        let [first, second] = [&batch.event()["Records"][1], &again.event()["Records"][0]];
        assert_ne!(first["receiptHandle"], second["receiptHandle"]);
        assert_eq!(second["attributes"]["ApproximateReceiveCount"], "2");
        assert_eq!(second["attributes"]["ApproximateFirstReceiveTimestamp"], "10");
        assert_eq!(second["attributes"]["SentTimestamp"], "5");
    }

    #[test]
    fn received_too_often_is_dead() {
        let mut now = Instant::now();
        let mut queue =
            queue(SqsConfig { max_receive_count: 2, ..SqsConfig::default() }, now, &["a"]);
        for fate in [Fate::Returned, Fate::DeadLettered] {
            let batch = queue.receive(now, 0).unwrap();
            assert_eq!(queue.settle(&batch, &InvocationResult::TimedOut), [fate]);
            now += TIMEOUT;
        }
        assert!(queue.is_empty());
        assert_eq!(queue.dead_letters()[0].record.as_deref(), Some("a"));
    }

    #[test]
    fn batches_are_no_larger_than_allowed_and_duplicates_stay() {
        let now = Instant::now();
        let mut queue =
            queue(SqsConfig { batch_size: 2, ..SqsConfig::default() }, now, &["a", "a", "b"]);
        assert_eq!(queue.receive(now, 0).unwrap().messages().count(), 2);
        assert_eq!(queue.receive(now, 0).unwrap().messages().count(), 1);
        assert!(queue.receive(now, 0).is_none());
    }

    #[test]
    fn a_short_visibility_lets_a_message_be_delivered_twice_at_once() {
        let now = Instant::now();
        let config = SqsConfig { visibility: Some(Duration::ZERO), ..SqsConfig::default() };
        let mut queue = queue(config, now, &["a"]);
        let first = queue.receive(now, 0).unwrap();
        let second = queue.receive(now, 0).unwrap();
        assert_eq!(queue.settle(&second, &InvocationResult::Response(Value::Null)), [Fate::Done]);
        assert_eq!(queue.settle(&first, &InvocationResult::TimedOut), [Fate::Done]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_malformed_record_is_left_alone() {
        let now = Instant::now();
        let mut queue = Queue::new(SqsConfig::default(), TIMEOUT);
        for record in [json!(7), json!({ "body": "no id" }), json!({ "messageId": "", "body": "" })]
        {
            queue.send(record, now, 0);
        }
        let batch = queue.receive(now, 0).unwrap();
        assert_eq!(
            batch.event()["Records"],
            json!([7, { "body": "no id" }, { "messageId": "", "body": "" }])
        );
    }
}
