//! A queue, and the poller between it and the function.
//!
//! A message that is received becomes invisible for a while. If its batch succeeds, it is deleted; if not, it appears
//! again when that while is over, with a new receipt handle and a higher receive count. Received too often, it goes to
//! the dead-letter queue: here at the last failure, where AWS would wait for the next attempt to receive it.
//!
//! In a FIFO queue, which its ARN tells, a message that is invisible blocks its message group: nothing behind it is
//! received until it is deleted, dead or visible again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::poller::{Batch, Delivery, Poller};
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

/// A queue with its dead-letter queue.
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

    /// The message groups of which a message is on its way.
    fn blocked(&self, now: Instant) -> BTreeSet<String> {
        let invisible = self.messages.iter().filter(|message| message.visible_at > now);
        invisible.filter_map(|message| group(&message.record)).map(str::to_owned).collect()
    }

    fn settle_one(&mut self, delivery: &Delivery, verdict: &BatchVerdict) -> Fate {
        let Some(at) = self.messages.iter().position(|message| message.serial == delivery.serial)
        else {
            return Fate::Done; // another delivery of the same message was faster
        };
        if verdict.is_done(delivery.id.as_deref()) {
            self.messages.remove(at);
            return Fate::Done;
        }
        if delivery.count < self.config.max_receive_count {
            return Fate::Returned;
        }
        let message = self.messages.remove(at);
        self.dead.push(DeadLetter {
            source: Source::Sqs,
            record: delivery.id.clone(),
            receive_count: message.receives,
            event: message.record,
        });
        Fate::DeadLettered
    }

    /// Messages that are neither deleted nor dead.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there is no message left.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl Poller for Queue {
    fn source(&self) -> Source {
        Source::Sqs
    }

    fn receive(&mut self, now: Instant, now_ms: u64) -> Option<Batch> {
        let blocked = self.blocked(now);
        let receivable = |message: &&mut Message| {
            let group = group(&message.record);
            message.visible_at <= now && group.is_none_or(|group| !blocked.contains(group))
        };
        let received = self.messages.iter_mut().filter(receivable);
        let (records, deliveries): (Vec<Value>, Vec<Delivery>) = received
            .take(self.config.batch_size.max(1))
            .map(|message| {
                message.receives += 1;
                message.visible_at = now + self.visibility;
                let first_ms = *message.first_received_ms.get_or_insert(now_ms);
                let record = stamped(message, first_ms);
                let id = id(&message.record).map(str::to_owned);
                let (lane, serial, count) = (String::new(), message.serial, message.receives);
                (record, Delivery { lane, serial, id, count })
            })
            .unzip();
        (!deliveries.is_empty()).then(|| Batch::new(json!({ "Records": records }), deliveries))
    }

    fn settle(&mut self, batch: &Batch, result: &InvocationResult, _now: Instant) -> Vec<Fate> {
        let deliveries = batch.deliveries();
        let ids: BTreeSet<String> = deliveries.iter().filter_map(|d| d.id.clone()).collect();
        let verdict = BatchVerdict::of(result, &ids, self.config.report_batch_item_failures);
        deliveries.iter().map(|delivery| self.settle_one(delivery, &verdict)).collect()
    }

    fn next(&self) -> Option<Instant> {
        self.messages.iter().map(|message| message.visible_at).min()
    }

    fn into_dead_letters(self: Box<Self>) -> Vec<DeadLetter> {
        self.dead
    }
}

/// The message group, in a queue that keeps an order. Fair queues have groups too, and keep none.
fn group(record: &Value) -> Option<&str> {
    let arn = record.get("eventSourceARN").and_then(Value::as_str);
    arn.filter(|arn| arn.ends_with(".fifo"))?;
    record.get("attributes")?.get("MessageGroupId")?.as_str()
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
        assert_eq!(queue.settle(&batch, &failing("b"), now), [Fate::Done, Fate::Returned]);
        assert!(queue.receive(now + TIMEOUT - Duration::from_millis(1), 10).is_none());
        assert_eq!(queue.next(), Some(now + TIMEOUT));
        let again = queue.receive(now + TIMEOUT, 3010).unwrap();
        assert_eq!(again.records().collect::<Vec<_>>(), [(Some("b"), 2)]);
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
            assert_eq!(queue.settle(&batch, &InvocationResult::TimedOut, now), [fate]);
            now += TIMEOUT;
        }
        assert!(queue.is_empty());
        assert_eq!(Box::new(queue).into_dead_letters()[0].record.as_deref(), Some("a"));
    }

    #[test]
    fn batches_are_no_larger_than_allowed_and_duplicates_stay() {
        let now = Instant::now();
        let mut queue =
            queue(SqsConfig { batch_size: 2, ..SqsConfig::default() }, now, &["a", "a", "b"]);
        assert_eq!(queue.receive(now, 0).unwrap().records().count(), 2);
        assert_eq!(queue.receive(now, 0).unwrap().records().count(), 1);
        assert!(queue.receive(now, 0).is_none());
    }

    #[test]
    fn a_short_visibility_lets_a_message_be_delivered_twice_at_once() {
        let now = Instant::now();
        let config = SqsConfig { visibility: Some(Duration::ZERO), ..SqsConfig::default() };
        let mut queue = queue(config, now, &["a"]);
        let first = queue.receive(now, 0).unwrap();
        let second = queue.receive(now, 0).unwrap();
        assert_eq!(
            queue.settle(&second, &InvocationResult::Response(Value::Null), now),
            [Fate::Done]
        );
        assert_eq!(queue.settle(&first, &InvocationResult::TimedOut, now), [Fate::Done]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_message_that_failed_blocks_its_group_and_no_other() {
        let now = Instant::now();
        let mut queue = Queue::new(SqsConfig::default(), TIMEOUT);
        for (id, group) in [("a1", "a"), ("b1", "b"), ("a2", "a")] {
            let mut record = record(id);
            record["eventSourceARN"] = json!("arn:aws:sqs:eu-west-1:1:orders.fifo");
            record["attributes"] = json!({ "MessageGroupId": group });
            queue.send(record, now, 0);
        }
        fn ids(batch: &Batch) -> Vec<&str> {
            batch.records().map(|(id, _)| id.unwrap()).collect()
        }
        let batch = queue.receive(now, 0).unwrap();
        assert_eq!(ids(&batch), ["a1", "b1", "a2"], "a batch may hold several of a group");
        let fates = queue.settle(&batch, &failing("a1"), now);
        assert_eq!(fates, [Fate::Returned, Fate::Done, Fate::Done]);
        let mut late = record("a3");
        late["eventSourceARN"] = json!("arn:aws:sqs:eu-west-1:1:orders.fifo");
        late["attributes"] = json!({ "MessageGroupId": "a" });
        queue.send(late, now, 0);
        assert!(queue.receive(now, 0).is_none(), "a1 comes first");
        assert_eq!(ids(&queue.receive(now + TIMEOUT, 0).unwrap()), ["a1", "a3"]);
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
