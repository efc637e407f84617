//! A clock that stands still, so that the engine makes the same calls each time.

use std::time::Duration;

use lambda_idempotency_core::clock::{BoxFuture, Clock, Timestamp};

pub(crate) struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_secs(1_800_000_000)
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}
