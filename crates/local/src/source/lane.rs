//! Records that keep an order: the shard of a stream, the partition of a topic.
//!
//! The poller reads a batch from the front of a lane and removes the records that are done. After a failure it reads
//! again from the checkpoint, and no later record is read before. This ends when the batch succeeds, or when it was
//! retried too often: then the poller gives the batch up, sends it to the on-failure destination, and continues after
//! it.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::event::Source;
use super::report::{DeadLetter, Disposition};

/// Settings of the event source mapping of a stream or a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// How many records an invocation gets at most.
    pub batch_size: usize,
    /// How often a batch is retried before it is given up. AWS retries until the records expire, unless configured.
    pub max_retries: u32,
    /// Whether a failed batch is split in two, to find the record that it fails for. A split does not count as a retry.
    pub bisect: bool,
    /// How long to wait before a batch is tried again.
    pub retry_delay: Duration,
    /// Kafka only: queue mode (share groups). Each record is acknowledged separately, unless the answer names it. A
    /// record that was delivered `max_retries` + 1 times is given up, even if no handler was called for it.
    pub queue_mode: bool,
}

impl Default for StreamConfig {
    /// Batches of 100, five retries a fifth of a second apart, no splitting, no queue mode.
    fn default() -> Self {
        Self {
            batch_size: 100,
            max_retries: 5,
            bisect: false,
            retry_delay: Duration::from_millis(200),
            queue_mode: false,
        }
    }
}

/// The meaning of a function's answer for the records of a lane that it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Done,
    /// The records before this index are done.
    UpTo(usize),
    /// All but those at these indices are done: each record is acknowledged separately.
    AllBut(BTreeSet<usize>),
    Failed,
}

/// A record, and how often it was delivered.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: Option<String>,
    pub(crate) record: Value,
    pub(crate) deliveries: u32,
}

impl Entry {
    fn dead(self, source: Source) -> DeadLetter {
        let Self { id: record, record: event, deliveries: receive_count } = self;
        DeadLetter { source, record, receive_count, event }
    }
}

/// Some records that are read together.
#[derive(Clone, Debug)]
struct Chunk {
    entries: VecDeque<Entry>,
    failures: u32,
}

/// A lane, from the first record that is not done.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    source: Source,
    chunks: VecDeque<Chunk>,
    not_before: Instant,
    taken: usize,
}

impl Lane {
    pub(crate) fn new(source: Source, now: Instant) -> Self {
        Self { source, chunks: VecDeque::new(), not_before: now, taken: 0 }
    }

    /// Appends a record: to the last batch, unless that is full or was delivered.
    pub(crate) fn push(&mut self, id: Option<String>, record: Value, batch_size: usize) {
        let entry = Entry { id, record, deliveries: 0 };
        let is_new = |chunk: &Chunk| chunk.entries.iter().all(|entry| entry.deliveries == 0);
        match self.chunks.back_mut() {
            Some(chunk) if chunk.entries.len() < batch_size.max(1) && is_new(chunk) => {
                chunk.entries.push_back(entry);
            }
            _ => self.chunks.push_back(Chunk { entries: [entry].into(), failures: 0 }),
        }
    }

    /// How many records are not done.
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.entries.len()).sum()
    }

    /// The next batch, if it is time for one and none is being processed.
    pub(crate) fn take(&mut self, now: Instant) -> Option<&VecDeque<Entry>> {
        if self.taken > 0 || now < self.not_before {
            return None;
        }
        let chunk = self.chunks.front_mut()?;
        for entry in &mut chunk.entries {
            entry.deliveries += 1;
        }
        self.taken = chunk.entries.len();
        Some(&chunk.entries)
    }

    /// Goes on behind what is done. Returns the disposition of each record that was taken.
    pub(crate) fn dispose(
        &mut self,
        progress: Progress,
        config: &StreamConfig,
        now: Instant,
        dead: &mut Vec<DeadLetter>,
    ) -> Vec<Disposition> {
        let taken = std::mem::take(&mut self.taken);
        let Some(mut chunk) = self.chunks.pop_front() else { return Vec::new() };
        let done = match progress {
            Progress::Done => taken,
            Progress::UpTo(done) => done.min(taken),
            Progress::AllBut(failed) => return self.release(chunk, &failed, config, now, dead),
            Progress::Failed => 0,
        };
        let mut dispositions = vec![Disposition::Done; done];
        chunk.entries.drain(..done);
        if chunk.entries.is_empty() {
            return dispositions;
        }
        // Retries count for a batch without progress; after the checkpoint has moved, it is another batch.
        chunk.failures = if done > 0 { 0 } else { chunk.failures + 1 };
        self.not_before = now + config.retry_delay;
        let rest = chunk.entries.len();
        if config.bisect && progress == Progress::Failed && rest > 1 {
            let second = chunk.entries.split_off(rest / 2);
            self.chunks.push_front(Chunk { entries: second, failures: 0 });
            chunk.failures = 0;
        }
        if chunk.failures > config.max_retries {
            dead.extend(chunk.entries.into_iter().map(|entry| entry.dead(self.source)));
            dispositions.extend(vec![Disposition::DeadLettered; rest]);
        } else {
            self.chunks.push_front(chunk);
            dispositions.extend(vec![Disposition::Returned; rest]);
        }
        dispositions
    }

    /// Lets go of what is not named, and gives up what was named too often, each record by itself.
    fn release(
        &mut self,
        mut chunk: Chunk,
        failed: &BTreeSet<usize>,
        config: &StreamConfig,
        now: Instant,
        dead: &mut Vec<DeadLetter>,
    ) -> Vec<Disposition> {
        let mut dispositions = Vec::new();
        for (nth, entry) in std::mem::take(&mut chunk.entries).into_iter().enumerate() {
            dispositions.push(if !failed.contains(&nth) {
                Disposition::Done
            } else if entry.deliveries > config.max_retries {
                dead.push(entry.dead(self.source));
                Disposition::DeadLettered
            } else {
                chunk.entries.push_back(entry);
                Disposition::Returned
            });
        }
        if !chunk.entries.is_empty() {
            self.not_before = now + config.retry_delay;
            self.chunks.push_front(chunk);
        }
        dispositions
    }

    /// When the next batch can be read; `None` while one is being processed, and at the end.
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.taken == 0 && !self.chunks.is_empty()).then_some(self.not_before)
    }
}
