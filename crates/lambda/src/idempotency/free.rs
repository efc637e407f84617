//! [`Idempotency::free`]: the key of finished work is new again.

use lambda_idempotency_core::admission::Freed;
use lambda_idempotency_engine::free::NotFreed;
use serde::Serialize;

use crate::{
    error::RunError,
    idempotency::{Idempotency, run::key_of_payload},
    operation::Operation,
};

impl Idempotency {
    /// Deletes the record of the key of `payload`, so that its next delivery or call is new work: an order was cancelled
    /// and may be placed again. Says what the key was until then.
    ///
    /// ```
    /// use lambda_idempotency::{Failure, Idempotency, MemoryStore, Operation, RunContext, RunError, observe::Freed};
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), RunError> {
    /// let idempotency = Idempotency::new(MemoryStore::new());
    /// let place = Operation::new("place-order").key("orderId");
    /// let order = json!({ "orderId": "o-1", "item": "tea" });
    /// let placed = async |_| Ok::<_, Failure>("placed".to_owned());
    /// let context = RunContext::without_deadline;
    ///
    /// idempotency.run(&place, &order, &context(), placed).await?;
    /// // The order is cancelled. A payload with the same key is enough.
    /// assert_eq!(idempotency.free(&place, &json!({ "orderId": "o-1" })).await?, Freed::Completed);
    ///
    /// let again = idempotency.run(&place, &order, &context(), placed).await?;
    /// assert!(!again.replayed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// `operation` has to be the one that does the work, with a key that is a part of the payload; keys of tenants and of
    /// HTTP requests, which count for one caller, cannot be freed: [`Freed::WasFree`] says nothing of them, and an
    /// operation with an HTTP layer in this process is refused. If another function does the work, set [its application name](Self::application) here. The record is
    /// deleted only if it is still the one that was read: one consistent read and one conditional write, of at most 5
    /// seconds each. `lambda-idempotency records free` has the same rules.
    ///
    /// # What happens next
    /// This `Idempotency` and its clones forget the completion at once. **Other ones, and other processes,** that saw the key
    /// completed answer from memory for up to 60 seconds more, or as [`with_cache`](Self::with_cache) says. A duplicate of the *old*
    /// event that comes later is new work, too: free a key only when its sender has had its answer and will not repeat
    /// it. (A worker that got no answer to its completion sends it again, and a key that was freed between the two is
    /// completed again.) After [`Freed::Unfinished`] what an earlier attempt did may have happened, and the next one is not told of
    /// it.
    ///
    /// **Systems that deduplicate by themselves are not told.** [Subkeys](crate::Call::subkey) and the ids of
    /// [messages](crate::Call::publish) follow from the key, so those of the next work are those of the freed work: a payment
    /// service answers with the first payment, and a consumer drops the message as a copy, for as long as either
    /// remembers. Where that matters, do not free the key: make what distinguishes the new work, such as the number of
    /// the attempt to order, a part of it.
    ///
    /// In [optimistic mode](crate::Mode::Optimistic), free a key no earlier than 15 minutes after the work
    /// was done: until then, a request of another attempt may still be under way, and the record is what excludes it.
    ///
    /// # Errors
    /// [`Busy`](RunError::Busy) while the work is in progress; [`Unsent`](RunError::Unsent) if the record has messages that
    /// are not known to be sent, which would be lost; [`Foreign`](RunError::Foreign) if the key belongs to another
    /// application; [`Rejected`](RunError::Rejected) if the payload has no key; [`Config`](RunError::Config) if the key
    /// cannot be computed from a payload; [`Store`](RunError::Store) if the store does not answer, if the record
    /// changed meanwhile, or if its result cannot be read (`records free` does not read it). The key is then as it was, unless the store's error
    /// [may have been applied](crate::store::StoreError::may_have_applied).
    pub async fn free<P>(&self, operation: &Operation, payload: &P) -> Result<Freed, RunError>
    where
        P: Serialize + ?Sized,
    {
        self.mistake().map_or(Ok(()), Err)?;
        #[cfg(feature = "http")]
        self.refuse_keys_of_requests(operation)?;
        let key = key_of_payload(operation, payload)?;
        let prepared = operation.prepared()?;
        self.engine.free(&key, &prepared.policy).await.map_err(|error| match error {
            NotFreed::Found(found) => self.refusal(&prepared, found),
            NotFreed::Store(error) => RunError::Store(error),
        })
    }
}
