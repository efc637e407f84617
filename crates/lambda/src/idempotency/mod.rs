//! The entry point: [`Idempotency`] combines a store with operations.

mod free;
mod from_env;
pub(crate) mod run;
pub(crate) mod run_context;
mod run_many;

use std::{any::TypeId, fmt, sync::Arc};

use lambda_idempotency_core::{
    clock::Clock, memory::MemoryStore, outbox::Sender, record::Worker, store::Store,
};
use lambda_idempotency_engine::{
    batch::Engine,
    completed::Cache,
    observe::{Observer, TracingObserver},
};

use crate::{
    call::LastInvoked,
    environment,
    error::ConfigError,
    function::Function,
    function_builder::FunctionBuilder,
    handler::{ClonedForEachCall, Handler, HandlerResult, Payload},
    names::{Names, Use},
    operation::{Operation, Prepared},
    source::Sources,
};

/// Makes handlers safe to call twice, with a store that records which work is done.
///
/// Cheap to clone; make one when the function starts.
///
/// ```
/// use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation, source::Sqs};
///
/// #[derive(serde::Deserialize)]
/// struct Order { id: String }
///
/// async fn place_order(order: Order, call: Call) -> Result<(), std::io::Error> { Ok(()) }
///
/// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
/// let idempotency = Idempotency::new(MemoryStore::new());
/// let place = Operation::new("place-order").key("id");
/// let function = idempotency.on(Sqs::new(), &place, place_order)?;
/// // function.serve().await
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Idempotency {
    pub(crate) engine: Engine,
    pub(crate) last_invoked: LastInvoked,
    names: Names,
    /// A mistake in the application's name.
    mistake: Option<ConfigError>,
    /// A mistake in the environment.
    refused: Option<ConfigError>,
}

impl Idempotency {
    /// Keeps idempotency records in `store`, under the [application](Self::application) that the
    /// environment names, and reports to the log (see [`with_log`](Self::with_log)).
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        if is_in_memory(&store) && environment::is_deployed() {
            tracing::warn!(
                "the idempotency records are in memory, where no other process of this function sees them: duplicates are \
                 processed again; use a store that processes share, such as `DynamoDbStore`"
            );
        }
        let (log, refused) = match environment::log() {
            Ok(log) => (log, None),
            Err(refused) => (TracingObserver::new(), Some(refused)),
        };
        let engine = Engine::new(store).with_log(Some(log)).with_worker(Worker::from_environment());
        let (names, last_invoked) = (Names::of_process(), LastInvoked::default());
        let new = Self { engine, last_invoked, names, mistake: None, refused };
        new.named(environment::application()).without_protection_if(environment::is_disabled())
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
    /// because another one may have another store. A closure that captures something counts as another handler each
    /// time, since two of one type may do different work: build its function once and clone it.
    ///
    /// **Set it where functions of different names do the same work**: a renamed function, one whose name
    /// CloudFormation generates and that it replaces, two stacks of a blue/green deployment, or two functions during a migration. Give both the name
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
        let name = environment::checked_application(name.into(), "`.application(..)`");
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

    fn without_protection_if(mut self, disabled: Result<bool, ConfigError>) -> Self {
        match disabled {
            Ok(false) => {}
            Ok(true) => {
                tracing::warn!(
                    "IDEMPOTENCY_DISABLED is set: nothing protects against duplicates, and each delivery is \
                     processed; remove the variable before this function does real work"
                );
                self.engine = self.engine.without_protection();
            }
            Err(mistake) => self.refused = Some(mistake),
        }
        self
    }

    /// A mistake that was found before any operation was used.
    pub(crate) fn mistake(&self) -> Option<ConfigError> {
        self.refused.clone().or_else(|| self.mistake.clone())
    }

    /// Checks that an operation may be used at this entry point.
    pub(crate) fn allow(&self, operation: &Prepared, used: Use) -> Result<(), ConfigError> {
        self.mistake().map_or(Ok(()), Err)?;
        operation.commits_with(&self.engine)?;
        self.names.take(&operation.name, used, operation.policy.mode)
    }

    /// Refuses an operation whose keys are those of HTTP requests, where the caller is not known.
    #[cfg(feature = "http")]
    pub(crate) fn refuse_keys_of_requests(&self, operation: &Operation) -> Result<(), ConfigError> {
        if !self.names.is_of_requests(operation.name()) {
            return Ok(());
        }
        Err(ConfigError::name(format!(
            "operation `{}` is used for `.http(..)`, whose keys count for one caller, so that a payload is not enough to free \
             one; give the request to `lambda-idempotency records free`",
            operation.name()
        )))
    }

