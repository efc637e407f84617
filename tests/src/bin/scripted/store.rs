//! The store that the environment names: that of `IDEMPOTENCY_STORE`, or the table `IDEMPOTENCY_TABLE` in DynamoDB; and a
//! clock that is ahead or behind.

use std::{env, pin::Pin, time::Duration};

use lambda_idempotency::{
    DynamoDbStore, Idempotency,
    clock::{Clock, SystemClock, Timestamp},
};
use lambda_runtime::Error;

/// With the clock of the environment, if there is one; that is for the table in DynamoDB.
pub(super) async fn idempotency() -> Result<Idempotency, Error> {
    let Some(clock) = SkewedClock::from_env()? else { return Ok(Idempotency::from_env().await?) };
    let store = DynamoDbStore::builder_from_env().await?.clock(clock).build()?;
    Ok(Idempotency::new(store).with_clock(clock))
}

/// A clock that is ahead of the machine's clock by this many milliseconds, or behind it if negative.
#[derive(Clone, Copy)]
struct SkewedClock(i64);

impl SkewedClock {
    /// The clock that `SCRIPTED_CLOCK_SKEW_MS` describes, if it is set.
    fn from_env() -> Result<Option<Self>, Error> {
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
