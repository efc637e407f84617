//! Random numbers from a seed, and the distributions that the simulation draws from.

use std::{f64::consts::TAU, time::Duration};

/// A generator: SplitMix64, <https://prng.di.unimi.it/splitmix64.c>.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// From 0 to 1, without 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Yes, with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.share() < probability
    }

    /// A duration of less than `most`.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        most.mul_f64(self.share())
    }

    /// A log-normal duration: half are shorter than `median`. With a `sigma` of 0.5, one of a hundred is longer
    /// than 3.2 times the median.
    pub fn around(&mut self, median: Duration, sigma: f64) -> Duration {
        let (one, two) = (1.0 - self.share(), self.share());
        let normal = (-2.0 * one.ln()).sqrt() * (TAU * two).cos();
        median.mul_f64((sigma * normal).exp())
    }
}

/// Scatters a number over all 64 bits.
#[must_use]
pub const fn mix(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
