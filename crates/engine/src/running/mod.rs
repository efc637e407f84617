//! The handlers that run, polled one at a time.
//!
//! A completion must not wait for other handlers, so the driver looks after each poll of a handler
//! whether something else comes first. A stream of futures polls all that were woken before it comes
//! back. Here, each handler has a slot with its own waker, and [`RunningHandlers::poll_one`] polls the one
//! that was woken first. Slots and wakers are used again for later handlers.

mod sync;
mod waking;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake as _, Waker},
};

use lambda_idempotency_core::{clock::Timestamp, record::Json};
use waking::{HandlerWaker, Woken};

use crate::{handler::HandlerCall, machine::HandlerEnd};

/// The handlers that were started and have not ended.
#[derive(Default)]
pub(crate) struct RunningHandlers<'a> {
    /// How many run at once, at most, as far as is known: there is room for them once the first is started.
    handlers: usize,
    slots: Vec<HandlerSlot<'a>>,
    free: Vec<usize>,
    woken: Arc<Woken>,
    /// Counts the polls of the batch.
    turn: u64,
    /// Slots that were woken after they had been polled in this turn. They wait for the next one, so
    /// that a handler which wakes itself keeps neither the others nor the runtime waiting.
    again: Vec<usize>,
}

struct HandlerSlot<'a> {
    /// The record of the handler.
    at: usize,
    handler: Option<HandlerCall<'a>>,
    /// The turn in which the handler was polled last.
    polled: Option<u64>,
    task: Arc<HandlerWaker>,
    waker: Waker,
}

/// The end of a poll of a handler.
pub(crate) enum Polled {
    /// It has not ended: its record, and its steps if one has ended.
    Pending(usize, Option<Json>),
    /// It has ended: of which record, how, and since when it ran, if it was called; and its steps if one has
    /// ended.
    Ended(usize, HandlerEnd, Option<Timestamp>, Option<Json>),
}

impl<'a> RunningHandlers<'a> {
    /// So many handlers run at once, at most.
    pub(crate) const fn limit(&mut self, handlers: usize) {
        self.handlers = handlers;
    }

    /// Takes in the handler of record `at`; returns its slot. It is polled as if it had been woken.
    pub(crate) fn start(&mut self, at: usize, handler: HandlerCall<'a>) -> usize {
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
            let task = Arc::new(HandlerWaker::new(number, Arc::clone(&self.woken)));
            task.wake_by_ref();
            let waker = Waker::from(Arc::clone(&task));
            self.slots.push(HandlerSlot { at, handler, polled: None, task, waker });
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
mod tests {
    use std::{
        future::{pending, poll_fn},
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
        time::Duration,
    };

    use futures_util::task::noop_waker;
    use lambda_idempotency_core::clock::{BoxFuture, Clock, SystemClock};

    use super::*;
    use crate::{
        call::{Call, History, RecordId, Shared, Subject},
        delivered::Delivered,
        delivery::Returned,
        handler::{Due, Latest},
    };

    type Work = BoxFuture<'static, Result<Returned, lambda_idempotency_core::failure::Failure>>;

    fn handler(work: impl FnOnce() -> Work + Send + 'static) -> HandlerCall<'static> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let subject = Subject { key: None, identity: None, attempt: None };
        let history = History::none(clock.now());
        let record = RecordId::new("test", "1");
        let call = Call::new(
            subject,
            record,
            history,
            None,
            Arc::clone(&clock),
            Delivered::default(),
            Shared::default(),
        );
        let latest = Latest { lease: None, stop: clock.now().plus(Duration::from_secs(60)) };
        let job = Box::new(|_| work());
        let due =
            Due { operation: "op", job, call, latest, clock, has_opentelemetry_fields: false };
        HandlerCall::new(due)
    }

    /// Which record was polled, and whether it ended.
    fn poll(running: &mut RunningHandlers<'_>) -> Option<(Option<usize>, bool)> {
        match running.poll_one(&mut Context::from_waker(&noop_waker())) {
            Poll::Pending => None,
            Poll::Ready(Polled::Pending(..)) => Some((None, false)),
            Poll::Ready(Polled::Ended(at, ..)) => Some((Some(at), true)),
        }
    }

    #[test]
    fn handlers_are_polled_one_at_a_time_in_the_order_of_their_starts() {
        let mut running = RunningHandlers::default();
        for at in [7, 8] {
            running.start(at, handler(|| Box::pin(async { Ok(Returned::Nothing) })));
        }
        assert_eq!(
            [poll(&mut running), poll(&mut running)],
            [7, 8].map(|at| Some((Some(at), true)))
        );
        assert_eq!(poll(&mut running), None);
    }

    #[test]
    fn a_handler_that_wakes_itself_is_polled_once_in_a_turn() {
        let mut running = RunningHandlers::default();
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let wakes_itself = poll_fn(move |context| {
            counted.fetch_add(1, Ordering::Relaxed);
            context.waker().wake_by_ref();
            Poll::Pending
        });
        running.start(0, handler(|| Box::pin(wakes_itself)));
        running.start(1, handler(|| Box::pin(async { Ok(Returned::Nothing) })));
        let turn = |running: &mut RunningHandlers<'_>| std::iter::from_fn(|| poll(running)).count();
        assert_eq!(turn(&mut running), 2, "itself, and the other one");
        for turns in 2..5 {
            running.begin_turn();
            assert_eq!((turn(&mut running), polls.load(Ordering::Relaxed)), (1, turns));
        }
    }

    #[test]
    fn a_handler_that_is_stopped_is_dropped_at_once_and_its_slot_used_again() {
        struct Dropped(Arc<AtomicUsize>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let drops = Arc::new(AtomicUsize::new(0));
        let dropped = Dropped(Arc::clone(&drops));
        let mut running = RunningHandlers::default();
        let slot = running.start(
            0,
            handler(|| {
                Box::pin(async move {
                    let _dropped = dropped;
                    pending().await
                })
            }),
        );
        assert_eq!(poll(&mut running), Some((None, false)));
        assert!(running.stop(slot).is_some(), "it was called");
        assert_eq!((drops.load(Ordering::Relaxed), running.stop(slot)), (1, None));
        let next = running.start(1, handler(|| Box::pin(async { Ok(Returned::Nothing) })));
        assert_eq!((next, poll(&mut running)), (slot, Some((Some(1), true))));
    }

    #[test]
    fn a_handler_that_is_woken_from_elsewhere_wakes_the_batch() {
        let mut running = RunningHandlers::default();
        let kept: Arc<Mutex<Option<Waker>>> = Arc::default();
        let keeps = Arc::clone(&kept);
        let waits = poll_fn(move |context| {
            *keeps.lock().unwrap() = Some(context.waker().clone());
            Poll::Pending
        });
        running.start(0, handler(|| Box::pin(waits)));
        let (waker, woken) = counting();
        let context = &mut Context::from_waker(&waker);
        assert!(running.poll_one(context).is_ready() && running.poll_one(context).is_pending());
        let before = woken.0.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| kept.lock().unwrap().take().unwrap().wake());
        });
        assert_eq!(woken.0.load(Ordering::Relaxed), before + 1);
        running.begin_turn();
        assert!(running.poll_one(context).is_ready());
    }

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counting() -> (Waker, Arc<Count>) {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        (Waker::from(Arc::clone(&count)), count)
    }
}
