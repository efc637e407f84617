//! Time limits, pauses, limits of keys, and how many requests are on their way: each has a
//! [slot](lambda_idempotency_core::request_slots).

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    stream::{self, StreamExt},
};
use lambda_idempotency_core::{
    clock::BoxFuture,
    key::Key,
    request_slots::{Purpose, Slot},
    retry::{Backoff, Budget, TimedOut},
    store::StoreErrorKind,
};
use tracing::{Dispatch, dispatcher::get_default, instrument::WithSubscriber};

use crate::{
    attributes::{LONGEST_PARTITION, LONGEST_SORT_KEY},
    config::Config,
    error::{self, Failure},
    store::DynamoDbStore,
};

/// The least time for a request.
const SHORTEST: Duration = Duration::from_millis(20);

/// The most concurrent requests of one call. A batch of ten records, the usual size for a queue,
/// needs one round trip even without PartiQL.
const CONCURRENCY: usize = 10;

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

/// With more requests on their way, the connection of one that ends has to be back before its slot is free. So there are
/// never more connections than [`MOST_REQUESTS`](crate::config::MOST_REQUESTS) and so many.
const FEW: usize = 4;

impl DynamoDbStore {
    /// Waits until a request may be sent.
    ///
    /// # Errors
    /// There is no time left by then.
    pub(crate) async fn slot(
        &self,
        purpose: Purpose,
        budget: &Budget<'_>,
    ) -> Result<Slot<'_>, Failure> {
        let mut entered = pin!(self.slots.enter(purpose, || budget.limit()));
        if let Some(slot) = entered.as_mut().now_or_never() {
            return Ok(slot);
        }
        let slot = budget.within(budget.left(), entered).await;
        slot.map_err(|_| error::all_in_use(&self.config, self.slots.blame()))
    }

    /// Waits for a request until its time limit.
    pub(crate) fn attempt<F: Future>(
        &self,
        request: F,
        budget: &Budget<'_>,
    ) -> impl Future<Output = Result<F::Output, TimedOut>> {
        // The SDK's futures have many kilobytes, and would be copied into each future around them.
        self.attempt_boxed(Box::pin(request), budget)
    }

    async fn attempt_boxed<F: Future>(
        &self,
        request: Pin<Box<F>>,
        budget: &Budget<'_>,
    ) -> Result<F::Output, TimedOut> {
        // The SDK's log lines show requests, with the content of records.
        let log = if self.config.sdk_logs { get_default(Clone::clone) } else { Dispatch::none() };
        budget.attempt(budget.limit(), request.with_subscriber(log)).await
    }

    /// Notes whether DynamoDB answered a request.
    pub(crate) fn heard(&self, failure: Option<&Failure>) {
        self.slots.heard(!failure.is_some_and(is_outage));
    }
}

pub(crate) const fn is_outage(failure: &Failure) -> bool {
    matches!(failure.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Throttled)
}

/// The request has ended. Its connection comes back to the SDK's pool in a task of its own; the next request would open
/// another one before that.
pub(crate) async fn leave(slot: Slot<'_>) {
    if slot.all().taken() > FEW {
        turns(2).await;
    }
    drop(slot);
}

/// Ends when its task has been polled this many times more. Each time is as soon as all others that are ready have been
/// polled; a future that polls many polls the first of them again at once, so two are needed to reach other tasks.
///
/// The executor's own way to yield wakes the task when the executor is idle, and never if its runtime ends before.
fn turns(mut turns: u8) -> impl Future<Output = ()> {
    poll_fn(move |context| {
        if turns == 0 {
            return Poll::Ready(());
        }
        turns = turns.saturating_sub(1);
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Refuses a key that DynamoDB would refuse together with its whole batch.
pub(crate) fn fit_key(config: &Config, key: &Key) -> Result<(), Failure> {
    let has_sort_key = config.attributes.sort_key.is_some();
    let longest = if has_sort_key { LONGEST_SORT_KEY } else { LONGEST_PARTITION };
    match key.as_str().len() {
        length if (1..=longest).contains(&length) => Ok(()),
        length => {
            let context = format!(
                "a key of {length} bytes for DynamoDB table {}, which takes 1 to {longest}",
                config.table
            );
            Err(Failure::new(StoreErrorKind::Refused, context))
        }
    }
}
