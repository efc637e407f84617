//! A queue, and the poller between it and the function.
//!
//! A received message is invisible for its visibility timeout. If its batch succeeds, it is deleted; if not, it
//! becomes visible after the timeout, with a new receipt handle and a higher receive count. A message that was
//! received too often goes to the dead-letter queue: here at the last failure, in AWS at the next attempt to receive
//! it.
//!
//! In a FIFO queue, recognised by its ARN, an invisible message blocks its message group: no later message is
//! received until it is deleted, dead-lettered or visible again.

mod message;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::message::Message;
use super::event::Source;
use super::poller::{Batch, Delivery, Poller};
use super::report::{DeadLetter, Disposition};
use crate::function::InvocationResult;

/// Settings of the queue and of its event source mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqsConfig {
    /// How long a received message stays invisible. AWS requires at least the function's timeout, and advises six times
    /// that. With less, messages are delivered again while a process still handles them, which a test may want. `None`
    /// means the function's timeout.
    pub visibility: Option<Duration>,
    /// How many messages an invocation gets at most.
    pub batch_size: usize,
    /// How often a message is received before it goes to the dead-letter queue.
    pub max_receive_count: u32,
}

impl Default for SqsConfig {
    /// Batches of 10, five receives. Fewer may not suffice for a message whose
    /// process died: until the lease of that process expires, the next deliveries find the key busy.
    fn default() -> Self {
        Self { visibility: None, batch_size: 10, max_receive_count: 5 }
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
    source: Source,
}

impl Queue {
    /// An empty queue. Without a `visibility`, the function's timeout is used.
    pub fn new(config: SqsConfig, function_timeout: Duration) -> Self {
        let visibility = config.visibility.unwrap_or(function_timeout);
        Self {
            config,
            visibility,
            messages: Vec::new(),
            dead: Vec::new(),
            sent: 0,
            source: Source::Sqs,
        }
    }

    /// The same, read by a pipe.
    pub fn behind_a_pipe(mut self) -> Self {
        self.source = Source::Pipe;
        self
    }

    /// Sends a message in the shape of an SQS record. Members that a real one has are added when it is received; a
    /// message without a `messageId` is not changed.
    pub fn send(&mut self, record: Value, now: Instant) {
        self.sent += 1;
        self.messages.push(Message::new(self.sent, record, now));
    }

    /// The message groups with a message that is being processed.
    fn blocked(&self, now: Instant) -> BTreeSet<String> {
        let invisible = self.messages.iter().filter(|message| message.visible_at > now);
        invisible.filter_map(Message::group).map(str::to_owned).collect()
    }

    fn dispose_one(&mut self, delivery: &Delivery, is_done: bool) -> Disposition {
        let Some(at) = self.messages.iter().position(|message| message.serial == delivery.serial)
        else {
            return Disposition::Done; // another delivery of the same message has deleted it
        };
        if is_done {
            self.messages.remove(at);
            return Disposition::Done;
        }
        if delivery.count < self.config.max_receive_count {
            return Disposition::Returned;
        }
        let message = self.messages.remove(at);
        self.dead.push(DeadLetter {
            source: self.source,
            record: delivery.id.clone(),
            receive_count: message.receives,
            event: message.record,
        });
        Disposition::DeadLettered
    }
}

impl Poller for Queue {
    fn source(&self) -> Source {
        self.source
    }

    fn receive(&mut self, now: Instant) -> Option<Batch> {
        let blocked = self.blocked(now);
        let receivable = |message: &&mut Message| {
            message.visible_at <= now
                && message.group().is_none_or(|group| !blocked.contains(group))
        };
        let received = self.messages.iter_mut().filter(receivable);
        let (records, deliveries): (Vec<Value>, Vec<Delivery>) = received
            .take(self.config.batch_size.max(1))
            .map(|message| {
                message.visible_at = now + self.visibility;
                message.receive(now)
            })
            .unzip();
        let event = match self.source {
            Source::Pipe => records.into(),
            _ => json!({ "Records": records }),
        };
        (!deliveries.is_empty()).then(|| Batch::new(event, deliveries))
    }

    fn dispose(
        &mut self,
        batch: &Batch,
        result: &InvocationResult,
        _now: Instant,
    ) -> Vec<Disposition> {
        let failed = batch.failed(result);
        let is_done = |position| failed.as_ref().is_some_and(|failed| !failed.contains(&position));
        let deliveries = batch.deliveries().iter().enumerate();
        deliveries.map(|(position, one)| self.dispose_one(one, is_done(position))).collect()
    }

    fn left(&self) -> usize {
        self.messages.len()
    }

    fn next(&self) -> Option<Instant> {
        self.messages.iter().map(|message| message.visible_at).min()
    }

    fn into_dead_letters(self: Box<Self>) -> Vec<DeadLetter> {
        self.dead
    }
}

#[cfg(test)]
mod tests;