    /// Reads time from another clock; for tests.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock) -> Self {
        Self { engine: self.engine.with_clock(clock), ..self }
    }

    /// Sends the messages that handlers [publish](crate::Call::publish), after they were stored with the completion.
    /// Default: none, and handlers cannot publish.
    ///
    /// Keep the sender as long as the store has messages: a delivery that finds some and has no sender returns. See
    /// [`outbox`](crate::outbox).
    #[must_use]
    pub fn with_sender(self, sender: impl Sender) -> Self {
        Self { engine: self.engine.with_sender(sender), ..self }
    }

    /// Reports each outcome, each call of the store and the end of each invocation to this observer, beside the log
    /// and the observers that were added before.
    ///
    /// ```
    /// use lambda_idempotency::{Idempotency, MemoryStore, observe::{Observer, Report}};
    ///
    /// struct Alarm;
    ///
    /// impl Observer for Alarm {
    ///     fn reported(&self, report: &Report<'_>) {
    ///         if report.outcome.label() == "completion_lost" {
    ///             // ring
    ///         }
    ///     }
    /// }
    ///
    /// let idempotency = Idempotency::new(MemoryStore::new()).with_observer(Alarm);
    /// ```
    #[must_use]
    pub fn with_observer(self, observer: impl Observer) -> Self {
        Self { engine: self.engine.with_observer(observer), ..self }
    }

    /// Sets how the log line of each delivery is written. Default: with only the type of a handler's error.
    ///
    /// The messages of errors are logged as well if the environment variable
    /// `IDEMPOTENCY_LOG_ERROR_MESSAGES` is `1` or `true` when the `Idempotency` is made, or with
    /// the setting below. Empty, `0` and `false` leave them out. With any other value no function is
    /// built. `lambda-idempotency invoke` sets the variable for the function that it runs.
    /// **Messages may quote payloads**: do not set it where people who may not see payloads can read
    /// the log.
    ///
    /// ```
    /// use lambda_idempotency::{Idempotency, MemoryStore, observe::TracingObserver};
    ///
    /// let idempotency = Idempotency::new(MemoryStore::new())
    ///     .with_log(TracingObserver::new().showing_error_messages());
    /// ```
    #[must_use]
    pub fn with_log(self, log: TracingObserver) -> Self {
        Self { engine: self.engine.with_log(Some(log)), ..self }
    }

    /// Writes no log line for deliveries. Then only an observer of yours learns of work that was
    /// done and could not be recorded, and the alarms of `template.yaml` stay silent.
    ///
    /// ```
    /// use lambda_idempotency::{Idempotency, MemoryStore};
    ///
    /// let idempotency = Idempotency::new(MemoryStore::new()).without_log();
    /// ```
    #[must_use]
    pub fn without_log(self) -> Self {
        Self { engine: self.engine.with_log(None), ..self }
    }

    /// Gives the [span of each call of a handler][span] the fields of OpenTelemetry's conventions for messaging
    /// (`otel.*`, `messaging.*`, `error.type`, `trace.parent`), for a subscriber that exports spans, such as
    /// `tracing-opentelemetry`. Default: only the fields that name the record, because a subscriber that writes lines
    /// formats all fields of each span.
    ///
    /// ```
    /// use lambda_idempotency::{Idempotency, MemoryStore};
    ///
    /// let idempotency = Idempotency::new(MemoryStore::new()).with_opentelemetry_fields();
    /// ```
    ///
    /// [span]: crate::guide::logs_and_traces#a-span-for-each-call-of-a-handler
    #[must_use]
    pub fn with_opentelemetry_fields(self) -> Self {
        Self { engine: self.engine.with_opentelemetry_fields(), ..self }
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
    /// use lambda_idempotency::{Idempotency, MemoryStore, store::Cache};
    ///
    /// // Every delivery asks the store.
    /// let idempotency = Idempotency::new(MemoryStore::new()).with_cache(Cache::off());
    /// ```
    #[must_use]
    pub fn with_cache(self, cache: Cache) -> Self {
        Self { engine: self.engine.with_cache(cache), ..self }
    }

    /// A function for one operation: [`function`](Self::function)`().`[`on`](FunctionBuilder::on)`(..).build()`.
    ///
    /// # Errors
    /// A mistake in the operation or in the source; see [`FunctionBuilder::build`].
    pub fn on<T, R, H>(
        &self,
        source: impl Sources,
        operation: &Operation,
        handler: H,
    ) -> Result<Function, ConfigError>
    where
        T: Payload,
        R: HandlerResult,
        H: ClonedForEachCall + Handler<T, R>,
    {
        self.function().on(source, operation, handler).build()
    }

    /// A function for several sources, each with its operation and handler.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, source::{EventBridge, Sqs}};
    /// # use lambda_idempotency::{Call, Idempotency, MemoryStore};
    /// # async fn place(order: serde_json::Value, call: Call) -> Result<(), std::io::Error> { Ok(()) }
    /// # async fn cancel(order: serde_json::Value, call: Call) -> Result<(), std::io::Error> { Ok(()) }
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// let order = Operation::new("place-order").key("orderId");
    /// let cancelled = Operation::new("cancel-order").key("orderId");
    /// let function = Idempotency::new(MemoryStore::new())
    ///     .function()
    ///     .on(Sqs::new().queue("orders"), &order, place)
    ///     .on(EventBridge::new().detail_type("OrderCancelled"), &cancelled, cancel)
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn function(&self) -> FunctionBuilder {
        FunctionBuilder::new(self.engine.clone(), self.names.clone(), self.mistake())
    }
}

fn is_in_memory<S: Store>(_: &S) -> bool {
    let stores = [TypeId::of::<MemoryStore>(), TypeId::of::<Arc<MemoryStore>>()];
    stores.contains(&TypeId::of::<S>())
}

impl fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, source::Sqs};

    #[test]
    fn a_mistake_in_the_environment_is_found_whatever_else_is_set() {
        let mistake = ConfigError::environment("IDEMPOTENCY_DISABLED");
        let refused = Idempotency::new(MemoryStore::new())
            .without_protection_if(Err(mistake.clone()))
            .application("shop");
        let place = |_: serde_json::Value, _: Call| async { Ok::<_, std::io::Error>(()) };
        let refused = refused.on(Sqs::new(), &Operation::new("place").key("id"), place);
        assert_eq!(refused.unwrap_err(), mistake);
    }
}
