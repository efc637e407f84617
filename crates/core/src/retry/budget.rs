//! The time of one call.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    task::{Poll, ready},
    time::Duration,
};

use crate::clock::{Clock, Timestamp};

/// How long an answer that came in time may take to be read.
const GRACE: Duration = Duration::from_millis(1);

/// The time of one call of a store: a limit for each request, and the deadline of the call for all of them.
pub struct Budget<'a> {
    pub(super) clock: &'a dyn Clock,
    call_deadline: Timestamp,
    /// The time limit of the next request, in milliseconds.
    patience: AtomicU64,
}

/// The answer to a request did not come within this time. The request may still take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut(pub Duration);

impl<'a> Budget<'a> {
    /// The time until `call_deadline`, of which the first request may take `attempt_timeout`.
    #[must_use]
    pub fn new(clock: &'a dyn Clock, attempt_timeout: Duration, call_deadline: Timestamp) -> Self {
        let patience = u64::try_from(attempt_timeout.as_millis()).unwrap_or(u64::MAX);
        Self { clock, call_deadline, patience: AtomicU64::new(patience) }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time left before the deadline.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.call_deadline.since(self.clock.now())
    }

    /// Until when the call has time.
    #[must_use]
    pub const fn call_deadline(&self) -> Timestamp {
        self.call_deadline
    }

    /// How long the next request may take.
    #[must_use]
    pub fn limit(&self) -> Duration {
        Duration::from_millis(self.patience.load(Ordering::Relaxed)).min(self.left())
    }

    /// Waits for `request` until `limit`, then drops it and doubles the [limit](Self::limit) of the next, so that a slow
    /// request (for instance 16 MB of results) is not cut off every time.
    ///
    /// # Errors
    /// [`TimedOut`]: there was no answer until `limit`.
    pub async fn attempt<F: Future>(
        &self,
        limit: Duration,
        request: F,
    ) -> Result<F::Output, TimedOut> {
        let answer = self.within(limit, request).await;
        if answer.is_err() {
            self.be_more_patient();
        }
        answer
    }

    /// Waits for `future` until `limit`, and leaves the limit of the next request as it is.
    ///
    /// # Errors
    /// [`TimedOut`]: it was not ready until `limit`.
    pub async fn within<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, TimedOut> {
        let (mut future, mut sleep) = (pin!(future), self.clock.sleep(limit));
        let mut is_over = false;
        // The answer first: one that came just in time counts.
        poll_fn(|cx| {
            if let Poll::Ready(answer) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(answer));
            }
            ready!(sleep.as_mut().poll(cx));
            if is_over {
                return Poll::Ready(Err(TimedOut(limit)));
            }
            // Some turns of the executor more. A process that had no processor for a while, or was frozen, finds its
            // timers over and its answers in the sockets, and the task that reads these may not have been polled yet. A
            // waker alone is not enough: a future that polls many others polls this one again before it returns.
            is_over = true;
            sleep = self.clock.sleep(GRACE);
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// How long something beside a request may take, for instance a connection: this usual time, doubled as often as the
    /// [limit](Self::limit) of requests was since the first one, which might take `attempt_timeout`, but three times at most.
    #[must_use]
    pub fn doubled(&self, usual: Duration, attempt_timeout: Duration) -> Duration {
        let patience = u128::from(self.patience.load(Ordering::Relaxed));
        let times = patience.checked_div(attempt_timeout.as_millis()).unwrap_or(1);
        usual.saturating_mul(u32::try_from(times.min(8)).unwrap_or(8)).min(self.left())
    }

    /// Doubles the limit of the next request.
    pub fn be_more_patient(&self) {
        let patience = self.patience.load(Ordering::Relaxed);
        self.patience.fetch_max(patience.saturating_mul(2), Ordering::Relaxed);
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("limit", &self.limit()).finish_non_exhaustive()
    }
}
