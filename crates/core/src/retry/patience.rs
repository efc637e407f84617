//! How long requests may take, learnt from the last one.

use std::{
    future::Future,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use super::budget::{Budget, TimedOut};

/// Lets each request take twice as long as the last one that was answered, over all calls of a store. A server that is
/// slow for all has one more request to answer for each that is cut off.
#[derive(Debug, Default)]
pub struct Patience {
    /// How long the last request that was answered took, in milliseconds.
    last_took: AtomicU64,
}

impl Patience {
    /// Waits for `request` as [`Budget::attempt`] does, until the [limit](Budget::limit) of `budget` or for twice as long
    /// as the last answer took, whichever is longer. Half of the time of the call stays for another request: the last one
    /// may have been slow for a reason of its own, and this one get no answer.
    ///
    /// # Errors
    /// [`TimedOut`]: there was no answer in this time.
    pub async fn attempt<F: Future>(
        &self,
        budget: &Budget<'_>,
        request: F,
    ) -> Result<F::Output, TimedOut> {
        let limit = self.limit(budget);
        budget.be_patient(limit);
        let began = budget.clock.now();
        let answer = budget.attempt(limit, request).await;
        if answer.is_ok() {
            let took = budget.clock.now().since(began).as_millis();
            self.last_took.store(u64::try_from(took).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        answer
    }

    /// How long [`attempt`](Self::attempt) waits for a request that begins now.
    #[must_use]
    pub fn limit(&self, budget: &Budget<'_>) -> Duration {
        let last_took = Duration::from_millis(self.last_took.load(Ordering::Relaxed));
        let left = budget.left();
        budget.patience().max(last_took.saturating_mul(2).min(left / 2)).min(left)
    }
}
