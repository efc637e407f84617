//! Limits: of the time of a call, and of a record.

use std::{future::Future, time::Duration};

use lambda_idempotency_core::{clock::Timestamp, store::StoreErrorKind};

pub(crate) use lambda_idempotency_core::retry::{Backoff, Budget, TimedOut};

use crate::{config::Config, error::Failure};

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

/// The largest record. The server could hold 512 MB, but it does one thing after the other, so a large record delays
/// all its other clients.
const LARGEST: usize = 8 * 1024 * 1024;

/// Refuses a record that is too large.
pub(crate) fn fit(config: &Config, size: usize) -> Result<(), Failure> {
    if size <= LARGEST {
        return Ok(());
    }
    let context = format!(
        "a record of {size} bytes for the Redis server {}, of which this store takes {LARGEST}: return less from the \
         handler, or keep the result elsewhere and return a reference",
        config.address
    );
    Err(Failure::new(StoreErrorKind::TooLarge, context))
}
