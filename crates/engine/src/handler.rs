//! A handler on its way: it begins only in time, and its panics harm no other record.
//!
//! Between being started and its first poll a handler waits for those before it, and maybe for a
//! process that was stopped and continued. So the clock is asked again at the very moment when it
//! would begin: one whose lease is over by then is not called at all.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

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

/// One call of a handler, as a future. It catches what the handler throws, also while it is dropped.
pub(crate) struct Handler<'a> {
    /// Until the first poll.
    due: Contained<Due<'a>>,
    /// From then on.
    running: Contained<BoxFuture<'a, Result<Returned, Failure>>>,
    begun: Option<Timestamp>,
    /// The end of its lease, once that was renewed.
    renewed: Timestamp,
}

impl<'a> Handler<'a> {
    pub(crate) const fn new(due: Due<'a>) -> Self {
        let renewed = Timestamp::from_millis(0);
        Self { due: Contained::new(due), running: Contained::none(), begun: None, renewed }
    }

    /// Since when it runs, if it was called.
    pub(crate) const fn since(&self) -> Option<Timestamp> {
        self.begun
    }

    /// Its lease was renewed.
    pub(crate) const fn renewed(&mut self, lease_until: Timestamp) {
        self.renewed = lease_until;
    }

    fn advance(&mut self, context: &mut Context<'_>) -> Poll<Ended> {
        if let Some(Due { job, call, latest, clock }) = self.due.take() {
            let now = clock.now();
            if let Some(why) = latest.missed(self.renewed, now) {
                return Poll::Ready(Ended::NotBegun(why));
            }
            self.begun = Some(now);
            self.running = Contained::new(job(call));
        }
        match self.running.get_mut() {
            Some(running) => running.as_mut().poll(context).map(Ended::Through),
            None => Poll::Pending,
        }
    }
}

impl Future for Handler<'_> {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended> {
        catch_unwind(AssertUnwindSafe(|| self.advance(context))).unwrap_or_else(|thrown| {
            let failure = Failure::panicked(&*thrown);
            discard(thrown);
            Poll::Ready(Ended::Through(Err(failure)))
        })
    }
}
