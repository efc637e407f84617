//! Kinesis, DynamoDB streams and Kafka: records of a shard or partition in order, several of them at a time.
//!
//! An invocation gets records of one shard, or of several partitions. Lambda's event source mapping continues from the
//! lowest record that the answer names. A pipe delivers the named records again, which it knows by their `eventID`; so
//! does Kafka's queue mode (share groups), which has no offsets to continue from: each record is acknowledged separately,
//! unless the answer names it. AWS does not document partial answers in that mode; this is the stricter reading.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::event::Source;
use super::lane::{Entry, Lane, Progress, StreamConfig};
use super::poller::{Batch, Delivery, Poller};
use super::report::{DeadLetter, Disposition};
use crate::function::InvocationResult;

/// The shards of a stream, or the partitions of a topic, as an event source mapping reads them.
#[derive(Clone, Debug)]
pub struct Shards {
    source: Source,
    config: StreamConfig,
    piped: bool,
    /// The event of a topic, without its records.
    outside: Map<String, Value>,
    lanes: BTreeMap<String, Lane>,
    dead: Vec<DeadLetter>,
}

impl Shards {
    /// The stream that these records are from: [`Source::Kinesis`] or [`Source::DynamoDb`].
    pub fn new(source: Source, config: StreamConfig, records: Vec<Value>, now: Instant) -> Self {
        let (lanes, outside) = (BTreeMap::new(), Map::new());
        let mut stream = Self { source, config, piped: false, outside, lanes, dead: Vec::new() };
        for record in records {
            stream.push(&shard(&record), record, now);
        }
        stream
    }

    /// The partitions in an event of Kafka. Members that are not lists of records are ignored.
    pub fn kafka(config: StreamConfig, event: Value, now: Instant) -> Self {
        let mut topic = Self::new(Source::Kafka, config, Vec::new(), now);
        if let Value::Object(outside) = event {
            topic.outside = outside;
        }
        if let Some(Value::Object(records)) = topic.outside.remove("records") {
            for (partition, records) in records {
                let Value::Array(records) = records else { continue };
                records.into_iter().for_each(|record| topic.push(&partition, record, now));
            }
        }
        topic
    }

    /// Appends a record to a shard or partition.
    pub fn push(&mut self, shard: &str, record: Value, now: Instant) {
        let source = self.source;
        let id = match source {
            Source::Kafka => offset_in(shard, &record),
            _ => sequence(&record).map(str::to_owned),
        };
        let lane = self.lanes.entry(shard.to_owned()).or_insert_with(|| Lane::new(source, now));
        lane.push(id, record, self.config.batch_size);
    }

    /// The same, read by a pipe.
    pub fn behind_a_pipe(mut self) -> Self {
        self.piped = true;
        self
    }
}

impl Poller for Shards {
    fn source(&self) -> Source {
        if self.piped { Source::Pipe } else { self.source }
    }

    fn receive(&mut self, now: Instant) -> Option<Batch> {
        let (piped, is_kafka) = (self.piped, self.source == Source::Kafka);
        let lanes = if is_kafka { self.lanes.len() } else { 1 };
        let taken = self.lanes.iter_mut().filter_map(|(name, lane)| Some((name, lane.take(now)?)));
        let (mut records, mut deliveries) = (Map::new(), Vec::new());
        for (name, entries) in taken.take(lanes) {
            let values = entries.iter().map(|entry| entry.record.clone()).collect();
            records.insert(name.clone(), Value::Array(values));
            deliveries.extend(entries.iter().map(|entry| Delivery {
                lane: name.clone(),
                serial: 0,
                id: entry.id.clone(),
                item: match &entry.id {
                    _ if piped => event_id(entry).map(Value::String),
                    Some(_) if is_kafka => {
                        Some(json!({ "partition": name, "offset": entry.record.get("offset") }))
                    }
                    id => id.clone().map(Value::String),
                },
                count: entry.deliveries,
            }));
        }
        if deliveries.is_empty() {
            return None;
        }
        let event = if is_kafka {
            let mut event = self.outside.clone();
            event.insert("records".to_owned(), Value::Object(records));
            Value::Object(event)
        } else {
            let records = records.into_iter().next().map(|(_, records)| records);
            if piped { records.into() } else { json!({ "Records": records }) }
        };
        Some(Batch::new(event, deliveries))
    }

