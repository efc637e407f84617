//! Time limits and pauses of requests.
//!
//! There are two limits: one for each request, and the deadline of the call for all of them. Time
//! is read from the [`Clock`], so that tests control it.

use std::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures_util::future::{Either, select};
use lambda_idempotency_core::clock::{Clock, Timestamp};

use crate::config::Config;

/// The least time for a request. A request with less time would most likely be cut off, and would
/// make it unknown whether the write was applied, although the last request was known to be
/// refused.
const SHORTEST: Duration = Duration::from_millis(50);

/// The time of one call of the store.
pub(crate) struct Budget<'a> {
    clock: &'a dyn Clock,
    call_deadline: Timestamp,
    /// The time limit of the next request, in milliseconds.
    patience: AtomicU64,
}

/// The response to a request did not come in time; the request may still take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedOut(pub(crate) Duration);

impl<'a> Budget<'a> {
    pub(crate) fn new(config: &'a Config, call_deadline: Timestamp) -> Self {
        let patience = u64::try_from(config.attempt_timeout.as_millis()).unwrap_or(u64::MAX);
        let patience = AtomicU64::new(patience);
        Self { clock: &*config.clock, call_deadline, patience }
    }

    /// The time left before the deadline.
    pub(crate) fn left(&self) -> Duration {
        self.call_deadline.since(self.clock.now())
    }

    /// How long the next request may take.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_millis(self.patience.load(Ordering::Relaxed)).min(self.left())
    }

    /// Waits for `request` until `limit`, then drops it and doubles the limit for the next, so that
    /// a slow request (for instance 16 MB of results) is not cut off every time.
    pub(crate) async fn attempt<F: Future>(
        &self,
        limit: Duration,
        request: F,
    ) -> Result<F::Output, TimedOut> {
        match select(pin!(request), self.clock.sleep(limit)).await {
            Either::Left((answer, _)) => Ok(answer),
            Either::Right(((), _)) => {
                self.be_more_patient();
                Err(TimedOut(limit))
            }
        }
    }

    /// Doubles the limit of the next request.
    pub(crate) fn be_more_patient(&self) {
        let patience = self.patience.load(Ordering::Relaxed);
        self.patience.fetch_max(patience.saturating_mul(2), Ordering::Relaxed);
    }
}

/// The pauses between requests. They double, and half of each is random, so that workers that were
/// refused at the same time do not retry at the same time.
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
