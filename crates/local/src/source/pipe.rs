//! EventBridge Pipes: a pipe between a source's poller and the function, which passes bare lists of records.
//!
//! A pipe from a queue or a stream always reads `batchItemFailures` in the answer: message ids, or the `eventID`s of a
//! stream's records. The named records are delivered again, and the others are done. An invalid answer, an error or a
//! death returns the whole batch. A pipe from Kafka or a broker does not support partial answers: its batch is delivered
//! again as a whole, for which no poller is needed.

use std::time::Instant;

use serde_json::Value;

use super::poller::{Batch, Poller};
use super::{DeadLetter, Disposition, Source};
use crate::InvocationResult;

/// A pipe from a source that is polled. It waits for the function's answer (`REQUEST_RESPONSE`).
pub struct Pipe {
    from: Box<dyn Poller>,
}

impl Pipe {
    /// A pipe from a queue or a stream.
    pub fn new(from: Box<dyn Poller>) -> Self {
        Self { from }
    }
}

impl Poller for Pipe {
    fn source(&self) -> Source {
        Source::Pipe
    }

    fn receive(&mut self, now: Instant, now_ms: u64) -> Option<Batch> {
        let batch = self.from.receive(now, now_ms)?;
        let records = batch.event().get("Records").cloned().unwrap_or(Value::Null);
        Some(Batch::new(records, batch.deliveries().to_vec()))
    }

    fn settle(
        &mut self,
        batch: &Batch,
        result: &InvocationResult,
        now: Instant,
    ) -> Vec<Disposition> {
        self.from.settle(batch, result, now)
    }

    fn left(&self) -> usize {
        self.from.left()
    }

    fn next(&self) -> Option<Instant> {
        self.from.next()
    }

    fn into_dead_letters(self: Box<Self>) -> Vec<DeadLetter> {
        let dead = self.from.into_dead_letters().into_iter();
        dead.map(|dead| DeadLetter { source: Source::Pipe, ..dead }).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{Queue, Shards, SqsConfig, StreamConfig};

    fn failing(id: &str) -> InvocationResult {
        InvocationResult::Response(json!({ "batchItemFailures": [{ "itemIdentifier": id }] }))
    }

    fn ids(batch: &Batch) -> Vec<&str> {
        batch.records().map(|(id, _)| id.unwrap()).collect()
    }

    #[test]
    fn a_bare_list_is_passed_on_and_only_failed_records_are_delivered_again() {
        let now = Instant::now();
        let mut queue = Queue::new(SqsConfig::default(), Duration::from_secs(3));
        for id in ["a", "b"] {
            queue.send(json!({ "messageId": id, "eventSource": "aws:sqs" }), now, 0);
        }
        let mut pipe = Pipe::new(Box::new(queue));
        let batch = pipe.receive(now, 0).unwrap();
        assert_eq!(batch.event().as_array().unwrap().len(), 2);
        assert_eq!(batch.event()[1]["messageId"], "b");
        assert_eq!(
            pipe.settle(&batch, &failing("b"), now),
            [Disposition::Done, Disposition::Returned]
        );
        let later = pipe.next().unwrap();
        let again = pipe.receive(later, 0).unwrap();
        assert_eq!(ids(&again), ["b"]);
        for result in [failing("nobody"), InvocationResult::TimedOut] {
            assert_eq!(pipe.settle(&again, &result, later), [Disposition::Returned], "{result}");
        }
    }

    /// In a pipe, the members of `kinesis` are at the top level of the record.
    fn stream(max_retries: u32, now: Instant) -> Pipe {
        let record = |sequence: &str| json!({ "eventID": format!("shard-0:{sequence}"), "sequenceNumber": sequence });
        let config = StreamConfig { max_retries, ..StreamConfig::default() };
        let records = ["1", "2", "3"].map(record).into();
        let shards = Shards::new(Source::Kinesis, config, records, now);
        Pipe::new(Box::new(shards.behind_a_pipe()))
    }

    #[test]
    fn a_stream_record_named_by_its_event_id_is_delivered_again_and_given_up_by_the_pipe() {
        let now = Instant::now();
        let mut pipe = stream(1, now);
        let batch = pipe.receive(now, 0).unwrap();
        let dispositions = pipe.settle(&batch, &failing("shard-0:2"), now);
        assert_eq!(dispositions, [Disposition::Done, Disposition::Returned, Disposition::Done]);
        let later = pipe.next().unwrap();
        let batch = pipe.receive(later, 0).unwrap();
        assert_eq!(ids(&batch), ["2"]);
        let dispositions = pipe.settle(&batch, &failing("shard-0:2"), later);
        assert_eq!(dispositions, [Disposition::DeadLettered]);
        let dead = Box::new(pipe).into_dead_letters();
        assert_eq!(dead.iter().map(|dead| dead.source).collect::<Vec<_>>(), [Source::Pipe]);
    }

    #[test]
    fn a_pipe_does_not_know_a_record_by_its_sequence_number() {
        let now = Instant::now();
        let mut pipe = stream(1, now);
        let batch = pipe.receive(now, 0).unwrap();
        assert_eq!(pipe.settle(&batch, &failing("2"), now), [Disposition::Returned; 3]);
        let again = pipe.receive(pipe.next().unwrap(), 0).unwrap();
        let dispositions = pipe.settle(&again, &InvocationResult::TimedOut, now);
        assert_eq!(dispositions, [Disposition::DeadLettered; 3]);
    }
}
