//! Time limits, pauses and concurrency of requests.
//!
//! There are two limits: one for each request, and the deadline of the call for all of them. Time
//! is read from the [`Clock`], so that tests control it.

use std::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures_util::{
    future::{Either, select},
    stream::{self, StreamExt},
};
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    usage::{self, Usage},
};
use tracing::{Dispatch, dispatcher::get_default, instrument::WithSubscriber};

use crate::config::Config;

/// The least time for a request. A request with less time would most likely be cut off, and would
/// make it unknown whether the write was applied, although the last request was known to be
/// refused.
const SHORTEST: Duration = Duration::from_millis(20);

/// The most concurrent requests of one call. A batch of ten records, the usual size for a queue,
/// needs one round trip even without PartiQL.
const CONCURRENCY: usize = 10;

/// The time of one call of the store.
pub(crate) struct Budget<'a> {
    clock: &'a dyn Clock,
    call_deadline: Timestamp,
    /// The time limit of the next request, in milliseconds.
    patience: AtomicU64,
    /// Whether the SDK may log. Its log lines show requests, with the content of records.
    sdk_logs: bool,
}

/// The response to a request did not come in time; the request may still take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedOut(pub(crate) Duration);

impl<'a> Budget<'a> {
    pub(crate) fn new(config: &'a Config, call_deadline: Timestamp) -> Self {
        let patience = u64::try_from(config.attempt_timeout.as_millis()).unwrap_or(u64::MAX);
        let patience = AtomicU64::new(patience);
        Self { clock: &*config.clock, call_deadline, patience, sdk_logs: config.sdk_logs }
    }

    /// Until when the call has time.
    pub(crate) const fn call_deadline(&self) -> Timestamp {
        self.call_deadline
    }

    /// The time limit of the next request.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis(self.patience.load(Ordering::Relaxed))
    }

    /// The next request may take at least so long.
    pub(crate) fn be_patient(&self, patience: Duration) {
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.patience.fetch_max(millis, Ordering::Relaxed);
    }

    /// The time left before the deadline.
    pub(crate) fn left(&self) -> Duration {
        self.call_deadline.since(self.clock.now())
    }

    /// Waits for `request` until its time limit, then drops it and doubles the limit for the next,
    /// so that a slow request (for instance 16 MB of results) is not cut off every time.
    pub(crate) async fn attempt<F: Future>(&self, request: F) -> Result<F::Output, TimedOut> {
        let patience = self.patience.load(Ordering::Relaxed);
        let limit = Duration::from_millis(patience).min(self.left());
        usage::add(Usage { requests: 1, capacity_units: 0.0 });
        let log = if self.sdk_logs { get_default(Clone::clone) } else { Dispatch::none() };
        match select(pin!(request.with_subscriber(log)), self.clock.sleep(limit)).await {
            Either::Left((answer, _)) => Ok(answer),
            Either::Right(((), _)) => {
                self.patience.fetch_max(patience.saturating_mul(2), Ordering::Relaxed);
                Err(TimedOut(limit))
            }
        }
    }
}

/// The pauses between requests. They double, and half of each is random, so that workers that were
/// throttled at the same time do not retry at the same time.
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    pub(crate) fn new(config: &Config) -> Self {
        let (first, most) = config.backoff;
        Self { next: first.min(most), most }
    }

    /// Pauses and returns `true`, or returns `false` if no time would be left for another request.
    pub(crate) async fn pause(&mut self, budget: &Budget<'_>) -> bool {
        let half = self.next / 2;
        let pause = half.saturating_add(half.mul_f64(random_share()));
        self.next = self.next.saturating_mul(2).min(self.most);
        if pause.saturating_add(SHORTEST) >= budget.left() {
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

/// Runs all requests, a few at a time, and collects their results in any order.
pub(crate) async fn bounded<T>(requests: Vec<BoxFuture<'_, Vec<T>>>) -> Vec<T> {
    let answers = stream::iter(requests).buffer_unordered(CONCURRENCY);
    answers.collect::<Vec<_>>().await.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use lambda_idempotency_core::clock::BoxFuture;

    use super::*;

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
        let call_deadline = Timestamp::from_millis(millis);
        Budget { clock, call_deadline, patience: AtomicU64::new(1000), sdk_logs: false }
    }

    #[tokio::test]
    async fn each_attempt_that_timed_out_makes_the_next_longer() {
        let clock = Stepped::default();
        let budget = budget(&clock, 5000);
        for limit in [1000, 2000, 2000, 0] {
            let late = budget.attempt(std::future::pending::<()>()).await;
            assert_eq!(late, Err(TimedOut(Duration::from_millis(limit))));
        }
        assert_eq!(budget.attempt(std::future::ready(1)).await, Ok(1), "an answer counts");
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
        let (first, most) = (Duration::from_millis(25), Duration::from_millis(400));
        let mut backoff = Backoff { next: first, most };
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
