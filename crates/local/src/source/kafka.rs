//! Kafka: an invocation gets records of several partitions, each of which continues from its own offset.
//!
//! In queue mode (share groups) there are no offsets to continue from: each record is acknowledged separately, unless
//! the answer names it. AWS does not document partial answers in that mode; this is the stricter reading.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::{Map, Value};

use super::lane::{Lane, Progress};
use super::poller::{Batch, Delivery, Poller};
use super::{DeadLetter, Disposition, Source, StreamConfig};
use crate::InvocationResult;

/// A topic's partitions, as an event source mapping reads them.
#[derive(Clone, Debug)]
pub struct Kafka {
    config: StreamConfig,
    /// The event without its records.
    outside: Map<String, Value>,
    partitions: BTreeMap<String, Lane>,
    dead: Vec<DeadLetter>,
}

impl Kafka {
    /// The partitions in an event. Members that are not lists of records are ignored.
    pub fn new(config: StreamConfig, event: Value, now: Instant) -> Self {
        let mut outside = match event {
            Value::Object(outside) => outside,
            _ => Map::new(),
        };
        let mut partitions = BTreeMap::new();
        if let Some(Value::Object(records)) = outside.remove("records") {
            for (partition, records) in records {
                let mut lane = Lane::new(Source::Kafka, now);
                let Value::Array(records) = records else { continue };
                for record in records {
                    let id = offset(&record).map(|offset| format!("{partition}@{offset}"));
                    lane.push(id, record, config.batch_size);
                }
                partitions.insert(partition, lane);
            }
        }
        Self { config, outside, partitions, dead: Vec::new() }
    }
}

impl Poller for Kafka {
    fn source(&self) -> Source {
        Source::Kafka
    }

    fn receive(&mut self, now: Instant, _now_ms: u64) -> Option<Batch> {
        let (mut records, mut deliveries) = (Map::new(), Vec::new());
        for (partition, lane) in &mut self.partitions {
            let Some(entries) = lane.take(now) else { continue };
            let values = entries.iter().map(|entry| entry.record.clone()).collect();
            records.insert(partition.clone(), Value::Array(values));
            deliveries.extend(entries.iter().map(|entry| Delivery {
                lane: partition.clone(),
                serial: offset(&entry.record).unwrap_or_default(),
                id: entry.id.clone(),
                item: None,
                count: entry.deliveries,
            }));
        }
        if deliveries.is_empty() {
            return None;
        }
        let mut event = self.outside.clone();
        event.insert("records".to_owned(), Value::Object(records));
        Some(Batch::new(Value::Object(event), deliveries))
    }

    fn settle(
        &mut self,
        batch: &Batch,
        result: &InvocationResult,
        now: Instant,
    ) -> Vec<Disposition> {
        let failed = failed(batch, result, self.config.report_batch_item_failures);
        let mut dispositions = Vec::new();
        for (partition, lane) in &mut self.partitions {
            let taken = || batch.deliveries().iter().filter(|delivery| delivery.lane == *partition);
            if taken().next().is_none() {
                continue;
            }
            let offsets = failed.as_ref().map(|failed| failed.get(partition));
            let progress = match offsets {
                None => Progress::Failed,
                Some(None) => Progress::Done,
                Some(Some(offsets)) if self.config.queue_mode => {
                    let named = taken().enumerate().filter(|(_, d)| offsets.contains(&d.serial));
                    Progress::AllBut(named.map(|(nth, _)| nth).collect())
                }
                Some(Some(offsets)) => Progress::UpTo(
                    taken()
                        .take_while(|d| offsets.first().is_none_or(|low| d.serial < *low))
                        .count(),
                ),
            };
            dispositions.extend(lane.settle(progress, &self.config, now, &mut self.dead));
        }
        dispositions
    }

    fn next(&self) -> Option<Instant> {
        self.partitions.values().filter_map(Lane::next).min()
    }

    fn into_dead_letters(self: Box<Self>) -> Vec<DeadLetter> {
        self.dead
    }
}

