//! Time limits and pauses of requests.

use std::time::Duration;

use lambda_idempotency_core::clock::Timestamp;

pub(crate) use lambda_idempotency_core::retry::{Backoff, Budget, TimedOut};

use crate::config::Config;

/// The least time for a request.
const SHORTEST: Duration = Duration::from_millis(50);

/// The time of one call of the store.
pub(crate) fn budget(config: &Config, call_deadline: Timestamp) -> Budget<'_> {
    Budget::new(&*config.clock, config.attempt_timeout, call_deadline)
}

/// The pauses between the requests of a call.
pub(crate) fn backoff(config: &Config) -> Backoff {
    Backoff::new(config.backoff, SHORTEST)
}
