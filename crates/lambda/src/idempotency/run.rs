//! Runs any function once per key of a payload.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::FutureExt as _;
use lambda_idempotency_core::{clock::Timestamp, failure::Failure, outcome::Outcome, record::Json};
use lambda_idempotency_engine::{
    batch::{Batch, Delivery, Engine, Job, Returned, Work},
    call::{Call, RecordId},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    call::Invoked,
    decode::{Format, decode},
    error::{ResultLost, RunError},
    find_key::{Extraction, Texts},
    handler::serialized,
    idempotency::nested,
    operation::Prepared,
};

/// A result and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run<R> {
    /// What the function returned, now or earlier.
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
pub(crate) struct Task<'a> {
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
    task: Task<'a>,
    function: F,
) -> Result<impl Future<Output = Result<Run<R>, RunError>> + use<'a, R, F, Fut, E>, RunError>
where
    R: Serialize + DeserializeOwned + Send + 'a,
    F: FnOnce(Call) -> Fut + Send + 'a,
    Fut: Future<Output = Result<R, E>> + Send + 'a,
    E: Into<Failure> + 'a,
{
    let receives = task.receives;
    // The caller gets the value itself; the engine and the store get its JSON.
    let slot = Arc::new(Mutex::new(None));
    let returned = Arc::clone(&slot);
    let returned = move |value| *returned.lock().unwrap_or_else(PoisonError::into_inner) = value;
    let delivered = task.invoked.map(Invoked::without_record).unwrap_or_default();
    let delivered = delivered.receives(Some(receives));
    let job = job(operation, function, returned);
    let extraction = Extraction { operation, tenant: task.tenant };
    let work = work(engine, &extraction, &task.record, task.payload, job)?;
    let (record, group, lets_pass) = (task.record, None, false);
    let batch = Batch {
        operation: &operation.name,
        deliveries: vec![Delivery { record, delivered, group, receives, work, lets_pass }],
        policy: &operation.policy,
        request_id: task.request_id,
        invocation_deadline: task.invocation_deadline,
        pace: &operation.pace,
    };
    Ok(engine.run_once(batch).map(move |mut outcomes| {
        let value = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        answer(outcomes.pop(), value)
    }))
}

/// A call of `function`, whose value `returned` gets.
pub(crate) fn job<'a, R, Fut, E>(
    operation: &'a Prepared,
    function: impl FnOnce(Call) -> Fut + Send + 'a,
    returned: impl FnOnce(Option<R>) + Send + 'a,
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
            returned(Some(value));
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
            let outer = nested::OuterKey::new(engine, &key);
            if outer.is_entered() {
                return Err(RunError::Nested { operation: Arc::clone(&operation.name) });
            }
            Ok(Work::Keyed { key, fingerprint, payload, job: outer.around(job) })
        }
        other => Ok(other),
    }
}

/// What the caller gets for this outcome. `value` is what the function returned in this call.
pub(crate) fn answer<R: DeserializeOwned>(
    outcome: Option<Outcome>,
    value: Option<R>,
) -> Result<Run<R>, RunError> {
    let completion = outcome.as_ref().and_then(Outcome::completion);
    let (result, replayed) = match (result_of(outcome)?, value) {
        (Found::Earlier(result), _) => (decoded(result)?, true),
        (Found::Now(_), Some(value)) => (value, false),
        (Found::Now(_), None) => return Err(RunError::ResultLost(ResultLost::Unknown)),
    };
    Ok(Run {
        result,
        replayed,
        recorded: completion.is_some(),
        done_at: completion.and_then(|completion| completion.done_at),
        answers_until: completion.map(|completion| completion.answers_until),
    })
}

/// The result of work that is done, as JSON text, if there is one.
pub(crate) enum Found {
    /// The handler returned it in this call.
    Now(Option<Json>),
    /// It was kept.
    Earlier(Option<Json>),
}

/// The result for the caller of this outcome, or why there is none.
pub(crate) fn result_of(outcome: Option<Outcome>) -> Result<Found, RunError> {
    Err(match outcome {
        Some(
            Outcome::Executed { result, .. }
            | Outcome::Unprotected { result, .. }
            | Outcome::CompletionLost { result, .. },
        ) => return Ok(Found::Now(result)),
        Some(
            Outcome::Replayed { result, .. }
            | Outcome::Superseded { result, .. }
            | Outcome::Coalesced { result, .. },
        ) => return Ok(Found::Earlier(result)),
        Some(Outcome::Failed { failure, .. }) => RunError::Failed(failure),
        Some(Outcome::PermanentlyFailed { error_type, .. }) => {
            RunError::PermanentlyFailed { error_type }
        }
        Some(Outcome::Busy { until }) => RunError::Busy { until },
        Some(Outcome::Mismatch) => RunError::Mismatch,
        Some(Outcome::Foreign(foreign)) => RunError::Foreign(foreign),
        Some(Outcome::Rejected(rejected)) => RunError::Rejected(rejected.into()),
        Some(Outcome::Unavailable(error) | Outcome::Uncommitted { error }) => {
            RunError::Store(error)
        }
        Some(Outcome::Unsent { error, .. }) => RunError::Unsent(error),
        Some(Outcome::Fenced) => RunError::Fenced,
        Some(Outcome::TimedOut { .. } | Outcome::Returned(_)) | None => RunError::OutOfTime,
        Some(_) => RunError::ResultLost(ResultLost::Unknown),
    })
}

/// Decodes a result that an earlier call kept.
pub(crate) fn decoded<R: DeserializeOwned>(result: Option<Json>) -> Result<R, RunError> {
    let json = result.ok_or(RunError::ResultLost(ResultLost::NotKept))?;
    decode(&json, Format::Json).map_err(|_| RunError::ResultLost(ResultLost::OtherType))
}
