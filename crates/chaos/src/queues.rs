//! The queues of a run: sends the messages of the schedule and receives them in batches.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use lambda_idempotency_local::{
    Batch, Disposition, InvocationResult, Poller as _, Queue, SqsConfig,
};

use crate::{
    Settings,
    schedule::{Message, Schedule},
};

/// How many messages are in the queues at a time, visible or not.
const WINDOW: usize = 2000;
/// How often a message of an order that fails permanently is received.
const DOOMED_RECEIVES: u32 = 3;

pub(crate) struct Queues<'a> {
    schedule: &'a Schedule,
    /// One for orders that can be placed, without a limit of receives, and one for those that cannot.
    queues: [Queue; 2],
    /// How many messages of the schedule are sent.
    sent: usize,
    /// Which queue is asked next.
    turn: usize,
}

/// A batch from one of the queues.
pub(crate) struct Received {
    pub(crate) batch: Batch,
    /// Whether its orders cannot be placed.
    pub(crate) doomed: bool,
}

impl<'a> Queues<'a> {
    pub(crate) fn new(settings: &Settings, schedule: &'a Schedule) -> Self {
        let queue = |max_receive_count| {
            let visibility = Some(settings.visibility);
            let config = SqsConfig { visibility, max_receive_count, ..SqsConfig::default() };
            Queue::new(config, settings.timeout)
        };
        Self { schedule, queues: [queue(u32::MAX), queue(DOOMED_RECEIVES)], sent: 0, turn: 0 }
    }

    /// How many messages are neither acknowledged nor dead-lettered, sent or not.
    pub(crate) fn left(&self) -> usize {
        self.queued() + self.schedule.messages.len().saturating_sub(self.sent)
    }

    fn queued(&self) -> usize {
        self.queues.iter().map(Queue::len).sum()
    }

    /// Sends what fits into the window.
    pub(crate) fn feed(&mut self) {
        let schedule = self.schedule;
        while self.queued() < WINDOW
            && let Some(message) = schedule.messages.get(self.sent)
        {
            self.sent += 1;
            self.send(message);
        }
    }

    pub(crate) fn send(&mut self, message: &Message) {
        let order = self.schedule.orders.get(message.order);
        let doomed = order.is_some_and(|order| order.is_doomed());
        if let Some(queue) = self.queues.get_mut(usize::from(doomed)) {
            queue.send(message.record(), Instant::now(), epoch_ms());
        }
    }

    /// Receives a batch from the queues in turn.
    pub(crate) fn receive(&mut self) -> Option<Received> {
        for _ in 0..self.queues.len() {
            let which = self.turn % self.queues.len();
            self.turn += 1;
            if let Some(batch) = self.queues.get_mut(which)?.receive(Instant::now(), epoch_ms()) {
                return Some(Received { batch, doomed: which == 1 });
            }
        }
        None
    }

    /// Settles a batch by the answer of its invocation; returns what became of each message.
    pub(crate) fn settle(
        &mut self,
        received: &Received,
        answer: &InvocationResult,
    ) -> Vec<Disposition> {
        let queue = self.queues.get_mut(usize::from(received.doomed));
        queue.map_or_else(Vec::new, |queue| queue.settle(&received.batch, answer, Instant::now()))
    }
}

fn epoch_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
