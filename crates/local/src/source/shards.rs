//! Kinesis and DynamoDB streams: records of a shard in order, shards concurrently.
//!
//! Lambda's event source mapping identifies a record by its sequence number, and continues from the lowest that the
//! answer names. A pipe identifies it by its `eventID`, and delivers the named records again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::{Value, json};

use super::lane::{Lane, Progress};
use super::poller::{Batch, Delivery, Poller};
use super::{DeadLetter, Disposition, Source, StreamConfig};
use crate::InvocationResult;

/// The shards of a stream, as an event source mapping reads them.
#[derive(Clone, Debug)]
pub struct Shards {
    source: Source,
    config: StreamConfig,
    piped: bool,
    shards: BTreeMap<String, Lane>,
    dead: Vec<DeadLetter>,
}

impl Shards {
    /// The stream that these records are from: [`Source::Kinesis`] or [`Source::DynamoDb`].
    pub fn new(source: Source, config: StreamConfig, records: Vec<Value>, now: Instant) -> Self {
        let shards = BTreeMap::new();
        let mut stream = Self { source, config, piped: false, shards, dead: Vec::new() };
        for record in records {
            stream.push(&shard(&record), record, now);
        }
        stream
    }

    /// Appends a record to a shard.
    pub fn push(&mut self, shard: &str, record: Value, now: Instant) {
        let source = self.source;
        let lane = self.shards.entry(shard.to_owned()).or_insert_with(|| Lane::new(source, now));
        lane.push(sequence(&record).map(str::to_owned), record, self.config.batch_size);
    }

    /// Records that are neither done nor given up.
    pub fn len(&self) -> usize {
        self.shards.values().map(Lane::len).sum()
    }

    /// Whether there is no such record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same, read by a pipe.
    pub fn behind_a_pipe(mut self) -> Self {
        self.piped = true;
        self
    }
}

impl Poller for Shards {
    fn source(&self) -> Source {
        self.source
    }

    fn receive(&mut self, now: Instant, _now_ms: u64) -> Option<Batch> {
        let (shard, entries) =
            self.shards.iter_mut().find_map(|(shard, lane)| Some((shard, lane.take(now)?)))?;
        let records: Vec<&Value> = entries.iter().map(|entry| &entry.record).collect();
        let deliveries = entries.iter().map(|entry| Delivery {
            lane: shard.clone(),
            serial: 0,
            id: entry.id.clone(),
            item: if self.piped { event_id(&entry.record) } else { entry.id.clone() },
            count: entry.deliveries,
        });
        Some(Batch::new(json!({ "Records": records }), deliveries.collect()))
    }

    fn settle(
        &mut self,
        batch: &Batch,
        result: &InvocationResult,
        now: Instant,
    ) -> Vec<Disposition> {
        let Some(lane) =
            batch.deliveries().first().and_then(|first| self.shards.get_mut(&first.lane))
        else {
            return Vec::new();
        };
        // Pipes always read the answer.
        let partial = self.piped || self.config.report_batch_item_failures;
        let progress = match failed(batch, result, partial) {
            None => Progress::Failed,
            Some(failed) if self.piped => Progress::AllBut(failed),
            Some(failed) => failed.first().map_or(Progress::Done, |lowest| Progress::UpTo(*lowest)),
        };
        lane.settle(progress, &self.config, now, &mut self.dead)
    }

    fn next(&self) -> Option<Instant> {
        self.shards.values().filter_map(Lane::next).min()
    }

    fn into_dead_letters(self: Box<Self>) -> Vec<DeadLetter> {
        self.dead
    }
}

/// Which records the answer names; `None` if all failed. A name that was not in the batch fails all of it.
fn failed(batch: &Batch, result: &InvocationResult, partial: bool) -> Option<BTreeSet<usize>> {
    let InvocationResult::Response(response) = result else { return None };
    let failures = match response.get("batchItemFailures") {
        Some(Value::Array(failures)) if partial => failures,
        None | Some(Value::Null) => return Some(BTreeSet::new()),
        Some(_) if !partial => return Some(BTreeSet::new()),
        Some(_) => return None,
    };
    let named = |failure: &Value| {
        let item = failure.get("itemIdentifier").and_then(Value::as_str)?;
        batch.deliveries().iter().position(|delivery| delivery.item.as_deref() == Some(item))
    };
    failures.iter().map(named).collect()
}

fn event_id(record: &Value) -> Option<String> {
    record.get("eventID").and_then(Value::as_str).map(str::to_owned)
}

/// `shardId-000000000006:49590338271490256608559692538361571095921575989136588898`.
fn shard(record: &Value) -> String {
    let id = record.get("eventID").and_then(Value::as_str).unwrap_or_default();
    id.rsplit_once(':').map_or_else(String::new, |(shard, _)| shard.to_owned())
}