    fn dispose(
        &mut self,
        batch: &Batch,
        result: &InvocationResult,
        now: Instant,
    ) -> Vec<Disposition> {
        let failed = batch.failed(result);
        let is_separate = self.piped || self.config.queue_mode;
        let (mut dispositions, mut first) = (Vec::new(), 0);
        for records in batch.deliveries().chunk_by(|one, next| one.lane == next.lane) {
            let own = first..first + records.len();
            first = own.end;
            let Some(lane) = records.first().and_then(|one| self.lanes.get_mut(&one.lane)) else {
                continue;
            };
            let progress = match &failed {
                None => Progress::Failed,
                Some(failed) => {
                    let mut named = failed.range(own.clone()).map(|position| position - own.start);
                    match is_separate {
                        true => Progress::AllBut(named.collect()),
                        false => named.next().map_or(Progress::Done, Progress::UpTo),
                    }
                }
            };
            dispositions.extend(lane.dispose(progress, &self.config, now, &mut self.dead));
        }
        dispositions
    }

    fn left(&self) -> usize {
        self.lanes.values().map(Lane::len).sum()
    }

    fn next(&self) -> Option<Instant> {
        self.lanes.values().filter_map(Lane::next).min()
    }

    fn into_dead_letters(self: Box<Self>) -> Vec<DeadLetter> {
        let source = Poller::source(&*self);
        self.dead.into_iter().map(|dead| DeadLetter { source, ..dead }).collect()
    }
}

