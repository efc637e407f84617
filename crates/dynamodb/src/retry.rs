//! How long, and how often.
//!
//! Two limits hold: a request may take an attempt's time, and all of them together may take until
//! the deadline of the call. The time is the [`Clock`]'s, so a test decides when it passes.

use std::{future::Future, pin::pin, time::Duration};

use futures_util::future::{Either, select};
use lambda_idempotency_core::clock::{Clock, Timestamp};

use crate::config::Config;

/// The time that a call of the store has.
pub(crate) struct Budget<'a> {
    clock: &'a dyn Clock,
    deadline: Timestamp,
    attempt: Duration,
}

/// The answer to a request did not come in time; it may yet take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedOut(pub(crate) Duration);

impl<'a> Budget<'a> {
    pub(crate) fn new(config: &'a Config, deadline: Timestamp) -> Self {
        Self { clock: &*config.clock, deadline, attempt: config.attempt_timeout }
    }

    /// What is left before the deadline.
    pub(crate) fn left(&self) -> Duration {
        self.deadline.since(self.clock.now())
    }

    /// Waits for `request`, not beyond its time; it is dropped then.
    pub(crate) async fn attempt<F: Future>(&self, request: F) -> Result<F::Output, TimedOut> {
        let limit = self.attempt.min(self.left());
        match select(pin!(request), self.clock.sleep(limit)).await {
            Either::Left((answer, _)) => Ok(answer),
            Either::Right(((), _)) => Err(TimedOut(limit)),
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

    /// Pauses, unless the deadline would pass meanwhile. Says whether another attempt is worth it.
    pub(crate) async fn pause(&mut self, budget: &Budget<'_>) -> bool {
        let half = self.next / 2;
        let pause = half.saturating_add(half.mul_f64(random_share()));
        self.next = self.next.saturating_mul(2).min(self.most);
        if pause >= budget.left() {
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
