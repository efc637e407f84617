//! The [slots](lambda_idempotency_core::request_slots) of a store's requests.

use std::pin::pin;

use futures_util::FutureExt as _;
use lambda_idempotency_core::request_slots::{Purpose, Slot};

use crate::{retry::Budget, store::DynamoDbStore, turns::turns};

/// The most requests at a time. Ten of them may be claims: a batch of ten records, the usual size for a queue, needs one
/// round trip even without PartiQL.
pub(crate) const MOST_REQUESTS: usize = 12;
/// With more requests on their way, the connection of one that ends has to be back before its slot is free. So there are
/// never more connections than [`MOST_REQUESTS`] and so many.
const FEW: usize = 4;

impl DynamoDbStore {
    /// Waits until a request may be sent. `None` if there is no time left by then.
    pub(crate) async fn slot(&self, purpose: Purpose, budget: &Budget<'_>) -> Option<Slot<'_>> {
        let mut entered = pin!(self.slots.enter(purpose, || budget.attempt_limit()));
        if let Some(slot) = entered.as_mut().now_or_never() {
            return Some(slot);
        }
        budget.within(budget.left(), entered).await.ok()
    }
}

/// The request has ended. Its connection comes back to the SDK's pool in a task of its own; the next request would open
/// another one before that.
pub(crate) async fn leave(slot: Slot<'_>) {
    if slot.all().taken() > FEW {
        turns(2).await;
    }
    drop(slot);
}
