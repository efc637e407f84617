//! Whole events: a layer around a service that answers them.

use std::{
    fmt,
    marker::PhantomData,
    sync::Arc,
    task::{Context, Poll},
};

use lambda_idempotency_core::{clock::BoxFuture, failure::Failure, outcome::Completion};
use lambda_idempotency_engine::{batch::Engine, call::RecordId};
use lambda_runtime::LambdaEvent;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    call::Invoked,
    deadline::{Read, invocation_deadline},
    decode::{Format, decode},
    error::{InvocationError, RunError},
    operation::{Operation, Prepared},
    run::{Keeps, OnReplay, Task, run},
};

/// Wraps a whole event; see [`Idempotency::event`](crate::Idempotency::event).
pub struct EventLayer<T> {
    engine: Engine,
    operation: Arc<Prepared>,
    keeps: Option<Arc<Keeps>>,
    on_replay: Option<Arc<OnReplay>>,
    event: PhantomData<fn() -> T>,
}

/// A service that handles each event once per key, and answers later ones with the first result.
pub struct EventService<S, T> {
    inner: S,
    engine: Engine,
    operation: Arc<Prepared>,
    keeps: Option<Arc<Keeps>>,
    on_replay: Option<Arc<OnReplay>>,
    event: PhantomData<fn() -> T>,
}

impl<T> EventLayer<T> {
    pub(crate) fn new(engine: Engine, operation: &Operation) -> Result<Self, crate::ConfigError> {
        let prepared = operation.prepared()?;
        Ok(Self { engine, operation: prepared, keeps: None, on_replay: None, event: PhantomData })
    }

    /// Selects the answers that are kept and given to later events of the key. An answer that is
    /// not kept releases the key, which does not count as a failed attempt. Default: all answers
    /// are kept. Errors are never kept.
    ///
    /// For services that find in the answer whether they have to retry, such as S3 Batch
    /// Operations:
    ///
    /// ```
    /// # use lambda_idempotency::{ConfigError, Idempotency, layers::EventLayer, MemoryStore, Operation};
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
    /// If `keeps` panics, the answer is kept, because the work is done.
    #[must_use]
    pub fn keep(self, keeps: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        Self { keeps: Some(Arc::new(keeps)), ..self }
    }

    /// Changes the answers that later events of the key get, as JSON: for example, marks them as
    /// replays, or says when the work was done ([`Completion`](crate::outcome::Completion)). It is not called for the first answer, and what it changes is not stored. Default: later events get the
    /// first answer unchanged.
    ///
    /// ```
    /// # use lambda_idempotency::{ConfigError, Idempotency, layers::EventLayer, MemoryStore, Operation};
    /// # use serde_json::Value;
    /// # fn main() -> Result<(), ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// let layer: EventLayer<Value> = idempotency
    ///     .event(&Operation::new("charge").key("paymentId"))?
    ///     .on_replay(|answer, _| answer["replayed"] = true.into());
    /// # let _ = layer;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The answer is then read as the service's type of answers: members that the type does not
    /// have are dropped, so a marker needs a member of the type, or answers of type
    /// `serde_json::Value`. If `hook` panics or makes something of the answer that is not of that
    /// type, the event gets the first answer unchanged, and the log has a warning. Numbers that are
    /// neither integers of 64 bits nor exact as `f64` lose digits.
    #[must_use]
    pub fn on_replay(
        self,
        hook: impl Fn(&mut Value, Option<Completion>) + Send + Sync + 'static,
    ) -> Self {
        Self { on_replay: Some(Arc::new(hook)), ..self }
    }
}

impl<T> Clone for EventLayer<T> {
    fn clone(&self) -> Self {
        let (engine, operation) = (self.engine.clone(), Arc::clone(&self.operation));
        let (keeps, on_replay) = (self.keeps.clone(), self.on_replay.clone());
        Self { engine, operation, keeps, on_replay, event: PhantomData }
    }
}

impl<S: Clone, T> Clone for EventService<S, T> {
    fn clone(&self) -> Self {
        let (engine, operation) = (self.engine.clone(), Arc::clone(&self.operation));
        let (keeps, on_replay) = (self.keeps.clone(), self.on_replay.clone());
        Self { inner: self.inner.clone(), engine, operation, keeps, on_replay, event: PhantomData }
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
        let (keeps, on_replay) = (self.keeps.clone(), self.on_replay.clone());
        EventService { inner, engine, operation, keeps, on_replay, event: PhantomData }
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
        // Call the instance that `poll_ready` was called on; its clone may not be ready.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        let (engine, operation) = (self.engine.clone(), Arc::clone(&self.operation));
        let (keeps, on_replay) = (self.keeps.clone(), self.on_replay.clone());
        Box::pin(async move {
            let LambdaEvent { payload, context } = event;
            let typed: T = decode(payload.get(), Format::Json).map_err(RunError::Rejected)?;
            let now = engine.clock().now();
            let task = Task {
                record: RecordId::new("event", context.request_id.as_str()),
                is_redelivered: true,
                payload: payload.get(),
                tenant: context.tenant_id.as_deref(),
                request_id: Some(&context.request_id),
                invocation_deadline: invocation_deadline(&context, now, Read::AtStart),
                receives: 0,
                // For the span only: the service has the event itself, and no `Call`.
                invoked: Some(Invoked::without_event(context.clone())),
                keeps,
                on_replay,
            };
            let call_context = context.clone();
            let function = |_| inner.call(LambdaEvent::new(typed, call_context));
            let running = run(&engine, &operation, task, function)?;
            Ok(running.await?.result)
        })
    }
}