/// In a pipe, the members of `kinesis` are at the top level.
fn sequence(record: &Value) -> Option<&str> {
    ["/kinesis/sequenceNumber", "/dynamodb/SequenceNumber", "/sequenceNumber"]
        .iter()
        .find_map(|path| record.pointer(path).and_then(Value::as_str))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn record(shard: u8, sequence: &str) -> Value {
        json!({
            "eventSource": "aws:kinesis", "eventID": format!("shard-{shard}:{sequence}"),
            "kinesis": { "sequenceNumber": sequence, "data": "e30=" },
        })
    }

    fn stream(config: StreamConfig, now: Instant, sequences: &[&str]) -> Shards {
        let records = sequences.iter().map(|sequence| record(0, sequence)).collect();
        Shards::new(Source::Kinesis, config, records, now)
    }

    fn failing(ids: &[&str]) -> InvocationResult {
        let failures: Vec<_> = ids.iter().map(|id| json!({ "itemIdentifier": id })).collect();
        InvocationResult::Response(json!({ "batchItemFailures": failures }))
    }

    fn ids(batch: &Batch) -> Vec<&str> {
        batch.deliveries().iter().map(|delivery| delivery.id.as_deref().unwrap()).collect()
    }

    #[test]
    fn all_records_from_the_checkpoint_on_are_delivered_again() {
        let now = Instant::now();
        let mut stream = stream(StreamConfig::default(), now, &["1", "2", "3"]);
        let batch = stream.receive(now, 0).unwrap();
        assert!(stream.receive(now, 0).is_none(), "a shard delivers one batch at a time");
        let dispositions = stream.settle(&batch, &failing(&["3", "2"]), now);
        assert_eq!(dispositions, [Disposition::Done, Disposition::Returned, Disposition::Returned]);
        let later = stream.next().unwrap();
        assert!(stream.receive(now, 0).is_none() && later > now);
        let batch = stream.receive(later, 0).unwrap();
        assert_eq!(ids(&batch), ["2", "3"]);
        assert_eq!(batch.deliveries().iter().map(|d| d.count).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(stream.settle(&batch, &failing(&[]), later), [Disposition::Done; 2]);
        assert_eq!(stream.next(), None);
    }

    #[test]
    fn what_is_appended_while_a_batch_is_processed_comes_after_it() {
        let now = Instant::now();
        let mut stream = stream(StreamConfig::default(), now, &["1"]);
        let batch = stream.receive(now, 0).unwrap();
        stream.push("shard-0", record(0, "2"), now);
        assert!(stream.receive(now, 0).is_none(), "a shard delivers one batch at a time");
        assert_eq!(stream.settle(&batch, &failing(&[]), now), [Disposition::Done]);
        assert_eq!(stream.len(), 1);
        assert_eq!(ids(&stream.receive(now, 0).unwrap()), ["2"]);
    }

    #[test]
    fn shards_are_read_concurrently() {
        let now = Instant::now();
        let records = vec![record(0, "1"), record(1, "2"), record(0, "3")];
        let mut stream = Shards::new(Source::Kinesis, StreamConfig::default(), records, now);
        let (first, second) = (stream.receive(now, 0).unwrap(), stream.receive(now, 0).unwrap());
        assert_eq!((ids(&first), ids(&second)), (vec!["1", "3"], vec!["2"]));
    }

    #[test]
    fn splitting_finds_the_record_that_a_batch_fails_for() {
        let mut now = Instant::now();
        let config = StreamConfig { bisect: true, max_retries: 1, ..StreamConfig::default() };
        let mut stream = stream(config, now, &["1", "2", "3", "4"]);
        while let Some(batch) = stream.receive(now, 0) {
            let bad = ids(&batch).contains(&"3");
            let result = if bad { InvocationResult::TimedOut } else { failing(&[]) };
            stream.settle(&batch, &result, now);
            now += Duration::from_secs(1);
        }
        let dead = Box::new(stream).into_dead_letters();
        let dead: Vec<_> = dead.iter().map(|dead| dead.record.as_deref().unwrap()).collect();
        assert_eq!(dead, ["3"], "only the failing record is given up");
    }

    #[test]
    fn without_splitting_the_whole_batch_is_given_up() {
        let mut now = Instant::now();
        let config = StreamConfig { max_retries: 1, ..StreamConfig::default() };
        let mut stream = stream(config, now, &["1", "2"]);
        for disposition in [Disposition::Returned, Disposition::DeadLettered] {
            let batch = stream.receive(now, 0).unwrap();
            assert_eq!(stream.settle(&batch, &InvocationResult::TimedOut, now), [disposition; 2]);
            now += Duration::from_secs(1);
        }
        assert_eq!(stream.next(), None);
    }

    #[test]
    fn an_unknown_sequence_number_fails_the_batch() {
        let now = Instant::now();
        let mut stream = stream(StreamConfig::default(), now, &["1"]);
        let batch = stream.receive(now, 0).unwrap();
        assert_eq!(stream.settle(&batch, &failing(&["9"]), now), [Disposition::Returned]);
    }
}
