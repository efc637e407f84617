//! [`Idempotency::run`] and [`Idempotency::kept_result`]: any function, once per key of a payload.

use std::{future::Future, sync::Arc};

use lambda_idempotency_core::{admission::Admission, failure::Failure};
use lambda_idempotency_engine::call::{Call, RecordId};
use lambda_idempotency_keys::{Key, producer::ProducerError};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    error::RunError,
    idempotency::{
        Idempotency,
        run::{self, Run, Task},
        run_context::RunContext,
    },
    operation::Operation,
};

impl Idempotency {
    /// Calls `function` once per key of `payload`; later calls with that key get its result.
    ///
    /// `context` gives the call's deadline and tenant. It is the context of the invocation or,
    /// outside Lambda, a deadline or none. See [`RunContext`].
    ///
    /// ```
    /// use lambda_idempotency::{Call, Failure, Idempotency, Operation, RunError};
    /// use lambda_runtime::LambdaEvent;
    /// use serde_json::Value;
    ///
    /// async fn handler(event: LambdaEvent<Value>, idempotency: Idempotency) -> Result<u32, RunError> {
    ///     let charge = Operation::new("charge").key("paymentId");
    ///     let charged = async |_: Call| Ok::<_, Failure>(42);
    ///     let run = idempotency.run(&charge, &event.payload, &event.context, charged).await?;
    ///     Ok(run.result)
    /// }
    /// # use lambda_idempotency::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), RunError> {
    /// # let event = || LambdaEvent::new(serde_json::json!({ "paymentId": "p-1" }), Default::default());
    /// # let store = Idempotency::new(MemoryStore::new());
    /// # assert_eq!(handler(event(), store.clone()).await?, 42);
    /// # assert_eq!(handler(event(), store).await?, 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Outside Lambda:
    ///
    /// ```
    /// use lambda_idempotency::{Failure, Idempotency, MemoryStore, Operation, RunContext};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lambda_idempotency::RunError> {
    /// let idempotency = Idempotency::new(MemoryStore::new());
    /// let charge = Operation::new("charge").key("paymentId");
    /// let payment = serde_json::json!({ "paymentId": "p-1", "amount": 5 });
    ///
    /// for expected_replay in [false, true] {
    ///     let context = RunContext::without_deadline();
    ///     let run = idempotency
    ///         .run(&charge, &payment, context, async |_| Ok::<_, Failure>(42))
    ///         .await?;
    ///     assert_eq!((run.result, run.replayed), (42, expected_replay));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Each call of `run` costs requests of its own. For many payloads at a time, [`run_many`](Self::run_many) costs fewer.
    ///
    /// The key is claimed for as long as the function could still start before the deadline of the context, for two minutes at
    /// most. Give it an earlier deadline if the call should fail sooner while the store is unavailable.
    ///
    /// # Dropping the future
    /// If the returned future is dropped, for instance by `tokio::time::timeout`, the function is dropped where it is, and
    /// nothing is recorded: a later call cannot tell that from the death of the process. The key stays held until the
    /// lease ends, and the next attempt is told of a lost one ([`Call::lost_attempts`](crate::Call::lost_attempts)). To
    /// limit the time of a call, give it a deadline instead: the stop is then recorded, and the lease ends a second later.
    ///
    /// # Errors
    /// The function's own failure, or why it was not called; see [`RunError`].
    pub async fn run<'c, P, R, F, Fut, E>(
        &self,
        operation: &Operation,
        payload: &P,
        context: impl Into<RunContext<'c>>,
        function: F,
    ) -> Result<Run<R>, RunError>
    where
        P: Serialize + ?Sized,
        R: Serialize + DeserializeOwned + Send,
        F: FnOnce(Call) -> Fut + Send,
        Fut: Future<Output = Result<R, E>> + Send,
        E: Into<Failure>,
    {
        let context = context.into();
        let prepared = self.prepared_for_run(operation)?;
        let payload = serde_json::to_string(payload).map_err(|_| RunError::Unserializable)?;
        let task = Task {
            record: RecordId::new("run", Arc::clone(&prepared.name)),
            payload: &payload,
            tenant: context.tenant(),
            request_id: context.request_id(),
            invocation_deadline: context.invocation_deadline(self.engine.clock().now()),
            receives: context.receives(),
            invoked: context.invoked(&self.last_invoked),
        };
        // By itself, so that there is no room for the result around it.
        let running = run::run(&self.engine, &prepared, task, function)?;
        running.await
    }

    /// The result that the handler or function of `operation` returned for the key of `payload`, if
    /// [`keep_result`](crate::keep_result) or [`run`](Self::run) kept it. `None` if the work is not
    /// done, or the retention has expired.
    ///
    /// `operation` has to be the one that did the work, with a key that is a part of the payload;
    /// keys of tenants cannot be read. If another function does the work, set [its application
    /// name](Self::application) here. Makes one consistent read of the store, of at most 5 seconds.
    ///
    /// # Errors
    /// [`Busy`](RunError::Busy) while the work is in progress; [`PermanentlyFailed`](RunError::PermanentlyFailed) if
    /// it failed permanently; [`Foreign`](RunError::Foreign) if another application did it;
    /// [`ResultLost`](RunError::ResultLost) if it is done and its result was not
    /// kept, or is not of type `R`; [`Rejected`](RunError::Rejected) if the payload has no key;
    /// [`Config`](RunError::Config) if the key cannot be computed from a payload;
    /// [`Store`](RunError::Store) if the store does not answer.
    pub async fn kept_result<R, P>(
        &self,
        operation: &Operation,
        payload: &P,
    ) -> Result<Option<R>, RunError>
    where
        R: DeserializeOwned,
        P: Serialize + ?Sized,
    {
        self.mistake().map_or(Ok(()), Err)?;
        let key = key_of_payload(operation, payload)?;
        let prepared = operation.prepared()?;
        let found = self.engine.look_up(&key, &prepared.policy).await;
        match found.map_err(RunError::Store)? {
            Admission::Replay(outcome) => run::decoded(outcome).map(Some),
            // The work is done, whatever became of its messages.
            Admission::Unsent(held) => run::decoded(held.record.result).map(Some),
            Admission::PermanentlyFailed { error_type, .. } => {
                Err(RunError::PermanentlyFailed { error_type })
            }
            Admission::Busy { until } => Err(RunError::Busy { until }),
            Admission::Mismatch => Err(RunError::Mismatch),
            Admission::Foreign { application } => {
                Err(RunError::Foreign(self.engine.foreign(&prepared.name, application)))
            }
            Admission::Try { .. } | Admission::Won(_) => Ok(None),
        }
    }
}

/// The key of a payload, which is made where its work is done, too.
pub(crate) fn key_of_payload<P>(operation: &Operation, payload: &P) -> Result<Key, RunError>
where
    P: Serialize + ?Sized,
{
    let producer = operation.producer()?;
    let payload = serde_json::to_string(payload).map_err(|_| RunError::Unserializable)?;
    producer.key(&payload).map_err(|error| match error {
        ProducerError::Rejected { reason, .. } => RunError::Rejected(reason.into()),
        _ => RunError::Unserializable,
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use lambda_idempotency_core::memory::MemoryStore;
    use lambda_runtime::Context;

    use super::*;

    /// A program may have a thousand calls at once, and what each of them has room for is most of its memory.
    #[test]
    fn a_call_has_no_room_for_its_arguments_beside_the_engine() {
        let idempotency = Idempotency::new(MemoryStore::new());
        let (charge, context) = (Operation::new("charge").key("id"), Context::default());
        let run =
            idempotency.run(&charge, "payload", &context, async |_: Call| Ok::<_, Infallible>(1));
        assert!(
            size_of_val(&run) <= 1_450,
            "{} bytes; 2,184 as nested `async` functions",
            size_of_val(&run)
        );
    }
}
