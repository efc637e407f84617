//! The pauses between requests.

use std::time::Duration;

use super::budget::Budget;

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
pub(super) fn random_share() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
