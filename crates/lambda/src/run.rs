//! Runs any function once per key of a payload.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::FutureExt as _;
use lambda_idempotency_core::{
    clock::Timestamp,
    contained::caught,
    failure::Failure,
    outcome::{Completion, Outcome},
    record::Json,
};
use lambda_idempotency_engine::{
    batch::{Batch, Delivery, Engine, Job, Returned, Work},
    call::{Call, RecordId},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::{
    call::Invoked,
    decode::{Format, decode},
    error::{ResultLost, RunError},
    find_key::{Extraction, Texts},
    handler::serialized,
    nested,
    operation::Prepared,
    rejection::Rejection,
    source::{Event, Shape},
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
    /// Selects the results that answer later calls; `None` if all do.
    pub(crate) keeps: Option<Arc<Keeps>>,
    /// Changes the results that answer later calls.
    pub(crate) on_replay: Option<Arc<OnReplay>>,
    /// Whether Lambda repeats it if it fails.
    pub(crate) is_redelivered: bool,
}

/// Whether a result, as JSON, answers later calls.
pub(crate) type Keeps = dyn Fn(&Value) -> bool + Send + Sync;

/// Changes a result, as JSON, that answers a later call.
pub(crate) type OnReplay = dyn Fn(&mut Value, Option<Completion>) + Send + Sync;

/// The result as the hook has changed it. Unchanged if the hook panics or makes something else of
/// it than an `R`: the work is done, and a mistake in the hook must not fail each duplicate.
fn replayed<R: DeserializeOwned>(
    result: Option<Json>,
    hook: Option<&OnReplay>,
    completion: Option<Completion>,
) -> Result<R, RunError> {
    let changed = result.as_deref().zip(hook).and_then(|(result, hook)| {
        let mut value = serde_json::from_str(result).ok()?;
        caught(|| hook(&mut value, completion))?;
        decoded(Some(value.to_string().into())).ok()
    });
    match (changed, hook) {
        (Some(changed), _) => Ok(changed),
        (None, None) => decoded(result),
        (None, Some(_)) => {
            let unchanged = decoded(result)?;
            tracing::warn!(
                "an answer is replayed unchanged: the hook of `on_replay` panicked, or made an answer that is not of the \
                 type of the service's answers; correct the hook"
            );
            Ok(unchanged)
        }
    }
}

/// Whether a result is kept. If `keeps` cannot decide, the result is kept, because the work is
/// done.
fn is_kept(keeps: Option<&Keeps>, json: &str) -> bool {
    let Some(keeps) = keeps else { return true };
    let Ok(value) = serde_json::from_str(json) else { return true };
    caught(|| keeps(&value)).unwrap_or(true)
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
    let Task { keeps, on_replay, receives, is_redelivered, .. } = task;
    // The caller gets the value itself; the engine and the store get its JSON.
    let slot = Arc::new(Mutex::new(None));
    let returned = Arc::clone(&slot);
    let returned = move |value| *returned.lock().unwrap_or_else(PoisonError::into_inner) = value;
    let delivered = task.invoked.map(Invoked::without_record).unwrap_or_default();
    let delivered = delivered.receives(Some(receives));
    let job = job(operation, keeps, function, returned);
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
    let outcomes = if is_redelivered {
        engine.run(batch).left_future()
    } else {
        engine.run_once(batch).right_future()
    };
    Ok(outcomes.map(move |mut outcomes| {
        let value = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        answer(outcomes.pop(), value, on_replay.as_deref())
    }))
}

/// A call of `function`, whose value `returned` gets.
pub(crate) fn job<'a, R, Fut, E>(
    operation: &'a Prepared,
    keeps: Option<Arc<Keeps>>,
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
                Returned::Value(json) if !is_kept(keeps.as_deref(), &json) => Returned::Declined,
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
    // Without a key expression the whole payload is the key, unless it is an event that cannot be one.
    let identity = if operation.names_key() { None } else { not_a_key(payload).map(Err) };
    let texts = Texts { payload, record: payload, identity };
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

/// Why the whole payload cannot be a key: it is an event that differs on each delivery, or that
/// other work repeats.
fn not_a_key(payload: &str) -> Option<Rejection> {
    let raw: &RawValue = serde_json::from_str(payload).ok()?;
    Shape::of(&Event::read(raw, "")).and_then(Shape::why_no_key)
}

/// What the caller gets for this outcome.
pub(crate) fn answer<R: DeserializeOwned>(
    outcome: Option<Outcome>,
    value: Option<R>,
    on_replay: Option<&OnReplay>,
) -> Result<Run<R>, RunError> {
    let Some(outcome) = outcome else { return Err(RunError::OutOfTime) };
    let completion = outcome.completion();
    let run = |result, replayed| Run {
        result,
        replayed,
        recorded: completion.is_some(),
        done_at: completion.and_then(|completion| completion.done_at),
        answers_until: completion.map(|completion| completion.answers_until),
    };
    match (outcome, value) {
        (
            Outcome::Executed { .. }
            | Outcome::Unprotected { .. }
            | Outcome::CompletionLost { .. }
            | Outcome::Declined,
            Some(value),
        ) => Ok(run(value, false)),
        (
            Outcome::Replayed { result, .. }
            | Outcome::Superseded { result, .. }
            | Outcome::Coalesced { result, .. },
            _,
        ) => Ok(run(replayed(result, on_replay, completion)?, true)),
        (Outcome::Failed { failure, .. }, _) => Err(RunError::Failed(failure)),
        (Outcome::PermanentlyFailed { error_type, .. }, _) => {
            Err(RunError::PermanentlyFailed { error_type })
        }
        (Outcome::Busy { until }, _) => Err(RunError::Busy { until }),
        (Outcome::Mismatch, _) => Err(RunError::Mismatch),
        (Outcome::Foreign(foreign), _) => Err(RunError::Foreign(foreign)),
        (Outcome::Rejected(rejected), _) => Err(RunError::Rejected(rejected.into())),
        (Outcome::Unavailable(error) | Outcome::Uncommitted { error }, _) => {
            Err(RunError::Store(error))
        }
        (Outcome::Unsent { error, .. }, _) => Err(RunError::Unsent(error)),
        (Outcome::Fenced, _) => Err(RunError::Fenced),
        (Outcome::TimedOut { .. } | Outcome::Returned(_), _) => Err(RunError::OutOfTime),
        _ => Err(RunError::ResultLost(ResultLost::Unknown)),
    }
}

/// Decodes a result that an earlier call kept.
pub(crate) fn decoded<R: DeserializeOwned>(result: Option<Json>) -> Result<R, RunError> {
    let json = result.ok_or(RunError::ResultLost(ResultLost::NotKept))?;
    decode(&json, Format::Json).map_err(|_| RunError::ResultLost(ResultLost::OtherType))
}
