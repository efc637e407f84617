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
    /// Where the random part of the next pause comes from; `None` is the operating system.
    seed: Option<u64>,
}

impl Backoff {
    /// The first pause of a store, and the longest, unless its builder says otherwise.
    pub const DEFAULT: (Duration, Duration) =
        (Duration::from_millis(25), Duration::from_millis(400));

    /// Pauses from `first`, which double up to `most`.
    ///
    /// `shortest` is the least time for a request. One with less time would most likely be cut off, and would make it
    /// unknown whether the write was applied, although the last request was known to be refused.
    #[must_use]
    pub fn new((first, most): (Duration, Duration), shortest: Duration) -> Self {
        Self { next: first.min(most), most, shortest, seed: None }
    }

    /// Takes the random part of each pause from `seed`, so that a simulation can be repeated. Default: from the
    /// operating system.
    #[must_use]
    pub const fn seeded(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Pauses and returns `true`, or returns `false` if no time would be left for another request.
    pub async fn pause(&mut self, budget: &Budget<'_>) -> bool {
        let half = self.next / 2;
        let pause = half.saturating_add(half.mul_f64(self.random_share()));
        self.next = self.next.saturating_mul(2).min(self.most);
        if pause.saturating_add(self.shortest) >= budget.left() {
            return false;
        }
        budget.clock.sleep(pause).await;
        true
    }

    /// Between 0 and 1.
    fn random_share(&mut self) -> f64 {
        let Some(seed) = &mut self.seed else { return random_share() };
        // The generator SplitMix64: <https://prng.di.unimi.it/splitmix64.c>.
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let high = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or_default();
        f64::from(high) / f64::from(u32::MAX)
    }
}

/// Between 0 and 1, from the operating system. Without randomness the pause is only less well spread.
pub(super) fn random_share() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
