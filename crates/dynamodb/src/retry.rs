//! How long, how often, and how many at once.
//!
//! Two limits hold: a request may take an attempt's time, and all of them together may take until
//! the deadline of the call. The time is the [`Clock`]'s, so a test decides when it passes.

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
use lambda_idempotency_core::clock::{BoxFuture, Clock, Timestamp};
use tracing::{Dispatch, dispatcher::get_default, instrument::WithSubscriber};

use crate::config::Config;

/// What an attempt needs at least. One that begins later would most likely be cut off, and leave in
/// doubt what is known: that the last one was refused.
const SHORTEST: Duration = Duration::from_millis(20);

/// How many requests of one call are under way at once: the usual batch of a queue takes one round
/// trip even without PartiQL.
const CONCURRENCY: usize = 10;

/// The time that a call of the store has.
pub(crate) struct Budget<'a> {
    clock: &'a dyn Clock,
    call_deadline: Timestamp,
    /// What the next attempt may take, in milliseconds.
    patience: AtomicU64,
    /// The SDK's own lines show requests, and with them what is in a record.
    sdk_logs: bool,
}

/// The answer to a request did not come in time; it may yet take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedOut(pub(crate) Duration);

impl<'a> Budget<'a> {
    pub(crate) fn new(config: &'a Config, call_deadline: Timestamp) -> Self {
        let patience = u64::try_from(config.attempt_timeout.as_millis()).unwrap_or(u64::MAX);
        let patience = AtomicU64::new(patience);
        Self { clock: &*config.clock, call_deadline, patience, sdk_logs: config.sdk_logs }
    }

    /// What is left before the deadline.
    pub(crate) fn left(&self) -> Duration {
        self.call_deadline.since(self.clock.now())
    }

    /// Waits for `request`, not beyond its time; it is dropped then, and the next may take twice as
    /// long: what is slow (16 MB of outcomes, say) must not be cut off each time.
    pub(crate) async fn attempt<F: Future>(&self, request: F) -> Result<F::Output, TimedOut> {
        let patience = self.patience.load(Ordering::Relaxed);
        let limit = Duration::from_millis(patience).min(self.left());
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

/// The pauses between attempts: doubling, and half of each at random, so that those who were
/// throttled together do not come back together.
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    pub(crate) fn new(config: &Config) -> Self {
        let (first, most) = config.backoff;
        Self { next: first.min(most), most }
    }

    /// Pauses, unless that would leave no time for another attempt. Says whether it did.
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

/// Waits for all requests, a few at a time, and puts their answers together in any order.
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
