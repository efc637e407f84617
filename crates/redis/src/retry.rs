//! Time limits and pauses of requests.

use std::{future::Future, time::Duration};

use lambda_idempotency_core::clock::Timestamp;

pub(crate) use lambda_idempotency_core::retry::{Backoff, Budget, TimedOut};

use crate::config::Config;

/// The least time for a request.
const SHORTEST: Duration = Duration::from_millis(5);

/// The time of one call of the store.
pub(crate) fn budget(config: &Config, call_deadline: Timestamp) -> Budget<'_> {
    config.timing.budget(call_deadline)
}

/// The pauses between the requests of a call.
pub(crate) fn backoff(config: &Config) -> Backoff {
    config.timing.backoff(SHORTEST)
}

/// Waits for `request` until its time limit.
pub(crate) async fn attempt<F: Future>(
    budget: &Budget<'_>,
    request: F,
) -> Result<F::Output, TimedOut> {
    budget.attempt(budget.limit(), request).await
}

/// Waits for `future` for so long, and not longer than the call has.
pub(crate) async fn within<F: Future>(
    budget: &Budget<'_>,
    limit: Duration,
    future: F,
) -> Result<F::Output, TimedOut> {
    budget.within(limit.min(budget.left()), future).await
}
