//! The entry point: [`Idempotency`] combines a store with operations.

use std::{fmt, future::Future, sync::Arc};

use lambda_idempotency_core::{admission::Admission, clock::Clock, failure::Failure, store::Store};
use lambda_idempotency_engine::{
    batch::Engine,
    call::{Call, RecordId},
    observe::{Observer, TracingObserver},
    process::Cache,
};
use lambda_idempotency_keys::producer::ProducerError;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    application,
    error::{ConfigError, RunError},
    event::EventLayer,
    function_builder::FunctionBuilder,
    names::Names,
    operation::{Operation, Place, Prepared},
    run::{self, Run, RunContext, Task},
};

/// If set to `1` or `true`, the log shows the messages of handlers' errors.
const SHOW_ERROR_MESSAGES: &str = "IDEMPOTENCY_LOG_ERROR_MESSAGES";

/// Makes handlers safe to call twice, with a store that records which work is done.
///
/// Cheap to clone; make one when the function starts. Methods that keep an operation take it by value
/// (`sqs` and the other sources, `event`, `http`); those that use it for one call borrow it (`run`,
/// `kept_result`).
///
/// ```
/// use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation};
///
/// #[derive(serde::Deserialize)]
/// struct Order { id: String }
///
/// async fn place_order(order: Order, call: Call) -> Result<(), std::io::Error> { Ok(()) }
///
/// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
/// let idempotency = Idempotency::new(MemoryStore::new());
/// let function = idempotency.sqs(Operation::new("place-order").key("id"), place_order)?;
/// // lambda_runtime::run(function).await
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Idempotency {
    engine: Engine,
    names: Names,
    /// A mistake in the application's name.
    mistake: Option<ConfigError>,
}

