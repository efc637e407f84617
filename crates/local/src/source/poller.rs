//! The poller of an event source mapping: reads batches, invokes the function, and acts on its answer.

use std::time::Instant;

use serde_json::Value;

use super::{DeadLetter, Disposition, Source};
use crate::InvocationResult;

/// A source that is polled: a state machine without clock or network, so that tests need not wait.
pub trait Poller: Send {
    /// Which source it is.
    fn source(&self) -> Source;

    /// Reads the next batch, if one can be read now.
    fn receive(&mut self, now: Instant, now_ms: u64) -> Option<Batch>;

    /// Settles a batch after its invocation, and returns the disposition of each of its records.
    fn settle(
        &mut self,
        batch: &Batch,
        result: &InvocationResult,
        now: Instant,
    ) -> Vec<Disposition>;

    /// When a batch may become readable without another answer; `None` if none will.
    fn next(&self) -> Option<Instant>;

    /// The records that were given up.
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
    /// The id by which its source finds it.
    pub(crate) serial: u64,
    pub(crate) id: Option<String>,
    /// The name of the record in the function's answer, if that is a text.
    pub(crate) item: Option<String>,
    /// The number of this delivery of the record, from 1.
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
