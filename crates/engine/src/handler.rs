//! A handler on its way: it begins only in time, and its panics harm no other record.
//!
//! Between being started and its first poll a handler waits for those before it, and maybe for a
//! process that was stopped and continued. So the clock is asked again at the very moment when it
//! would begin: one whose lease is over by then is not called at all.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::future::{AbortHandle, Abortable, Aborted};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    contained::{Contained, discard},
    failure::Failure,
    outcome::NotStarted,
};

use crate::{
    batch::{Job, Returned},
    call::Call,
    machine::Ended,
};

/// Until when a handler may begin.
pub(crate) struct Latest {
    /// The end of its lease when it was started, included; `None` if it runs without a claim.
    pub(crate) lease: Option<Timestamp>,
    /// When handlers are stopped; one that begins then is only cut off.
    pub(crate) stop: Option<Timestamp>,
}

impl Latest {
    fn missed(&self, renewed: Timestamp, now: Timestamp) -> Option<NotStarted> {
        if self.lease.is_some_and(|lease| now > lease.max(renewed)) {
            return Some(NotStarted::Lease);
        }
        self.stop.is_some_and(|stop| now >= stop).then_some(NotStarted::Deadline)
    }
}

/// What a handler is called with, and when at the latest.
pub(crate) struct Due<'a> {
    pub(crate) job: Job<'a>,
    pub(crate) call: Call,
    pub(crate) latest: Latest,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The handler of record `at`, as a future.
pub(crate) struct Handler<'a> {
    at: usize,
    guarded: Abortable<Guarded<'a>>,
}

/// What its record keeps of it.
pub(crate) struct Handle {
    abort: AbortHandle,
    shared: Arc<Shared>,
}

/// What a handler and its record know of each other.
#[derive(Default)]
struct Shared {
    /// When the handler was called.
    begun: OnceLock<Timestamp>,
    /// The end of its lease in milliseconds, once it was renewed.
    renewed: AtomicU64,
}

impl<'a> Handler<'a> {
    pub(crate) fn new(at: usize, due: Due<'a>) -> (Self, Handle) {
        let shared = Arc::default();
        let guarded = Guarded {
            due: Contained::new(due),
            running: Contained::none(),
            shared: Arc::clone(&shared),
        };
        let (abort, registration) = AbortHandle::new_pair();
        (Self { at, guarded: Abortable::new(guarded, registration) }, Handle { abort, shared })
    }
}

impl Future for Handler<'_> {
    type Output = (usize, Result<Ended, Aborted>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let at = self.at;
        Pin::new(&mut self.guarded).poll(context).map(|ended| (at, ended))
    }
}

impl Handle {
    /// Since when the handler runs, if it was called.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.shared.begun.get().copied()
    }

    /// Its lease was renewed.
    pub(crate) fn renewed(&self, lease_until: Timestamp) {
        self.shared.renewed.store(lease_until.as_millis(), Ordering::Relaxed);
    }

    /// Stops the handler: it is not polled any more. Says since when it ran, if it was called.
    pub(crate) fn stop(&self) -> Option<Timestamp> {
        self.abort.abort();
        self.since()
    }
}

/// Catches what a handler throws, also while it is dropped.
struct Guarded<'a> {
    /// Until the first poll.
    due: Contained<Due<'a>>,
    /// From then on.
    running: Contained<BoxFuture<'a, Result<Returned, Failure>>>,
    shared: Arc<Shared>,
}

impl Guarded<'_> {
    fn advance(&mut self, context: &mut Context<'_>) -> Poll<Ended> {
        if let Some(Due { job, call, latest, clock }) = self.due.take() {
            let now = clock.now();
            let renewed = Timestamp::from_millis(self.shared.renewed.load(Ordering::Relaxed));
            if let Some(why) = latest.missed(renewed, now) {
                return Poll::Ready(Ended::NotBegun(why));
            }
            let _ = self.shared.begun.set(now);
            self.running = Contained::new(job(call));
        }
        match self.running.get_mut() {
            Some(running) => running.as_mut().poll(context).map(Ended::Through),
            None => Poll::Pending,
        }
    }
}

impl Future for Guarded<'_> {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended> {
        catch_unwind(AssertUnwindSafe(|| self.advance(context))).unwrap_or_else(|thrown| {
            let failure = Failure::panicked(&*thrown);
            discard(thrown);
            Poll::Ready(Ended::Through(Err(failure)))
        })
    }
}
