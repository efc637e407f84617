//! Time limits and pauses of requests.

use std::time::Duration;

use lambda_idempotency_core::clock::Timestamp;

pub(crate) use lambda_idempotency_core::retry::{Backoff, Budget, TimedOut};

use crate::config::Config;

/// The least time for a request.
pub(crate) const SHORTEST: Duration = Duration::from_millis(50);

/// The time of one call of the store.
pub(crate) fn budget(config: &Config, call_deadline: Timestamp) -> Budget<'_> {
    config.timing.budget(call_deadline)
}

/// The pauses between the requests of a call.
pub(crate) fn backoff(config: &Config) -> Backoff {
    config.timing.backoff(SHORTEST)
}
