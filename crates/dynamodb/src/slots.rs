//! The [slots](lambda_idempotency_core::request_slots) of a store's requests.

use std::{pin::pin, time::Duration};

use futures_util::FutureExt as _;
use lambda_idempotency_core::{
    request_slots::{Purpose, Slot},
    store::StoreErrorKind,
};

use crate::{
    error::{self, Failure},
    member::Answer,
    retry::Budget,
    store::DynamoDbStore,
    turns::turns,
};

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
        let mut entered = pin!(self.slots.enter(purpose, || budget.attempt_limit()));
        if let Some(slot) = entered.as_mut().now_or_never() {
            return Ok(slot);
        }
        let slot = budget.within(budget.left(), entered).await;
        slot.map_err(|_| error::all_in_use(&self.config, self.slots.blame()))
    }

    /// Notes whether DynamoDB answered a request.
    pub(crate) fn heard(&self, failure: Option<&Failure>) {
        self.slots.heard(!failure.is_some_and(is_outage));
    }

    /// Notes whether DynamoDB answered a request with these writes. Where it did not, and other calls of this process are to
    /// blame, that is no outage: the request had only a part of this usual time.
    pub(crate) fn blame(
        &self,
        answers: &mut [Answer],
        waited: Duration,
        limits: (Duration, Duration),
    ) {
        let is_silent = |answer: &Answer| matches!(answer, Answer::Failed(f) if is_outage(f));
        if !answers.iter().all(is_silent) {
            return self.slots.heard(true);
        }
        for answer in answers {
            if let Answer::Failed(failure) = answer
                && failure.kind() == StoreErrorKind::Unavailable
            {
                let kind = self.slots.unanswered(waited, limits);
                *failure = failure.clone().with_kind(kind);
            }
        }
    }
}

const fn is_outage(failure: &Failure) -> bool {
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
