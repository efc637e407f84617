//! What the queue of the function's messages was told, as part of the history.

use std::{collections::BTreeSet, time::Instant};

use lambda_idempotency_local::{Invocation, ItemAnswer};

use super::{History, Send};
use crate::sending::Arrival;

impl History {
    /// Adds an attempt to send a message. One that is added after the end of its invocation belongs to it only if the
    /// process gets no other.
    pub(crate) fn arrived(&mut self, arrival: Arrival) {
        self.now += 1;
        let (index, pid, order) = (self.sends.len(), arrival.pid, arrival.order);
        let invocation = self.last.get(&pid).copied();
        self.sends.push(Send { seen: self.now, arrival, invocation });
        self.open_sends.entry(pid).or_default().push(index);
        self.orders.entry(order).or_default().sends.push(index);
    }

    /// The attempts to send messages of an order, in the order in which they reached the queue.
    pub(crate) fn sends_of(&self, order: usize) -> impl Iterator<Item = &Send> {
        let sends = self.orders.get(&order).map(|order| &order.sends);
        sends.into_iter().flatten().filter_map(|index| self.sends.get(*index))
    }

    /// How many of an order's messages have arrived.
    pub(crate) fn sent(&self, order: usize) -> usize {
        let taken = self.sends_of(order).filter(|send| send.arrival.answer.is_taken());
        taken.map(|send| send.arrival.part).collect::<BTreeSet<_>>().len()
    }
}

/// When the requests began that failed, or into which a fault was injected.
pub(super) fn failed_requests(invocation: &Invocation) -> Vec<Instant> {
    let requests = invocation.requests.iter();
    let failed = requests.filter(|request| {
        request.faulty || request.items.iter().any(|item| item.answer == ItemAnswer::Failed)
    });
    failed.map(|request| request.began).collect()
}
