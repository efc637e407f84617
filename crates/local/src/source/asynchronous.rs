//! Events that are an invocation each, which is tried again as a whole.
//!
//! Lambda accepts an event of SNS or EventBridge, answers at once, and invokes the function later. If the function
//! fails, Lambda retries with the same request id after one minute and again after two; then it sends the event to the
//! dead-letter queue. A client of HTTP waits for the answer, and sends the same request again after a conflict, a server
//! error or no answer, as the draft of the `Idempotency-Key` header says; that is another request id. A direct invocation is not tried again.

use std::time::{Duration, Instant};

use serde_json::Value;
use uuid::Uuid;

use super::event::{Source, record_ids};
use super::poller::{Batch, Delivery, Poller};
use super::report::{DeadLetter, Disposition};
use crate::function::InvocationResult;

/// Events of one source, as Lambda's own queue of events that were accepted.
#[derive(Clone, Debug)]
pub struct AsyncEvents {
    source: Source,
    retry_delays: Vec<Duration>,
    events: Vec<Accepted>,
    dead: Vec<DeadLetter>,
}

#[derive(Clone, Debug)]
struct Accepted {
    request_id: String,
    event: Value,
    deliveries: u32,
    /// When it may be delivered; `None` while a process has it.
    not_before: Option<Instant>,
}

impl AsyncEvents {
    /// An empty queue of events of this source, such as [`Source::EventBridge`], with these delays before retries.
    pub fn new(source: Source, retry_delays: Vec<Duration>) -> Self {
        Self { source, retry_delays, events: Vec::new(), dead: Vec::new() }
    }

    /// Accepts an event.
    pub fn send(&mut self, event: Value, now: Instant) {
        let (request_id, not_before) = (Uuid::new_v4().to_string(), Some(now));
        self.events.push(Accepted { request_id, event, deliveries: 0, not_before });
    }

    /// Whether the sender is content with this result.
    fn is_final(&self, result: &InvocationResult) -> bool {
        match result {
            InvocationResult::Response(response) if self.source == Source::Http => {
                match response.get("statusCode").and_then(Value::as_u64) {
                    Some(status) => status < 500 && !matches!(status, 409 | 425 | 429),
                    // API Gateway takes an answer without a status as the body of a 200.
                    None => true,
                }
            }
            result => result.is_response(),
        }
    }
}

impl Poller for AsyncEvents {
    fn source(&self) -> Source {
        self.source
    }

    fn receive(&mut self, now: Instant) -> Option<Batch> {
        let due = |event: &&mut Accepted| event.not_before.is_some_and(|at| at <= now);
        let next = self.events.iter_mut().find(due)?;
        next.not_before = None;
        next.deliveries += 1;
        let deliveries = record_ids(self.source, &next.event).into_iter().map(|id| Delivery {
            lane: String::new(),
            serial: 0,
            id,
            item: None,
            count: next.deliveries,
        });
        // Each request of a client of HTTP is an invocation of its own.
        if self.source == Source::Http {
            next.request_id = Uuid::new_v4().to_string();
        }
        let batch = Batch::new(next.event.clone(), deliveries.collect());
        Some(batch.with_request_id(next.request_id.clone()))
    }

    fn dispose(
        &mut self,
        batch: &Batch,
        result: &InvocationResult,
        now: Instant,
    ) -> Vec<Disposition> {
        let records = batch.deliveries();
        let is_it = |event: &Accepted| event.request_id == batch.request_id();
        let Some(at) = self.events.iter().position(is_it) else {
            return vec![Disposition::Done; records.len()];
        };
        let mut event = self.events.remove(at);
        // The delay after the nth delivery.
        let mut delays = (1..).zip(&self.retry_delays);
        let delay = delays.find_map(|(nth, delay)| (nth == event.deliveries).then_some(*delay));
        let disposition = match (self.is_final(result), delay, self.source) {
            (true, ..) => Disposition::Done,
            (false, Some(delay), _) => {
                event.not_before = Some(now + delay);
                self.events.insert(at, event);
                Disposition::Returned
            }
            (false, None, Source::Invoke | Source::Http) => Disposition::Error,
            (false, None, source) => {
                self.dead.push(DeadLetter {
                    source,
                    record: records.first().and_then(|delivery| delivery.id.clone()),
                    receive_count: event.deliveries,
                    event: event.event,
                });
                Disposition::DeadLettered
            }
        };
        vec![disposition; records.len()]
    }

    fn left(&self) -> usize {
        self.events.len()
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
        let delays = [1, 2].map(Duration::from_secs).to_vec();
        let mut events = AsyncEvents::new(Source::EventBridge, delays.clone());
        events.send(event("a"), now);
        events.send(event("b"), now);
        let (a, b) = (events.receive(now).unwrap(), events.receive(now).unwrap());
        assert!(events.receive(now).is_none() && events.next().is_none(), "both are processed");
        let done = InvocationResult::Response(Value::Null);
        assert_eq!(events.dispose(&b, &done, now), [Disposition::Done]);
        let request_id = a.request_id().to_owned();
        let mut at = now;
        let mut batch = a;
        for delay in delays {
            let failed = events.dispose(&batch, &InvocationResult::TimedOut, at);
            assert_eq!(failed, [Disposition::Returned]);
            assert!(events.receive(at).is_none(), "not before the delay");
            at += delay;
            assert_eq!(events.next(), Some(at));
            batch = events.receive(at).unwrap();
            assert_eq!(batch.request_id(), request_id, "retries keep the request id");
        }
        assert_eq!(batch.records().collect::<Vec<_>>(), [(Some("a"), 3)]);
        let failed = events.dispose(&batch, &InvocationResult::TimedOut, at);
        assert_eq!(failed, [Disposition::DeadLettered]);
        assert_eq!(events.left(), 0);
        assert_eq!(Box::new(events).into_dead_letters()[0].receive_count, 3);
    }

    #[test]
    fn each_request_of_a_client_of_http_is_another_invocation() {
        let now = Instant::now();
        let mut client = AsyncEvents::new(Source::Http, vec![Duration::ZERO]);
        client.send(json!({}), now);
        let first = client.receive(now).unwrap();
        client.dispose(&first, &InvocationResult::TimedOut, now);
        let second = client.receive(now).unwrap();
        assert_ne!(second.request_id(), first.request_id());
        client.dispose(&second, &InvocationResult::TimedOut, now);
        assert_eq!(client.left(), 0, "the answer to the second is for the second");
    }

    #[test]
    fn a_client_of_http_sends_conflicts_and_server_errors_again() {
        let client = AsyncEvents::new(Source::Http, Vec::new());
        let ends = |status: u16| {
            client.is_final(&InvocationResult::Response(json!({ "statusCode": status })))
        };
        for status in [200, 201, 303, 400, 404, 422] {
            assert!(ends(status), "{status}");
        }
        for status in [409, 429, 500, 502, 503, 504] {
            assert!(!ends(status), "{status}");
        }
        assert!(!client.is_final(&InvocationResult::TimedOut));
        assert!(client.is_final(&InvocationResult::Response(json!("text"))));
    }
}
