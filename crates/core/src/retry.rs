//! Time limits and pauses of a store's requests, for crates that implement a [`Store`](crate::store::Store).
//!
//! A call of a store has a deadline, and may send several requests until then. [`Budget`] limits each of them, and
//! [`Backoff`] pauses between them. Both read the time from the [`Clock`], so that tests control it.
//!
//! ```
//! use std::{future::ready, time::Duration};
//!
//! use lambda_idempotency_core::{
//!     clock::{Clock as _, SystemClock},
//!     retry::{Backoff, Budget},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let call_deadline = SystemClock.now().plus(Duration::from_secs(5));
//! let budget = Budget::new(&SystemClock, Duration::from_secs(1), call_deadline);
//! let (first, most) = (Duration::from_millis(25), Duration::from_millis(400));
//! let mut backoff = Backoff::new((first, most), Duration::from_millis(20));
//! let answer = loop {
//!     match budget.attempt(budget.limit(), ready(42)).await {
//!         Ok(answer) => break Some(answer),
//!         Err(_) if backoff.pause(&budget).await => {}
//!         Err(_) => break None,
//!     }
//! };
//! assert_eq!(answer, Some(42));
//! # }
//! ```

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    task::Poll,
    time::Duration,
};

use crate::clock::{Clock, Timestamp};

/// The time of one call of a store: a limit for each request, and the deadline of the call for all of them.
pub struct Budget<'a> {
    clock: &'a dyn Clock,
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

    /// How long the next request may take, if the call has so much time.
    #[must_use]
    pub fn patience(&self) -> Duration {
        Duration::from_millis(self.patience.load(Ordering::Relaxed))
    }

    /// How long the next request may take.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.patience().min(self.left())
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
        // The answer first: one that came just in time counts.
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer)),
            Poll::Pending => sleep.as_mut().poll(cx).map(|()| Err(TimedOut(limit))),
        })
        .await
    }

    /// Lets the next request take at least so long.
    pub fn be_patient(&self, patience: Duration) {
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.patience.fetch_max(millis, Ordering::Relaxed);
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

/// The pauses between requests. They double, and half of each is random, so that workers that were refused at the same
/// time do not try again at the same time.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
    most: Duration,
    shortest: Duration,
}

impl Backoff {
    /// Pauses from `first`, which double up to `most`.
    ///
    /// `shortest` is the least time for a request. One with less time would most likely be cut off, and would make it
    /// unknown whether the write was applied, although the last request was known to be refused.
    #[must_use]
    pub fn new((first, most): (Duration, Duration), shortest: Duration) -> Self {
        Self { next: first.min(most), most, shortest }
    }

    /// Pauses and returns `true`, or returns `false` if no time would be left for another request.
    pub async fn pause(&mut self, budget: &Budget<'_>) -> bool {
        let half = self.next / 2;
        let pause = half.saturating_add(half.mul_f64(random_share()));
        self.next = self.next.saturating_mul(2).min(self.most);
        if pause.saturating_add(self.shortest) >= budget.left() {
            return false;
        }
        budget.clock.sleep(pause).await;
        true
    }
}

/// Between 0 and 1. Without randomness the pause is only less well spread.
fn random_share() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::clock::BoxFuture;

    /// Sleeps by stepping, and keeps how long it slept.
    #[derive(Default)]
    struct Stepped(Mutex<Vec<Duration>>);

    impl Clock for Stepped {
        fn now(&self) -> Timestamp {
            Timestamp::EPOCH.plus(self.0.lock().unwrap().iter().sum())
        }

        fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
            self.0.lock().unwrap().push(duration);
            Box::pin(std::future::ready(()))
        }
    }

    fn budget(clock: &Stepped, millis: u64) -> Budget<'_> {
        Budget::new(clock, Duration::from_secs(1), Timestamp::from_millis(millis))
    }

    #[tokio::test]
    async fn each_attempt_that_timed_out_makes_the_next_longer() {
        let clock = Stepped::default();
        let budget = budget(&clock, 5000);
        for limit in [1000, 2000, 2000, 0] {
            let late = budget.attempt(budget.limit(), std::future::pending::<()>()).await;
            assert_eq!(late, Err(TimedOut(Duration::from_millis(limit))));
        }
        let answer = budget.attempt(budget.limit(), std::future::ready(1)).await;
        assert_eq!(answer, Ok(1), "an answer counts");
    }

    #[tokio::test]
    async fn a_wait_with_its_own_limit_changes_no_other() {
        let clock = Stepped::default();
        let budget = budget(&clock, 5000);
        let late = budget.within(Duration::from_millis(7), std::future::pending::<()>()).await;
        assert_eq!(late, Err(TimedOut(Duration::from_millis(7))));
        assert_eq!(budget.limit(), Duration::from_secs(1));
    }

    #[test]
    fn the_random_share_of_a_pause_is_between_none_and_all() {
        let shares: Vec<f64> = (0..32).map(|_| random_share()).collect();
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
        assert!(shares.windows(2).any(|two| two[0] != two[1]), "{shares:?}");
    }

    #[tokio::test]
    async fn pauses_double_and_end_before_the_deadline() {
        let clock = Stepped::default();
        let pauses = (Duration::from_millis(25), Duration::from_millis(400));
        let mut backoff = Backoff::new(pauses, Duration::from_millis(20));
        while backoff.pause(&budget(&clock, 3000)).await {}
        let pauses = clock.0.lock().unwrap();
        for (pause, whole) in pauses.iter().zip([25, 50, 100, 200, 400, 400, 400, 400]) {
            let whole = Duration::from_millis(whole);
            assert!((whole / 2..=whole).contains(pause), "{pause:?} of {whole:?}");
        }
        assert!(pauses.iter().sum::<Duration>() < Duration::from_secs(3));
        assert!(pauses.len() > 8);
    }
}
