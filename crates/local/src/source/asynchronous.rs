//! Asynchronous invocation: how SNS and EventBridge call a function.
//!
//! Lambda accepts the event, answers at once, and invokes the function later. If the function fails, Lambda retries with
//! the same request id after one minute and again after two; then it sends the event to the dead-letter queue.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::poller::{Batch, Delivery, Poller};
use super::{DeadLetter, Disposition, Source, event::record_ids};
use crate::InvocationResult;

/// Settings of asynchronous invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncConfig {
    /// How long to wait before each retry. There are as many retries as delays.
    pub retry_delays: Vec<Duration>,
}

impl AsyncConfig {
    /// What AWS does: two retries, after one minute and after two more.
    pub fn aws() -> Self {
        Self { retry_delays: vec![Duration::from_secs(60), Duration::from_secs(120)] }
    }
}

impl Default for AsyncConfig {
    /// Two retries, after one second and after two more: as in AWS, but with seconds for minutes.
    fn default() -> Self {
        Self { retry_delays: vec![Duration::from_secs(1), Duration::from_secs(2)] }
    }
}

/// Lambda's own queue of events that were accepted, as a source that is polled. Each event is an invocation, which is
/// tried again as a whole.
#[derive(Clone, Debug)]
pub struct AsyncEvents {
    source: Source,
    config: AsyncConfig,
    events: Vec<Accepted>,
    dead: Vec<DeadLetter>,
    sent: u64,
}

#[derive(Clone, Debug)]
struct Accepted {
    serial: u64,
    event: Value,
    deliveries: u32,
    /// When it may be delivered; `None` while a process has it.
    not_before: Option<Instant>,
}

impl AsyncEvents {
    /// An empty queue of events of this source, such as [`Source::EventBridge`].
    pub fn new(source: Source, config: AsyncConfig) -> Self {
        Self { source, config, events: Vec::new(), dead: Vec::new(), sent: 0 }
    }

    /// Accepts an event.
    pub fn send(&mut self, event: Value, now: Instant) {
        self.sent += 1;
        let not_before = Some(now);
        self.events.push(Accepted { serial: self.sent, event, deliveries: 0, not_before });
    }

    /// Events that neither succeeded nor were given up.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is no such event.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl Poller for AsyncEvents {
    fn source(&self) -> Source {
        self.source
    }

    fn receive(&mut self, now: Instant, _now_ms: u64) -> Option<Batch> {
        let due = |event: &&mut Accepted| event.not_before.is_some_and(|at| at <= now);
        let next = self.events.iter_mut().find(due)?;
        next.not_before = None;
        next.deliveries += 1;
        let deliveries = record_ids(self.source, &next.event).into_iter().map(|id| Delivery {
            lane: String::new(),
            serial: next.serial,
            id,
            item: None,
            count: next.deliveries,
        });
        Some(Batch::new(next.event.clone(), deliveries.collect()))
    }

    fn settle(
        &mut self,
        batch: &Batch,
        result: &InvocationResult,
        now: Instant,
    ) -> Vec<Disposition> {
        let records = batch.deliveries();
        let serial = records.first().map(|delivery| delivery.serial);
        let Some(at) = self.events.iter().position(|event| Some(event.serial) == serial) else {
            return vec![Disposition::Done; records.len()];
        };
        let mut event = self.events.remove(at);
        // The delay after the nth delivery.
        let mut delays = (1..).zip(&self.config.retry_delays);
        let delay = delays.find_map(|(nth, delay)| (nth == event.deliveries).then_some(*delay));
        let disposition = match (result.is_response(), delay) {
            (true, _) => Disposition::Done,
            (false, Some(delay)) => {
                event.not_before = Some(now + delay);
                self.events.insert(at, event);
                Disposition::Returned
            }
            (false, None) => {
                self.dead.push(DeadLetter {
                    source: self.source,
                    record: records.first().and_then(|delivery| delivery.id.clone()),
                    receive_count: event.deliveries,
                    event: event.event,
                });
                Disposition::DeadLettered
            }
        };
        vec![disposition; records.len()]
    }

    fn next(&self) -> Option<Instant> {
        self.events.iter().filter_map(|event| event.not_before).min()
    }

    fn into_dead_letters(self: Box<Self>) -> Vec<DeadLetter> {
        self.dead
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(id: &str) -> Value {
        json!({ "id": id, "detail-type": "t", "source": "s", "detail": {} })
    }

    #[test]
    fn an_event_that_fails_is_tried_again_after_each_delay_and_given_up_then() {
        let now = Instant::now();
        let mut events = AsyncEvents::new(Source::EventBridge, AsyncConfig::default());
        events.send(event("a"), now);
        events.send(event("b"), now);
        let (a, b) = (events.receive(now, 0).unwrap(), events.receive(now, 0).unwrap());
        assert!(events.receive(now, 0).is_none() && events.next().is_none(), "both are processed");
        let done = InvocationResult::Response(Value::Null);
        assert_eq!(events.settle(&b, &done, now), [Disposition::Done]);
        let mut at = now;
        let mut batch = a;
        for delay in AsyncConfig::default().retry_delays {
            let failed = events.settle(&batch, &InvocationResult::TimedOut, at);
            assert_eq!(failed, [Disposition::Returned]);
            assert!(events.receive(at, 0).is_none(), "not before the delay");
            at += delay;
            assert_eq!(events.next(), Some(at));
            batch = events.receive(at, 0).unwrap();
        }
        assert_eq!(batch.records().collect::<Vec<_>>(), [(Some("a"), 3)]);
        let failed = events.settle(&batch, &InvocationResult::TimedOut, at);
        assert_eq!(failed, [Disposition::DeadLettered]);
        assert!(events.is_empty());
        assert_eq!(Box::new(events).into_dead_letters()[0].receive_count, 3);
    }
}