/// The offsets that failed of each partition; `None` if all failed.
fn failed(
    batch: &Batch,
    result: &InvocationResult,
    partial: bool,
) -> Option<BTreeMap<String, BTreeSet<u64>>> {
    let InvocationResult::Response(response) = result else { return None };
    let failures = match response.get("batchItemFailures") {
        Some(Value::Array(failures)) if partial => failures,
        None | Some(Value::Null) => return Some(BTreeMap::new()),
        Some(_) if !partial => return Some(BTreeMap::new()),
        Some(_) => return None,
    };
    let mut failed: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for failure in failures {
        let item = failure.get("itemIdentifier")?;
        let partition = item.get("partition")?.as_str()?;
        let offset = item.get("offset")?.as_u64()?;
        let known = |d: &Delivery| d.lane == partition && d.serial == offset;
        if !batch.deliveries().iter().any(known) {
            return None;
        }
        failed.entry(partition.to_owned()).or_default().insert(offset);
    }
    Some(failed)
}

fn offset(record: &Value) -> Option<u64> {
    record.get("offset")?.as_u64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn topic(now: Instant) -> Kafka {
        let records = |offsets: &[u64]| offsets.iter().map(|o| json!({ "offset": o })).collect();
        let records: [Vec<Value>; 2] = [records(&[5, 6, 7]), records(&[1, 2])];
        let [first, second] = records;
        let event = json!({
            "eventSource": "aws:kafka", "records": { "orders-0": first, "orders-1": second },
        });
        Kafka::new(StreamConfig::default(), event, now)
    }

    fn failing(items: &[(&str, u64)]) -> InvocationResult {
        let failure = |(partition, offset): &(&str, u64)| json!({ "itemIdentifier": { "partition": partition, "offset": offset } });
        let failures: Vec<_> = items.iter().map(failure).collect();
        InvocationResult::Response(json!({ "batchItemFailures": failures }))
    }

    fn ids(batch: &Batch) -> Vec<&str> {
        batch.deliveries().iter().map(|delivery| delivery.id.as_deref().unwrap()).collect()
    }

    #[test]
    fn each_partition_restarts_from_its_own_checkpoint() {
        let now = Instant::now();
        let mut topic = topic(now);
        let batch = topic.receive(now, 0).unwrap();
        assert_eq!(batch.event()["eventSource"], "aws:kafka");
        assert_eq!(ids(&batch).len(), 5);
        topic.settle(&batch, &failing(&[("orders-0", 7), ("orders-0", 6)]), now);
        let later = topic.next().unwrap();
        let again = topic.receive(later, 0).unwrap();
        assert_eq!(ids(&again), ["orders-0@6", "orders-0@7"]);
        topic.settle(&again, &failing(&[]), later);
        assert_eq!(topic.next(), None);
    }

    /// A function that names only the first failed record of a partition, as a checkpoint, loses the
    /// failed records after it.
    #[test]
    fn in_queue_mode_unnamed_records_are_done_and_each_record_is_given_up_separately() {
        let mut now = Instant::now();
        let config = StreamConfig { queue_mode: true, max_retries: 1, ..StreamConfig::default() };
        let mut topic = Kafka { config, ..topic(now) };
        let batch = topic.receive(now, 0).unwrap();
        let dispositions = topic.settle(&batch, &failing(&[("orders-0", 5), ("orders-0", 7)]), now);
        assert_eq!(
            dispositions,
            [
                Disposition::Returned,
                Disposition::Done,
                Disposition::Returned,
                Disposition::Done,
                Disposition::Done
            ]
        );
        now = topic.next().unwrap();
        let again = topic.receive(now, 0).unwrap();
        assert_eq!(ids(&again), ["orders-0@5", "orders-0@7"]);
        let dispositions = topic.settle(&again, &failing(&[("orders-0", 7)]), now);
        assert_eq!(dispositions, [Disposition::Done, Disposition::DeadLettered]);
        assert_eq!(topic.next(), None);
        let dead = Box::new(topic).into_dead_letters();
        assert_eq!(dead[0].record.as_deref(), Some("orders-0@7"));
    }

    #[test]
    fn an_invalid_kafka_response_fails_the_whole_batch() {
        let now = Instant::now();
        for answer in [
            failing(&[("orders-0", 99)]),
            failing(&[("orders-9", 5)]),
            InvocationResult::Response(json!({ "batchItemFailures": [{ "itemIdentifier": "5" }] })),
            InvocationResult::TimedOut,
        ] {
            let mut topic = topic(now);
            let batch = topic.receive(now, 0).unwrap();
            assert_eq!(topic.settle(&batch, &answer, now), [Disposition::Returned; 5], "{answer}");
        }
    }
}
