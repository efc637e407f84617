//! [`Idempotency::run`] and [`Idempotency::kept_result`]: any function, once per key of a payload.

use std::{
    cell::RefCell,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::FutureExt as _;
use lambda_idempotency_core::{
    admission::Finding,
    clock::{BoxFuture, Timestamp},
    failure::Failure,
    outbox::SendError,
    outcome::Outcome,
};
use lambda_idempotency_engine::{
    batch::{Batch, Delivery, Engine, Job, Returned, Work},
    call::{Call, RecordId},
};
use lambda_idempotency_keys::{Key, producer::ProducerError};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    Idempotency,
    run_context::{IntoRunContext, RunContext},
};
use crate::{
    call::Invoked,
    error::{ConfigError, ResultLost, RunError},
    find_key::{Extraction, Texts},
    handler::{Bypass, CallResult, ResultFrom, decoded, result_of, serialized},
    names::Use,
    operation::{Operation, Prepared},
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
    ///         .run(&charge, &payment, &context, async |_| Ok::<_, Failure>(42))
    ///         .await?;
    ///     assert_eq!((run.result, run.replayed), (42, expected_replay));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The payload is serialized, and the operation's name is taken, when `run` is called: the future does not borrow them. The
    /// store is asked when it is polled. Inside a handler, or inside the function of another call, a call ends before that one is
    /// stopped.
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
    // A boxed future, because its type has none of the bounds: for each that does not hold, the compiler would have an error
    // at the call, one at its future and one at its `await`.
    // The context by reference: where it is forgotten, the compiler then says which argument is missing.
    pub fn run<'a, 'c, C, P, R, F, Fut, E>(
        &'a self,
        operation: &Operation,
        payload: &P,
        context: &'c C,
        function: F,
    ) -> BoxFuture<'a, Result<Run<R>, RunError>>
    where
        &'c C: IntoRunContext<'a>,
        P: Serialize + ?Sized,
        R: CallResult + 'a,
        F: FnOnce(Call) -> Fut + Send + 'a,
        Fut: Future<Output = Result<R, E>> + Send + 'a,
        E: Into<Failure> + 'a,
    {
        match self.prepared_run(operation, payload) {
            Ok(prepared) => Box::pin(self.running(prepared, context.into(), function)),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    /// The part of a call that does not depend on the types of the function.
    fn prepared_run<P>(
        &self,
        operation: &Operation,
        payload: &P,
    ) -> Result<(Arc<Prepared>, String), RunError>
    where
        P: Serialize + ?Sized,
    {
        let prepared = self.prepared_for_run(operation)?;
        let payload = serde_json::to_string(payload).map_err(|_| RunError::Unserializable)?;
        Ok((prepared, payload))
    }

    async fn running<R, F, Fut, E>(
        &self,
        (operation, payload): (Arc<Prepared>, String),
        context: RunContext<'_>,
        function: F,
    ) -> Result<Run<R>, RunError>
    where
        R: CallResult,
        F: FnOnce(Call) -> Fut + Send,
        Fut: Future<Output = Result<R, E>> + Send,
        E: Into<Failure>,
    {
        let task = RunTask {
            record: RecordId::new("run", Arc::clone(&operation.name)),
            payload: &payload,
            tenant: context.tenant(),
            request_id: context.request_id(),
            invocation_deadline: context.invocation_deadline(self.engine.clock().now()),
            receives: context.receives(),
            invoked: context.invoked(&self.last_invoked),
        };
        // By itself, so that there is no room for the result around it.
        let running = run(&self.engine, &operation, task, function)?;
        running.await
    }

    pub(crate) fn prepared_for_run(
        &self,
        operation: &Operation,
    ) -> Result<Arc<Prepared>, ConfigError> {
        let prepared = operation.prepared()?;
        self.allow(&prepared, Use::Run)?;
        Ok(prepared)
    }

    /// The result that the handler or function of `operation` returned for the key of `payload`, if
    /// [`keep_result`](crate::handler::keep_result) or [`run`](Self::run) kept it. `None` if the work is not
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
            // The work is done, whatever became of its messages.
            Finding::Completed(result) | Finding::Unsent(result) => decoded(result).map(Some),
            Finding::Free | Finding::Mine => Ok(None),
            found => Err(self.refusal(&prepared, found)),
        }
    }

    /// Why what was found under a key allows neither its result nor its freeing.
    pub(super) fn refusal(&self, operation: &Prepared, found: Finding) -> RunError {
        match found {
            Finding::Held { until } => RunError::Busy { until },
            Finding::Failed { error_type, .. } => RunError::PermanentlyFailed { error_type },
            Finding::Mismatch => RunError::Mismatch,
            Finding::Foreign { application } => {
                RunError::Foreign(self.engine.foreign(&operation.name, application))
            }
            Finding::Unsent(_) => RunError::Unsent(SendError::new(UNSENT)),
            Finding::Free | Finding::Mine | Finding::Completed(_) => {
                RunError::ResultLost(ResultLost::Unknown)
            }
        }
    }
}

