//! What an event source mapping does: reads batches, invokes, and goes by the answer.

use std::time::Instant;

use serde_json::Value;

use super::{DeadLetter, Disposition, Source};
use crate::InvocationResult;

/// A source that is polled: a state machine without a clock or a network of its own, so that every rule can be tested
/// without waiting.
pub trait Poller: Send {
    /// Which source it is.
    fn source(&self) -> Source;

    /// Reads the next batch, if there is one for now.
    fn receive(&mut self, now: Instant, now_ms: u64) -> Option<Batch>;

    /// Does with a batch what the poller does after the invocation, and tells the disposition of each of its records.
    fn settle(
        &mut self,
        batch: &Batch,
        result: &InvocationResult,
        now: Instant,
    ) -> Vec<Disposition>;

    /// When there may be something to read without another answer; `None` if there is not.
    fn next(&self) -> Option<Instant>;

    /// What was given up.
    fn into_dead_letters(self: Box<Self>) -> Vec<DeadLetter>;
}

/// Records that were read together.
#[derive(Clone, Debug)]
pub struct Batch {
    event: Value,
    deliveries: Vec<Delivery>,
}

/// One record of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// The shard or partition.
    pub(crate) lane: String,
    /// What its source finds it by.
    pub(crate) serial: u64,
    pub(crate) id: Option<String>,
    /// What the function's answer calls it, where that is a text.
    pub(crate) item: Option<String>,
    /// The how manieth delivery of the record this is.
    pub(crate) count: u32,
}

impl Batch {
    pub(crate) fn new(event: Value, deliveries: Vec<Delivery>) -> Self {
        Self { event, deliveries }
    }

    /// The event for the function.
    pub fn event(&self) -> &Value {
        &self.event
    }

    /// Of each record: its id, if it has one, and how often it has been delivered.
    pub fn records(&self) -> impl Iterator<Item = (Option<&str>, u32)> {
        self.deliveries.iter().map(|delivery| (delivery.id.as_deref(), delivery.count))
    }

    pub(crate) fn deliveries(&self) -> &[Delivery] {
        &self.deliveries
    }
}