impl Idempotency {
    /// Keeps idempotency records in `store`, under the [application](Self::application) that the
    /// environment names, and reports to the log (see [`with_observer`](Self::with_observer)).
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        let engine = Engine::new(store).with_observer(observer());
        let new = Self { engine, names: Names::of_process(), mistake: None };
        new.named(application::from_environment())
    }

    /// Names the application: 1 to 128 visible ASCII characters; any other name is refused when a
    /// function is built. Default: the environment variable `IDEMPOTENCY_APPLICATION` or, if it is
    /// not set, the name of the Lambda function (`AWS_LAMBDA_FUNCTION_NAME`).
    ///
    /// Each idempotency record contains the name and counts only for applications of that name. If
    /// another application has an operation of the same name in the same table, its records return
    /// to their source ([`Outcome::Foreign`](crate::Outcome::Foreign)); they are not acknowledged
    /// for work that the other application did.
    ///
    /// Within an application, operations of one name are the same work, so two handlers or two
    /// layers of one name are refused. In a process that Lambda started, all are compared.
    /// Elsewhere, such as in tests, only those of one `Idempotency` and its clones are compared,
    /// because another one may have another store.
    ///
    /// **Set it where functions of different names do the same work**: a renamed function, two
    /// stacks of a blue/green deployment, or two functions during a migration. Give both the name
    /// that the records already contain. The name is not part of any key, so existing keys stay
    /// valid. Versions and aliases of a function share its name and need no setting.
    ///
    /// ```
    /// use lambda_idempotency::{Idempotency, MemoryStore};
    ///
    /// // In the function `orders-v2`, which takes over from `orders`:
    /// let idempotency = Idempotency::new(MemoryStore::new()).application("orders");
    /// ```
    ///
    /// Name programs outside Lambda, where neither variable is set. A program without a name gets
    /// `Outcome::Foreign` for keys that a named application has claimed, and its own idempotency
    /// records count for every application.
    #[must_use]
    pub fn application(self, name: impl Into<Arc<str>>) -> Self {
        let name = application::checked(name.into(), "`.application(..)`");
        self.named(name.map(Some))
    }

    fn named(mut self, name: Result<Option<Arc<str>>, ConfigError>) -> Self {
        match name {
            Ok(name) => {
                self.engine = self.engine.with_application(name);
                self.mistake = None;
            }
            Err(mistake) => self.mistake = Some(mistake),
        }
        self
    }

    /// Checks that an operation may be used in this place.
    fn allow(&self, operation: &Prepared, place: Place) -> Result<(), ConfigError> {
        self.mistake.clone().map_or(Ok(()), Err)?;
        self.names.take(&operation.name, place)
    }

    /// Reads time from another clock; for tests.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock) -> Self {
        Self { engine: self.engine.with_clock(clock), ..self }
    }

    /// Reports to another observer. Default: a [`TracingObserver`], which logs only the type of a
    /// handler's error.
    ///
    /// The messages of errors are logged as well if the environment variable
    /// `IDEMPOTENCY_LOG_ERROR_MESSAGES` is `1` or `true` when the `Idempotency` is made, or with
    /// the observer below. `lambda-idempotency invoke` sets the variable for the function that it
    /// runs. **Messages may quote payloads**: do not set it where people who may not see payloads
    /// can read the log.
    ///
    /// ```
    /// use lambda_idempotency::{Idempotency, MemoryStore, TracingObserver};
    ///
    /// let idempotency = Idempotency::new(MemoryStore::new())
    ///     .with_observer(TracingObserver::new().showing_error_messages());
    /// ```
    #[must_use]
    pub fn with_observer(self, observer: impl Observer) -> Self {
        Self { engine: self.engine.with_observer(observer), ..self }
    }

    /// How many completed keys this process caches, to answer their duplicates without a request to
    /// the store. Default: 1000 keys, 1 MiB, 60 seconds. Each call of this method starts with an
    /// empty cache.
    ///
    /// Switch it off where operators delete idempotency records to have events processed again and
    /// cannot wait a minute: a process that saw the key completed answers from the cache until
    /// then.
    ///
    /// ```
    /// use lambda_idempotency::{Cache, Idempotency, MemoryStore};
    ///
    /// // Every delivery asks the store.
    /// let idempotency = Idempotency::new(MemoryStore::new()).with_cache(Cache::off());
    /// ```
    #[must_use]
    pub fn with_cache(self, cache: Cache) -> Self {
        Self { engine: self.engine.with_cache(cache), ..self }
    }

    /// A function for several sources, each with its own operation and handler.
    ///
    /// ```
    /// # use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation};
    /// # async fn place(order: serde_json::Value, call: Call) -> Result<(), std::io::Error> { Ok(()) }
    /// # async fn cancel(order: serde_json::Value, call: Call) -> Result<(), std::io::Error> { Ok(()) }
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// let function = Idempotency::new(MemoryStore::new())
    ///     .function()
    ///     .sqs(Operation::new("place-order").key("orderId").queue("orders"), place)
    ///     .event_bridge(Operation::new("cancel").key("orderId").detail_type("OrderCancelled"), cancel)
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn function(&self) -> FunctionBuilder {
        FunctionBuilder::new(self.engine.clone(), self.names.clone(), self.mistake.clone())
    }

    /// A layer around a service of whole events, which returns the first result to later events of
    /// the same key. The key expression sees the event; without one, the whole event is the key.
    /// Without a key, two kinds of events are refused: those that differ on each delivery, such as
    /// events of SQS and HTTP, and those that are equal for different work, such as events of
    /// Cognito. [`EventLayer::keep`] selects the results that later events get.
    ///
    /// ```
    /// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
    /// use lambda_runtime::{LambdaEvent, service_fn, tower::ServiceBuilder};
    ///
    /// async fn charge(event: LambdaEvent<serde_json::Value>) -> Result<String, std::io::Error> {
    ///     Ok("charged".to_owned())
    /// }
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// let idempotency = Idempotency::new(MemoryStore::new());
    /// let charged = Operation::new("charge").key("paymentId");
    /// let service = ServiceBuilder::new()
    ///     .layer(idempotency.event(charged)?)
    ///     .service(service_fn(charge));
    /// // lambda_runtime::run(service).await
    /// # let _: lambda_idempotency::wrappers::EventService<_, serde_json::Value> = service;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A mistake in the operation; a setting that applies to event sources only, such as
    /// [`queue`](Operation::queue).
    pub fn event<T>(&self, operation: Operation) -> Result<EventLayer<T>, ConfigError> {
        let layer = EventLayer::new(self.engine.clone(), &operation)?;
        self.allow(&*operation.prepared()?, Place::Event)?;
        Ok(layer)
    }

    /// A layer around a service of HTTP requests, which answers a repeated request with the first
    /// response; see [`http`](crate::http). The key is in the `Idempotency-Key` header, unless the
    /// operation names an expression, which then sees the body.
    ///
    /// # Errors
    /// A mistake in the operation; a setting that applies to event sources only, such as
    /// [`queue`](Operation::queue).
    #[cfg(feature = "http")]
    pub fn http(&self, operation: Operation) -> Result<crate::http::HttpLayer, ConfigError> {
        let layer = crate::http::HttpLayer::new(self.engine.clone(), &operation)?;
        self.allow(&*operation.prepared()?, Place::Http)?;
        Ok(layer)
    }

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
        let prepared = operation.prepared()?;
        operation.fits(Place::Run)?;
        self.allow(&prepared, Place::Run)?;
        let payload = serde_json::to_string(payload).map_err(|_| RunError::Unserializable)?;
        let task = Task {
            record: RecordId::new("call", operation.name()),
            payload: &payload,
            tenant: context.tenant(),
            invocation_deadline: context.invocation_deadline(),
            invoked: context.invoked(),
            keeps: None,
        };
        run::run(&self.engine, &prepared, task, function).await
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
        self.mistake.clone().map_or(Ok(()), Err)?;
        let producer = operation.producer()?;
        let payload = serde_json::to_string(payload).map_err(|_| RunError::Unserializable)?;
        let key = producer.key(&payload).map_err(|error| match error {
            ProducerError::Rejected { reason, .. } => RunError::Rejected(reason.into()),
            _ => RunError::Unserializable,
        })?;
        let prepared = operation.prepared()?;
        let found = self.engine.look_up(&key, &prepared.policy).await;
        match found.map_err(RunError::Store)? {
            Admission::Replay(outcome) => run::decoded(outcome).map(Some),
            Admission::PermanentlyFailed { error_type, .. } => {
                Err(RunError::PermanentlyFailed { error_type })
            }
            Admission::Busy { until } => Err(RunError::Busy { until }),
            Admission::Mismatch { .. } => Err(RunError::Mismatch),
            Admission::Foreign { application } => {
                Err(RunError::Foreign(self.engine.foreign(&prepared.name, application)))
            }
            Admission::Try { .. } | Admission::Won(_) => Ok(None),
        }
    }
}

impl fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").finish_non_exhaustive()
    }
}

/// The default observer; it shows error messages if the environment variable is set.
fn observer() -> TracingObserver {
    let observer = TracingObserver::new();
    let value = std::env::var(SHOW_ERROR_MESSAGES).unwrap_or_default();
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" => observer.showing_error_messages(),
        "" | "0" | "false" => observer,
        _ => {
            tracing::warn!(
                "the environment variable {SHOW_ERROR_MESSAGES} has no effect: set it to 1 or true \
                 to log the messages of errors, to 0 or false not to log them"
            );
            observer
        }
    }
}