const UNSENT: &str = "the record of the key has messages that are not all sent, and they would be lost with it; let a \
     delivery or a relay send them, and free the key then";

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

/// A result and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run<R> {
    /// The function's result, now or earlier.
    pub result: R,
    /// Whether an earlier call returned it.
    pub replayed: bool,
    /// Whether the store has recorded that the work is done. If not, a later call does it again, as always in
    /// [mutex mode](crate::Mode::Mutex).
    pub recorded: bool,
    /// When the work was recorded as done, by the clock of the worker that did it, rounded up to a whole second. `None` if nothing is recorded, and in
    /// records of earlier versions and of other libraries, which do not say it.
    pub done_at: Option<Timestamp>,
    /// Up to and including which instant later calls with the key are answered: the retention after that time. `None` if
    /// nothing is recorded.
    pub answers_until: Option<Timestamp>,
}

/// The arguments of `run`, without its type parameters.
pub(crate) struct RunTask<'a> {
    pub(crate) record: RecordId,
    pub(crate) payload: &'a str,
    pub(crate) tenant: Option<&'a str>,
    /// The request id of the invocation, if it is in one.
    pub(crate) request_id: Option<&'a str>,
    pub(crate) invocation_deadline: Option<Timestamp>,
    /// How often it was received; 0 if that is not known.
    pub(crate) receives: u32,
    /// The invocation around it, if it is known.
    pub(crate) invoked: Option<Arc<Invoked>>,
}

/// Runs `function` once per key of the payload.
///
/// Not an `async` function: a program may have very many calls at once, and each would have room for the task and for the
/// batch beside the engine's future.
pub(crate) fn run<'a, R, F, Fut, E>(
    engine: &'a Engine,
    operation: &'a Prepared,
    task: RunTask<'a>,
    function: F,
) -> Result<impl Future<Output = Result<Run<R>, RunError>> + use<'a, R, F, Fut, E>, RunError>
where
    R: CallResult + 'a,
    F: FnOnce(Call) -> Fut + Send + 'a,
    Fut: Future<Output = Result<R, E>> + Send + 'a,
    E: Into<Failure> + 'a,
{
    let returned = Bypass::default();
    let delivered = task.invoked.map(Invoked::without_record).unwrap_or_default();
    let delivered = delivered.receives(Some(task.receives));
    let job = job(operation, function, returned.clone());
    let extraction = Extraction { operation, tenant: task.tenant };
    let work = work(engine, &extraction, &task.record, task.payload, job)?;
    let batch = Batch::for_operation(&operation.name, &operation.policy, &operation.pace)
        .within(task.request_id, task.invocation_deadline)
        .with(vec![Delivery::alone(task.record, delivered, work)]);
    let running = engine.run_once(batch);
    Ok(running.map(move |mut outcomes| answer(outcomes.pop(), returned.take())))
}

/// A call of `function`, whose value goes into `returned`.
pub(crate) fn job<'a, R, Fut, E>(
    operation: &'a Prepared,
    function: impl FnOnce(Call) -> Fut + Send + 'a,
    returned: Bypass<R>,
) -> Job<'a>
where
    R: Serialize + Send + 'a,
    Fut: Future<Output = Result<R, E>> + Send + 'a,
    E: Into<Failure> + 'a,
{
    Box::new(move |call| {
        Box::pin(async move {
            let value = function(call).await.map_err(Into::into)?;
            let kept = match serialized(&value) {
                Returned::Value(json) if operation.is_of_powertools() => {
                    Returned::Value(operation.kept(json.to_string()).into())
                }
                kept => kept,
            };
            returned.put(value);
            Ok(kept)
        })
    })
}

