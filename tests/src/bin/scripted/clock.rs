//! A clock that is ahead or behind.

use std::{env, pin::Pin, time::Duration};

use lambda_idempotency::clock::{Clock, SystemClock, Timestamp};
use lambda_runtime::Error;

/// A clock that is ahead of the machine's clock by this many milliseconds, or behind it if negative.
#[derive(Clone, Copy)]
pub(super) struct SkewedClock(i64);

impl SkewedClock {
    /// The clock that `SCRIPTED_CLOCK_SKEW_MS` describes, if it is set.
    pub(super) fn from_env() -> Result<Option<Self>, Error> {
        let Ok(clock_skew) = env::var("SCRIPTED_CLOCK_SKEW_MS") else { return Ok(None) };
        Ok(Some(Self(clock_skew.parse()?)))
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        let millis = SystemClock.now().as_millis();
        Timestamp::from_millis(millis.saturating_add_signed(self.0))
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        SystemClock.sleep(duration)
    }
}
