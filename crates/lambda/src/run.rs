//! Any function, and any event as a whole.

use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use lambda_idempotency_core::{
    batch::{AfterFailure, Batch, Delivery, Engine, Job, Returned, Work},
    call::{Call, RecordId},
    clock::{BoxFuture, Timestamp},
    failure::Failure,
    outcome::{Outcome, Rejection},
    record::Json,
};
use lambda_runtime::LambdaEvent;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    call::Invoked,
    delivery::{Extraction, Texts},
    error::{InvocationError, RunError},
    function::deadline,
    handler::{decode, serialized},
    nested,
    operation::{Operation, Place, Prepared},
    source::{Event, Shape},
};

/// A result, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run<R> {
    /// What the function returned, now or earlier.
    pub value: R,
    /// Whether an earlier call returned it.
    pub replayed: bool,
    /// Whether the store knows that the work is done. If not, a later call does it again.
    pub recorded: bool,
}

/// What `run` is asked to do, without its types.
pub(crate) struct Task<'a> {
    pub(crate) record: RecordId,
    pub(crate) payload: &'a str,
    pub(crate) tenant: Option<&'a str>,
    pub(crate) deadline: Option<Timestamp>,
    /// The invocation around it, if it is known.
    pub(crate) invoked: Option<Arc<Invoked>>,
    /// Which results answer later calls; `None` if all do.
    pub(crate) keeps: Option<Arc<Keeps>>,
}

/// Whether a result, as JSON, answers later calls.
pub(crate) type Keeps = dyn Fn(&Value) -> bool + Send + Sync;

/// Whether a result is kept. If that cannot be told, it is: the work is done.
fn is_kept(keeps: Option<&Keeps>, json: &str) -> bool {
    let Some(keeps) = keeps else { return true };
    let Ok(value) = serde_json::from_str(json) else { return true };
    catch_unwind(AssertUnwindSafe(|| keeps(&value))).unwrap_or(true)
}

/// Runs `function` once per key of the payload.
pub(crate) async fn run<R, F, Fut, E>(
    engine: &Engine,
    operation: &Prepared,
    task: Task<'_>,
    function: F,
) -> Result<Run<R>, RunError>
where
    R: Serialize + DeserializeOwned + Send,
    F: FnOnce(Call) -> Fut + Send,
    Fut: Future<Output = Result<R, E>> + Send,
    E: Into<Failure>,
{
    // The value goes straight to the caller; the store gets its JSON.
    let slot = Arc::new(Mutex::new(None));
    let returned = Arc::clone(&slot);
    let (invoked, keeps) = (task.invoked, task.keeps);
    let job: Job<'_> = Box::new(move |call| {
        let call = match invoked {
            Some(invoked) => call.with_invocation(invoked),
            None => call,
        };
        Box::pin(async move {
            let value = function(call).await.map_err(Into::into)?;
            let kept = match (serialized(&value), &operation.spoken) {
                (Returned::Value(json), _) if !is_kept(keeps.as_deref(), &json) => {
                    Returned::Declined
                }
                (Returned::Value(json), Some(spoken)) => {
                    Returned::Value(spoken.result(json.to_string()).into())
                }
                (kept, _) => kept,
            };
            *returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            Ok(kept)
        })
    });
    let mut policy = operation.policy.clone();
    policy.conflict = operation.conflict.unwrap_or(policy.conflict);
    let extraction = Extraction { operation, tenant: task.tenant };
    let identity = if operation.names_key() { None } else { not_a_key(task.payload).map(Err) };
    let id = &task.record;
    let texts = Texts { id, payload: task.payload, record: task.payload, identity };
    let work = extraction.work(texts, |_| Ok(job));
    if let Work::Reject(rejection) = work {
        return Err(RunError::Rejected(rejection));
    }
    let work = match work {
        Work::Keyed { key, fingerprint, payload, job } => {
            let place = nested::Place::new(engine, &key);
            if place.is_entered() {
                return Err(RunError::Nested { operation: Arc::clone(&operation.name) });
            }
            Work::Keyed { key, fingerprint, payload, job: place.around(job) }
        }
        other => other,
    };
    let batch = Batch {
        operation: &operation.name,
        deliveries: vec![Delivery {
            record: task.record.clone(),
            group: None,
            priority: 0,
            work,
            divert: None,
        }],
        after_failure: AfterFailure::Group,
        policy: &policy,
        deadline: task.deadline,
        pace: &operation.pace,
    };
    let outcome = engine.run(batch).await.pop();
    let value = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    answer(outcome, value)
}

/// Why the whole payload is not a key, if it is not: it is an event that differs on each delivery.
fn not_a_key(payload: &str) -> Option<Rejection> {
    let raw: &RawValue = serde_json::from_str(payload).ok()?;
    Shape::of(&Event::read(raw, "")).and_then(Shape::why_no_key)
}

fn answer<R: DeserializeOwned>(
    outcome: Option<Outcome>,
    value: Option<R>,
) -> Result<Run<R>, RunError> {
    let Some(outcome) = outcome else { return Err(RunError::OutOfTime) };
    let recorded = matches!(outcome, Outcome::Executed { .. });
    match (outcome, value) {
        (
            Outcome::Executed { .. }
            | Outcome::Unprotected { .. }
            | Outcome::CompletionLost { .. }
            | Outcome::Declined,
            Some(value),
        ) => Ok(Run { value, replayed: false, recorded }),
        (
            Outcome::Replayed { outcome }
            | Outcome::Superseded { outcome }
            | Outcome::Coalesced { outcome },
            _,
        ) => Ok(Run { value: decoded(outcome)?, replayed: true, recorded: true }),
        (Outcome::Failed { failure, .. }, _) => Err(RunError::Failed(failure)),
        (Outcome::Remembered { error, .. }, _) => Err(RunError::Remembered { error }),
        (Outcome::Busy { until }, _) => Err(RunError::Busy { until }),
        (Outcome::Mismatch, _) => Err(RunError::Mismatch),
        (Outcome::Foreign(foreign), _) => Err(RunError::Foreign(foreign)),
        (Outcome::Rejected(rejection), _) => Err(RunError::Rejected(rejection)),
        (Outcome::Unavailable(error), _) => Err(RunError::Store(error)),
        (Outcome::Fenced, _) => Err(RunError::Fenced),
        (Outcome::Skipped, _) => Err(RunError::Skipped),
        (Outcome::TimedOut { .. } | Outcome::Returned(_), _) => Err(RunError::OutOfTime),
        _ => Err(RunError::ResultLost("is not known")),
    }
}

