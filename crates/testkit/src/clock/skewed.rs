//! A skewed clock.

use std::time::Duration;

use lambda_idempotency_core::clock::{BoxFuture, Clock, Timestamp};

/// The clock of another machine: it differs from the clock that it is made from by a constant
/// offset.
///
/// ```
/// use std::time::Duration;
/// use lambda_idempotency_core::clock::{Clock, Timestamp};
/// use lambda_idempotency_testkit::clock::{ManualClock, SkewedClock};
///
/// let clock = ManualClock::new(Timestamp::from_secs(100));
/// let behind = SkewedClock::behind(clock.clone(), Duration::from_secs(1));
/// clock.advance(Duration::from_secs(10));
/// assert_eq!(behind.now(), Timestamp::from_secs(109));
/// ```
#[derive(Clone, Debug)]
pub struct SkewedClock<C> {
    inner: C,
    ahead: Duration,
    behind: Duration,
}

impl<C: Clock> SkewedClock<C> {
    /// A clock that is fast by `offset`.
    #[must_use]
    pub const fn ahead(inner: C, offset: Duration) -> Self {
        Self { inner, ahead: offset, behind: Duration::ZERO }
    }

    /// A clock that is slow by `offset`.
    #[must_use]
    pub const fn behind(inner: C, offset: Duration) -> Self {
        Self { inner, ahead: Duration::ZERO, behind: offset }
    }
}

impl<C: Clock> Clock for SkewedClock<C> {
    fn now(&self) -> Timestamp {
        self.inner.now().plus(self.ahead).minus(self.behind)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.inner.sleep(duration)
    }
}
