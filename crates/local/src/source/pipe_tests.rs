//! The rules of EventBridge Pipes, for a queue and a stream.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Batch, Disposition, Poller, Queue, Shards, Source, SqsConfig, StreamConfig};
use crate::function::InvocationResult;

fn failing(id: &str) -> InvocationResult {
    InvocationResult::Response(json!({ "batchItemFailures": [{ "itemIdentifier": id }] }))
}

fn ids(batch: &Batch) -> Vec<&str> {
    batch.records().map(|(id, _)| id.unwrap()).collect()
}

#[test]
fn a_bare_list_is_passed_on_and_only_failed_records_are_delivered_again() {
    let now = Instant::now();
    let mut pipe = Queue::new(SqsConfig::default(), Duration::from_secs(3)).behind_a_pipe();
    for id in ["a", "b"] {
        pipe.send(json!({ "messageId": id, "eventSource": "aws:sqs" }), now);
    }
    let batch = pipe.receive(now).unwrap();
    assert_eq!(batch.event().as_array().unwrap().len(), 2);
    assert_eq!(batch.event()[1]["messageId"], "b");
    assert_eq!(
        pipe.dispose(&batch, &failing("b"), now),
        [Disposition::Done, Disposition::Returned]
    );
    let later = pipe.next().unwrap();
    let again = pipe.receive(later).unwrap();
    assert_eq!(ids(&again), ["b"]);
    for result in [failing("nobody"), InvocationResult::TimedOut] {
        assert_eq!(pipe.dispose(&again, &result, later), [Disposition::Returned], "{result}");
    }
}

/// In a pipe, the members of `kinesis` are at the top level of the record.
fn stream(max_retries: u32, now: Instant) -> Shards {
    let record = |sequence: &str| json!({ "eventID": format!("shard-0:{sequence}"), "sequenceNumber": sequence });
    let config = StreamConfig { max_retries, ..StreamConfig::default() };
    let records = ["1", "2", "3"].map(record).into();
    Shards::new(Source::Kinesis, config, records, now).behind_a_pipe()
}

#[test]
fn a_stream_record_named_by_its_event_id_is_delivered_again_and_given_up_by_the_pipe() {
    let now = Instant::now();
    let mut pipe = stream(1, now);
    let batch = pipe.receive(now).unwrap();
    let dispositions = pipe.dispose(&batch, &failing("shard-0:2"), now);
    assert_eq!(dispositions, [Disposition::Done, Disposition::Returned, Disposition::Done]);
    let later = pipe.next().unwrap();
    let batch = pipe.receive(later).unwrap();
    assert_eq!(ids(&batch), ["2"]);
    let dispositions = pipe.dispose(&batch, &failing("shard-0:2"), later);
    assert_eq!(dispositions, [Disposition::DeadLettered]);
    let dead = Box::new(pipe).into_dead_letters();
    assert_eq!(dead.iter().map(|dead| dead.source).collect::<Vec<_>>(), [Source::Pipe]);
}

#[test]
fn a_pipe_does_not_know_a_record_by_its_sequence_number() {
    let now = Instant::now();
    let mut pipe = stream(1, now);
    let batch = pipe.receive(now).unwrap();
    assert_eq!(pipe.dispose(&batch, &failing("2"), now), [Disposition::Returned; 3]);
    let again = pipe.receive(pipe.next().unwrap()).unwrap();
    let dispositions = pipe.dispose(&again, &InvocationResult::TimedOut, now);
    assert_eq!(dispositions, [Disposition::DeadLettered; 3]);
}