fn event_id(entry: &Entry) -> Option<String> {
    entry.record.get("eventID").and_then(Value::as_str).map(str::to_owned)
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

/// `orders-0@17`: a record of Kafka.
fn offset_in(partition: &str, record: &Value) -> Option<String> {
    let offset = record.get("offset")?.as_u64()?;
    Some(format!("{partition}@{offset}"))
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

    /// Partitions with the offsets 5, 6, 7 and 1, 2.
    fn topic(config: StreamConfig, now: Instant) -> Shards {
        let records = |offsets: &[u64]| {
            offsets.iter().map(|offset| json!({ "offset": offset })).collect::<Vec<_>>()
        };
        let event = json!({ "eventSource": "aws:kafka", "records": {
            "orders-0": records(&[5, 6, 7]), "orders-1": records(&[1, 2]),
        } });
        Shards::kafka(config, event, now)
    }

    fn failing(ids: &[&str]) -> InvocationResult {
        let named = |id: &&str| match id.split_once('@') {
            Some((partition, offset)) => {
                json!({ "partition": partition, "offset": offset.parse::<u64>().unwrap() })
            }
            None => json!(id),
        };
        let failures: Vec<_> =
            ids.iter().map(|id| json!({ "itemIdentifier": named(id) })).collect();
        InvocationResult::Response(json!({ "batchItemFailures": failures }))
    }

    fn ids(batch: &Batch) -> Vec<&str> {
        batch.records().map(|(id, _)| id.unwrap()).collect()
    }

    #[test]
    fn all_records_from_the_checkpoint_on_are_delivered_again() {
        let now = Instant::now();
        let mut stream = stream(StreamConfig::default(), now, &["1", "2", "3"]);
        let batch = stream.receive(now).unwrap();
        assert!(stream.receive(now).is_none(), "a shard delivers one batch at a time");
        let dispositions = stream.dispose(&batch, &failing(&["3", "2"]), now);
        assert_eq!(dispositions, [Disposition::Done, Disposition::Returned, Disposition::Returned]);
        let later = stream.next().unwrap();
        assert!(stream.receive(now).is_none() && later > now);
        let batch = stream.receive(later).unwrap();
        assert_eq!(batch.records().collect::<Vec<_>>(), [(Some("2"), 2), (Some("3"), 2)]);
        assert_eq!(stream.dispose(&batch, &failing(&[]), later), [Disposition::Done; 2]);
        assert_eq!(stream.next(), None);
    }

    #[test]
    fn what_is_appended_while_a_batch_is_processed_comes_after_it() {
        let now = Instant::now();
        let mut stream = stream(StreamConfig::default(), now, &["1"]);
        let batch = stream.receive(now).unwrap();
        stream.push("shard-0", record(0, "2"), now);
        assert!(stream.receive(now).is_none(), "a shard delivers one batch at a time");
        assert_eq!(stream.dispose(&batch, &failing(&[]), now), [Disposition::Done]);
        assert_eq!(stream.left(), 1);
        assert_eq!(ids(&stream.receive(now).unwrap()), ["2"]);
    }

    #[test]
    fn shards_are_read_concurrently() {
        let now = Instant::now();
        let records = vec![record(0, "1"), record(1, "2"), record(0, "3")];
        let mut stream = Shards::new(Source::Kinesis, StreamConfig::default(), records, now);
        let (first, second) = (stream.receive(now).unwrap(), stream.receive(now).unwrap());
        assert_eq!((ids(&first), ids(&second)), (vec!["1", "3"], vec!["2"]));
    }

    #[test]
    fn splitting_finds_the_record_that_a_batch_fails_for() {
        let mut now = Instant::now();
        let config = StreamConfig { bisect: true, max_retries: 1, ..StreamConfig::default() };
        let mut stream = stream(config, now, &["1", "2", "3", "4"]);
        while let Some(batch) = stream.receive(now) {
            let bad = ids(&batch).contains(&"3");
            let result = if bad { InvocationResult::TimedOut } else { failing(&[]) };
            stream.dispose(&batch, &result, now);
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
            let batch = stream.receive(now).unwrap();
            assert_eq!(stream.dispose(&batch, &InvocationResult::TimedOut, now), [disposition; 2]);
            now += Duration::from_secs(1);
        }
        assert_eq!(stream.next(), None);
    }

    #[test]
    fn each_partition_restarts_from_its_own_checkpoint() {
        let now = Instant::now();
        let mut topic = topic(StreamConfig::default(), now);
        let batch = topic.receive(now).unwrap();
        assert_eq!(batch.event()["eventSource"], "aws:kafka");
        assert_eq!(ids(&batch).len(), 5);
        topic.dispose(&batch, &failing(&["orders-0@7", "orders-0@6"]), now);
        let later = topic.next().unwrap();
        let again = topic.receive(later).unwrap();
        assert_eq!(ids(&again), ["orders-0@6", "orders-0@7"]);
        topic.dispose(&again, &failing(&[]), later);
        assert_eq!(topic.next(), None);
    }

    /// A function that names only the first failed record of a partition, as a checkpoint, loses the
    /// failed records after it.
    #[test]
    fn in_queue_mode_unnamed_records_are_done_and_each_record_is_given_up_separately() {
        use Disposition::{DeadLettered, Done, Returned};
        let now = Instant::now();
        let config = StreamConfig { queue_mode: true, max_retries: 1, ..StreamConfig::default() };
        let mut topic = topic(config, now);
        let batch = topic.receive(now).unwrap();
        let dispositions = topic.dispose(&batch, &failing(&["orders-0@5", "orders-0@7"]), now);
        assert_eq!(dispositions, [Returned, Done, Returned, Done, Done]);
        let now = topic.next().unwrap();
        let again = topic.receive(now).unwrap();
        assert_eq!(ids(&again), ["orders-0@5", "orders-0@7"]);
        assert_eq!(topic.dispose(&again, &failing(&["orders-0@7"]), now), [Done, DeadLettered]);
        assert_eq!(topic.next(), None);
        let dead = Box::new(topic).into_dead_letters();
        assert_eq!(dead[0].record.as_deref(), Some("orders-0@7"));
    }

    #[test]
    fn an_unknown_record_fails_all_partitions() {
        let now = Instant::now();
        let as_text = json!({ "batchItemFailures": [{ "itemIdentifier": "orders-0@6" }] });
        for answer in [
            failing(&["orders-0@99"]),
            failing(&["5"]),
            InvocationResult::Response(as_text),
            InvocationResult::TimedOut,
        ] {
            let mut topic = topic(StreamConfig::default(), now);
            let batch = topic.receive(now).unwrap();
            assert_eq!(topic.dispose(&batch, &answer, now), [Disposition::Returned; 5], "{answer}");
        }
    }
}