/// The work of a call with this payload.
pub(crate) fn work<'a>(
    engine: &Engine,
    extraction: &Extraction<'_>,
    record: &RecordId,
    payload: &'a str,
    job: Job<'a>,
) -> Result<Work<'a>, RunError> {
    let operation = extraction.operation;
    // Without a key expression the whole payload is the key.
    let texts = Texts { payload, record: payload, identity: None };
    match extraction.work(record, texts, |_| Ok(job)) {
        Work::Reject(rejected) => Err(RunError::Rejected(rejected.into())),
        Work::Keyed { key, fingerprint, payload, job } => {
            let outer = OuterKey::new(engine, &key);
            if outer.is_entered() {
                return Err(RunError::Nested { operation: Arc::clone(&operation.name) });
            }
            Ok(Work::Keyed { key, fingerprint, payload, job: outer.around(job) })
        }
        other => Ok(other),
    }
}

/// The caller's result for this outcome. `value` is the function's result in this call.
pub(crate) fn answer<R: DeserializeOwned>(
    outcome: Option<Outcome>,
    value: Option<R>,
) -> Result<Run<R>, RunError> {
    let completion = outcome.as_ref().and_then(Outcome::completion);
    let (result, replayed) = match (result_of(outcome)?, value) {
        (ResultFrom::Earlier(result), _) => (decoded(result)?, true),
        (ResultFrom::Now(_), Some(value)) => (value, false),
        (ResultFrom::Now(_), None) => return Err(RunError::ResultLost(ResultLost::Unknown)),
    };
    Ok(Run {
        result,
        replayed,
        recorded: completion.is_some(),
        done_at: completion.and_then(|completion| completion.done_at),
        answers_until: completion.map(|completion| completion.answers_until),
    })
}

thread_local! {
    /// The keys whose functions this thread is polling, the innermost last.
    static WITHIN: RefCell<Vec<OuterKey>> = const { RefCell::new(Vec::new()) };
}

/// A key, and the engine that processes it.
///
/// A function that `run` calls may call `run` itself. With the same name and the same key, the inner call would wait for the
/// outer one, which waits for the inner one: every attempt would end as busy. Therefore each key is noted while its function
/// is polled, and an inner call for it fails at once.
#[derive(Clone, PartialEq, Eq)]
struct OuterKey {
    engine: usize,
    key: Key,
}

impl OuterKey {
    pub(crate) fn new(engine: &Engine, key: &Key) -> Self {
        // Engines of two stores can have equal keys. Clones of one engine share a clock and
        // different engines do not, so the clock's address identifies the engine.
        let engine = std::sync::Arc::as_ptr(engine.clock()).addr();
        Self { engine, key: key.clone() }
    }

    /// Whether its function is being polled.
    fn is_entered(&self) -> bool {
        WITHIN.try_with(|within| within.borrow().contains(self)).unwrap_or(false)
    }

    /// Wraps the function so that the key is noted while the function is polled.
    pub(crate) fn around(self, job: Job<'_>) -> Job<'_> {
        Box::new(move |call| Box::pin(Around { key: self, running: job(call) }))
    }
}

/// A function that notes its key while it is polled.
struct Around<'a> {
    key: OuterKey,
    running: BoxFuture<'a, Result<Returned, Failure>>,
}

impl Future for Around<'_> {
    type Output = Result<Returned, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _entered = Entered::new(self.key.clone());
        self.running.as_mut().poll(context)
    }
}

/// Removes the note when it is dropped, also during a panic.
struct Entered;

impl Entered {
    fn new(key: OuterKey) -> Self {
        // Fails only while the thread is ending; then `drop` removes nothing either.
        let _ = WITHIN.try_with(|within| within.borrow_mut().push(key));
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = WITHIN.try_with(|within| within.borrow_mut().pop());
    }
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
        let prepared = idempotency.prepared_run(&charge, "payload").unwrap();
        let run = idempotency
            .running(prepared, (&context).into(), async |_: Call| Ok::<_, Infallible>(1));
        assert!(
            size_of_val(&run) <= 1_450,
            "{} bytes; 2,184 as nested `async` functions",
            size_of_val(&run)
        );
    }
}
