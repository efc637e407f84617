//! The handlers that run, polled one at a time.
//!
//! A completion must not wait for other handlers, so the driver looks after each poll of a handler
//! whether something else comes first. A stream of futures polls all that were woken before it comes
//! back. Here, each handler has a slot with its own waker, and [`Running::poll_one`] polls the one
//! that was woken first. Slots and wakers are used again for later handlers.

mod sync;
mod waking;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake as _, Waker},
};

use lambda_idempotency_core::{clock::Timestamp, record::Json};
use waking::{Task, Woken};

use crate::{handler::Handler, machine::Ended};

/// The handlers that were started and have not ended.
#[derive(Default)]
pub(crate) struct Running<'a> {
    /// How many run at once, at most, as far as is known: there is room for them once the first is started.
    handlers: usize,
    slots: Vec<Slot<'a>>,
    free: Vec<usize>,
    woken: Arc<Woken>,
    /// Counts the polls of the batch.
    turn: u64,
    /// Slots that were woken after they had been polled in this turn. They wait for the next one, so
    /// that a handler which wakes itself keeps neither the others nor the runtime waiting.
    again: Vec<usize>,
}

struct Slot<'a> {
    /// The record of the handler.
    at: usize,
    handler: Option<Handler<'a>>,
    /// The turn in which the handler was polled last.
    polled: Option<u64>,
    task: Arc<Task>,
    waker: Waker,
}

/// What a poll of a handler came to.
pub(crate) enum Polled {
    /// It is not through. Of which record, and its steps if one has ended.
    Pending(usize, Option<Json>),
    /// It has ended: of which record, how, and since when it ran, if it was called; and its steps if one has
    /// ended.
    Ended(usize, Ended, Option<Timestamp>, Option<Json>),
}

impl<'a> Running<'a> {
    /// So many handlers run at once, at most.
    pub(crate) const fn limit(&mut self, handlers: usize) {
        self.handlers = handlers;
    }

    /// Takes in the handler of record `at`; returns its slot. It is polled as if it had been woken.
    pub(crate) fn start(&mut self, at: usize, handler: Handler<'a>) -> usize {
        if self.slots.capacity() == 0 {
            self.slots.reserve_exact(self.handlers);
            self.free.reserve_exact(self.handlers);
            self.woken.reserve(self.handlers);
        }
        let handler = Some(handler);
        let number = self.free.pop().unwrap_or(self.slots.len());
        if let Some(slot) = self.slots.get_mut(number) {
            (slot.at, slot.handler, slot.polled) = (at, handler, None);
            slot.task.wake_by_ref();
        } else {
            let task = Arc::new(Task::new(number, Arc::clone(&self.woken)));
            task.wake_by_ref();
            let waker = Waker::from(Arc::clone(&task));
            self.slots.push(Slot { at, handler, polled: None, task, waker });
        }
        number
    }

    /// Drops the handler in this slot. Says since when it ran, if it was called.
    pub(crate) fn stop(&mut self, number: usize) -> Option<Timestamp> {
        let handler = self.slots.get_mut(number)?.handler.take()?;
        self.free.push(number);
        handler.since()
    }

    /// The lease of the handler in this slot was renewed.
    pub(crate) fn renewed(&mut self, number: usize, lease_until: Timestamp) {
        if let Some(handler) = self.slots.get_mut(number).and_then(|slot| slot.handler.as_mut()) {
            handler.renewed(lease_until);
        }
    }

    /// The batch is polled anew: each handler may be polled once more.
    pub(crate) fn begin_turn(&mut self) {
        self.turn += 1;
        if !self.again.is_empty() {
            self.woken.put_back(self.again.drain(..));
        }
    }

    /// Polls the handler that was woken first. `Pending` if there is none that may be polled in this
    /// turn.
    pub(crate) fn poll_one(&mut self, context: &mut Context<'_>) -> Poll<Polled> {
        self.woken.wakes(context.waker());
        while let Some(number) = self.woken.next() {
            let Some(slot) = self.slots.get_mut(number) else { continue };
            if slot.polled == Some(self.turn) {
                self.again.push(number);
                continue;
            }
            slot.task.begin_poll();
            let Some(handler) = &mut slot.handler else { continue };
            slot.polled = Some(self.turn);
            let polled = Pin::new(&mut *handler).poll(&mut Context::from_waker(&slot.waker));
            return Poll::Ready(match polled {
                Poll::Pending => Polled::Pending(slot.at, handler.take_steps()),
                Poll::Ready(ended) => {
                    let (since, steps) = (handler.since(), handler.take_steps());
                    slot.handler = None;
                    self.free.push(number);
                    Polled::Ended(slot.at, ended, since, steps)
                }
            });
        }
        if !self.again.is_empty() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