/// A result that was kept earlier.
pub(crate) fn decoded<R: DeserializeOwned>(outcome: Option<Json>) -> Result<R, RunError> {
    let json = outcome.ok_or(RunError::ResultLost("was not kept"))?;
    decode(&json).map_err(|_| RunError::ResultLost("has another type"))
}

/// Wraps a whole event; see [`Idempotency::event`](crate::Idempotency::event).
pub struct EventLayer<T> {
    engine: Engine,
    operation: Arc<Prepared>,
    keeps: Option<Arc<Keeps>>,
    event: PhantomData<fn() -> T>,
}

/// A service that handles each event once per key, and answers later ones with the first result.
pub struct EventService<S, T> {
    inner: S,
    engine: Engine,
    operation: Arc<Prepared>,
    keeps: Option<Arc<Keeps>>,
    event: PhantomData<fn() -> T>,
}

impl<T> EventLayer<T> {
    pub(crate) fn new(engine: Engine, operation: &Operation) -> Result<Self, crate::ConfigError> {
        let prepared = operation.prepared()?;
        operation.fits(Place::Event)?;
        Ok(Self { engine, operation: prepared, keeps: None, event: PhantomData })
    }

    /// Which answers are given to later events of the key; the others are given once, and release their key
    /// without counting as a failure. Default: all are kept. Errors never are.
    ///
    /// For services that read in the answer that they have to try again, such as S3 Batch Operations:
    ///
    /// ```
    /// # use lambda_idempotency::{ConfigError, EventLayer, Idempotency, MemoryStore, Operation};
    /// # use serde_json::Value;
    /// # fn main() -> Result<(), ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// let copy = Operation::new("copy").key("[job.id, tasks[0].taskId]");
    /// let layer: EventLayer<Value> = idempotency
    ///     .event(&copy)?
    ///     .keep(|answer| answer["results"][0]["resultCode"] != "TemporaryFailure");
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An answer for which `keeps` panics is kept, since its work is done.
    #[must_use]
    pub fn keep(self, keeps: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        Self { keeps: Some(Arc::new(keeps)), ..self }
    }
}

impl<T> Clone for EventLayer<T> {
    fn clone(&self) -> Self {
        let (engine, operation) = (self.engine.clone(), Arc::clone(&self.operation));
        Self { engine, operation, keeps: self.keeps.clone(), event: PhantomData }
    }
}

impl<S: Clone, T> Clone for EventService<S, T> {
    fn clone(&self) -> Self {
        let (engine, operation) = (self.engine.clone(), Arc::clone(&self.operation));
        let (inner, keeps) = (self.inner.clone(), self.keeps.clone());
        Self { inner, engine, operation, keeps, event: PhantomData }
    }
}

impl<T> fmt::Debug for EventLayer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLayer")
            .field("operation", &self.operation.name)
            .finish_non_exhaustive()
    }
}

impl<S, T> fmt::Debug for EventService<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = &self.operation.name;
        f.debug_struct("EventService").field("operation", operation).finish_non_exhaustive()
    }
}

impl<S, T> Layer<S> for EventLayer<T> {
    type Service = EventService<S, T>;

    fn layer(&self, inner: S) -> EventService<S, T> {
        let (engine, operation) = (self.engine.clone(), Arc::clone(&self.operation));
        EventService { inner, engine, operation, keeps: self.keeps.clone(), event: PhantomData }
    }
}

impl<S, T> Service<LambdaEvent<Box<RawValue>>> for EventService<S, T>
where
    S: Service<LambdaEvent<T>> + Clone + Send + 'static,
    S::Response: Serialize + DeserializeOwned + Send,
    S::Error: Into<Failure>,
    S::Future: Send,
    T: DeserializeOwned + Send + 'static,
{
    type Response = S::Response;
    type Error = InvocationError;
    type Future = BoxFuture<'static, Result<S::Response, InvocationError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), InvocationError>> {
        self.inner
            .poll_ready(context)
            .map_err(|error| InvocationError::Run(RunError::Failed(error.into())))
    }

    fn call(&mut self, event: LambdaEvent<Box<RawValue>>) -> Self::Future {
        // The one that was polled ready is the one to call.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        let (engine, operation) = (self.engine.clone(), Arc::clone(&self.operation));
        let keeps = self.keeps.clone();
        Box::pin(async move {
            let LambdaEvent { payload, context } = event;
            let typed: T = decode(payload.get()).map_err(RunError::Rejected)?;
            let task = Task {
                record: RecordId::new("event", context.request_id.as_str()),
                payload: payload.get(),
                tenant: context.tenant_id.as_deref(),
                deadline: deadline(&context),
                // The service has the event itself, and no `Call`.
                invoked: None,
                keeps,
            };
            let call_context = context.clone();
            let function = |_| inner.call(LambdaEvent::new(typed, call_context));
            let run = run(&engine, &operation, task, function).await?;
            Ok(run.value)
        })
    }
}
