//! Time limits, pauses and concurrency of requests.

use std::{future::Future, ops::Deref, pin::Pin, time::Duration};

use futures_util::stream::{self, StreamExt};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    retry,
};
use tracing::{Dispatch, dispatcher::get_default, instrument::WithSubscriber};

pub(crate) use lambda_idempotency_core::retry::{Backoff, TimedOut};

use crate::config::Config;

/// The least time for a request.
const SHORTEST: Duration = Duration::from_millis(20);

/// The most concurrent requests of one call. A batch of ten records, the usual size for a queue,
/// needs one round trip even without PartiQL.
const CONCURRENCY: usize = 10;

/// The time of one call of the store.
pub(crate) struct Budget<'a> {
    time: retry::Budget<'a>,
    config: &'a Config,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(config: &'a Config, call_deadline: Timestamp) -> Self {
        let time = config.timing.budget(call_deadline);
        Self { time, config }
    }

    /// How long the next request may take.
    pub(crate) fn attempt_limit(&self) -> Duration {
        self.time.limit()
    }

    /// Waits for `request` until its time limit.
    pub(crate) fn attempt<F: Future>(
        &self,
        request: F,
    ) -> impl Future<Output = Result<F::Output, TimedOut>> {
        // The SDK's futures have many kilobytes, and would be copied into each future around them.
        self.attempt_boxed(Box::pin(request))
    }

    async fn attempt_boxed<F: Future>(&self, request: Pin<Box<F>>) -> Result<F::Output, TimedOut> {
        // The SDK's log lines show requests, with the content of records.
        let log = if self.config.sdk_logs { get_default(Clone::clone) } else { Dispatch::none() };
        self.time.attempt(self.time.limit(), request.with_subscriber(log)).await
    }
}

impl<'a> Deref for Budget<'a> {
    type Target = retry::Budget<'a>;

    fn deref(&self) -> &Self::Target {
        &self.time
    }
}

/// The pauses between the requests of a call.
pub(crate) fn backoff(config: &Config) -> Backoff {
    config.timing.backoff(SHORTEST)
}

/// Runs all requests, a few at a time, and collects their results in any order.
pub(crate) async fn bounded<T>(mut requests: Vec<BoxFuture<'_, Vec<T>>>) -> Vec<T> {
    // As usual: a batch of up to 25, and a call of `run`.
    if requests.len() == 1
        && let Some(only) = requests.pop()
    {
        drop(requests);
        return only.await;
    }
    let answers = stream::iter(requests).buffer_unordered(CONCURRENCY);
    answers.collect::<Vec<_>>().await.into_iter().flatten().collect()
}
