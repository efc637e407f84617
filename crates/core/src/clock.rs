//! Time as a parameter.
//!
//! All code of this project reads the time and sleeps through a [`Clock`], never through the
//! operating system directly, so that a test can stop, step and skew time.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The boxed future that the object-safe traits of this crate return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An instant, in whole milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// `millis` milliseconds after the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// `secs` seconds after the epoch; saturates.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// The first whole second at or after this instant. Expiry times are whole seconds, because a
    /// DynamoDB TTL attribute holds seconds; rounding up never shortens a lease or a retention.
    #[must_use]
    pub const fn ceil_to_second(self) -> Self {
        Self(self.0.div_ceil(1000).saturating_mul(1000))
    }

    /// This instant plus `duration`; saturates.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// This instant minus `duration`, not before the epoch.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }

    /// How long after `earlier` this instant is; zero if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms since the epoch", self.0)
    }
}

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The current time. It may jump, also backwards, by up to the clock skew of the
    /// [`Policy`](crate::policy::Policy), for which every rule allows.
    fn now(&self) -> Timestamp;

    /// Completes when `duration` has passed on this clock.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        (**self).sleep(duration)
    }
}

/// The machine's clock and Tokio's timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the real clock")]
    fn now(&self) -> Timestamp {
        // A clock before 1970 counts as the epoch: no lease then looks expired, which is safe.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(millis(since_epoch))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_up_to_a_second_never_moves_an_instant_earlier() {
        for ms in [0, 1, 999, 1000, 1001, 1_700_000_000_123] {
            let t = Timestamp::from_millis(ms);
            assert!(t.ceil_to_second() >= t);
            assert!(t.ceil_to_second().since(t) < Duration::from_secs(1));
            assert_eq!(t.ceil_to_second().as_millis() % 1000, 0);
        }
    }

    #[test]
    fn arithmetic_saturates() {
        let end = Timestamp::from_millis(u64::MAX);
        assert_eq!(end.plus(Duration::from_secs(1)), end);
        assert_eq!(Timestamp::EPOCH.minus(Duration::MAX), Timestamp::EPOCH);
        assert_eq!(Timestamp::EPOCH.since(end), Duration::ZERO);
    }
}
