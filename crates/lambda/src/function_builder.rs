//! Builds a function from sources, operations and handlers, and checks them before the first event.

use std::{fmt, future::Future, sync::Arc};

use lambda_idempotency_core::{failure::Failure, policy::Mode};
use lambda_idempotency_engine::batch::Engine;
use lambda_runtime::LambdaEvent;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    error::{ConfigError, SettingsMistake},
    function::{Function, Inner, Otherwise, Route},
    handler::{ErasedHandler, Handler, Typed},
    names::{HandlerType, Names},
    operation::{EntryPoint, Operation},
    source::Source,
    sources::{Member, Sources},
};

/// Builds a [`Function`] for several sources; see
/// [`Idempotency::function`](crate::Idempotency::function).
#[must_use]
pub struct FunctionBuilder {
    engine: Engine,
    names: Names,
    routes: Vec<Draft>,
    otherwise: Option<Otherwise>,
    /// The first mistake that was found before `build`.
    mistake: Option<ConfigError>,
}

/// A route that has not been checked.
struct Draft {
    source: Box<dyn Source>,
    operation: Operation,
    handler: Arc<dyn ErasedHandler>,
    handler_type: HandlerType,
    /// The index of the first route that was registered together with this one.
    first: usize,
}

impl FunctionBuilder {
    pub(crate) fn new(engine: Engine, names: Names, mistake: Option<ConfigError>) -> Self {
        Self { engine, names, routes: Vec::new(), otherwise: None, mistake }
    }

    /// Handles every event that no source of the function recognises, without protection against
    /// duplicates. Not together with [`invoke`](Self::invoke), which leaves none.
    pub fn otherwise<F, Fut, R, E>(mut self, handler: F) -> Self
    where
        F: Fn(LambdaEvent<Box<RawValue>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
        R: Serialize,
        E: Into<Failure>,
    {
        self.otherwise = Some(Box::new(move |event| {
            let running = handler(event);
            Box::pin(async move {
                let value = running.await.map_err(Into::into)?;
                to_raw_value(&value).map_err(Failure::transient)
            })
        }));
        self
    }

    pub(crate) fn route<T, H>(
        mut self,
        source: Box<dyn Source>,
        operation: Operation,
        handler: H,
    ) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        H: Handler<T>,
    {
        let handler = Arc::new(Typed::<H, T>::new(handler));
        let (handler_type, first) = (HandlerType::of::<H>(), self.routes.len());
        self.routes.push(Draft { source, operation, handler, handler_type, first });
        self
    }

    /// One operation and one handler for records of several sources: work that was done for one
    /// source is not done again when another source delivers it.
    ///
    /// The operation needs a [`key`](Operation::key) for every source, because the default keys of
    /// two sources never agree. Each source may adjust the operation: the key expression, the
    /// filters, the envelopes. It may not change the name, nor the mode (`transactional`, `optimistic`, `mutex`), nor
    /// how keys and fingerprints are made from the selected values (`key_format`, `optional`, `powertools`, the number
    /// of parts and their structure).
    ///
    /// ```
    /// # use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation, Sources};
    /// # async fn place_order(_: serde_json::Value, _: Call) -> Result<(), std::io::Error> { Ok(()) }
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// let sources = Sources::new()
    ///     .sqs(|place| place.queue("orders"))
    ///     .sns(|place| place)
    ///     .event_bridge(|place| place.key("order.id").detail_type("OrderRequested"));
    /// let function = Idempotency::new(MemoryStore::new())
    ///     .function()
    ///     .sources(Operation::new("place-order").key("orderId"), place_order, sources)
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sources<T, H>(mut self, operation: Operation, handler: H, sources: Sources) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        H: Handler<T>,
    {
        if sources.members.is_empty() {
            let operation = operation.name().into();
            self.mistake.get_or_insert(ConfigError::OperationWithoutSource { operation });
        }
        let handler: Arc<dyn ErasedHandler> = Arc::new(Typed::<H, T>::new(handler));
        let (handler_type, first) = (HandlerType::of::<H>(), self.routes.len());
        for Member { source, adjust } in sources.members {
            let (operation, handler) = (adjust(operation.clone()), Arc::clone(&handler));
            self.routes.push(Draft { source, operation, handler, handler_type, first });
        }
        self
    }

    /// Checks everything that can be checked before the first event, and builds the function. Each
    /// event goes to the first source that recognises it, and to [`invoke`](Self::invoke) only if
    /// no other source does.
    ///
    /// # Errors
    /// A mistake in an operation; a setting that has no effect for its source, or beside another; two registrations of
    /// one name, or a name that is used for something else or in another mode; [several sources](Self::sources) of one
    /// operation whose keys or fingerprints can never agree; an operation after another that takes all of its
    /// events; no source.
    pub fn build(self) -> Result<Function, ConfigError> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let mut handlers: Vec<(Arc<str>, HandlerType, Mode)> =
            Vec::with_capacity(self.routes.len());
        let mut routes: Vec<Route> = Vec::with_capacity(self.routes.len());
        for Draft { source, operation, handler, handler_type, first } in self.routes {
            let prepared = operation.prepared()?;
            // An earlier route that was registered by the same `.sources(..)` call has the same operation.
            if let Some(first) = routes.get(first) {
                let pair = [(first.source.name(), &first.operation), (source.name(), &operation)];
                Operation::agree(pair)?;
            } else if handlers.iter().any(|(name, ..)| *name == prepared.name) {
                return Err(ConfigError::DuplicateName { name: Arc::clone(&prepared.name) });
            } else {
                let mode = prepared.policy.mode;
                handlers.push((Arc::clone(&prepared.name), handler_type, mode));
            }
            operation.fits(EntryPoint::Source(source.name()))?;
            operation.check_filters_of(source.name())?;
            operation.refuse_volatile(&*source)?;
            operation.warn_of_shared_changes(&*source)?;
            operation.tells_notifications_apart()?;
            operation.names_what_it_excludes()?;
            prepared.commits_with(&self.engine)?;
            let mut policy = prepared.policy.clone();
            policy.on_conflict = prepared.on_conflict.unwrap_or_else(|| source.conflict());
            routes.push(Route { source, operation, prepared, policy, handler });
        }
        if routes.is_empty() {
            return Err(ConfigError::NoSource);
        }
        let takes_all = routes.iter().find(|route| route.source.takes_anything());
        if let Some(route) = takes_all.filter(|_| self.otherwise.is_some()) {
            let mistake = SettingsMistake::NoEffectBeside {
                setting: "otherwise",
                other: route.source.name(),
                reason: "that takes every event that no other source takes",
            };
            let operation = Arc::clone(&route.prepared.name);
            return Err(ConfigError::Settings { operation, mistake });
        }
        for (nth, route) in routes.iter().enumerate() {
            if let Some(before) = routes.iter().take(nth).find(|before| before.shadows(route)) {
                return Err(ConfigError::OutOfReach {
                    operation: Arc::clone(&route.prepared.name),
                    source_name: route.source.name(),
                    before: Arc::clone(&before.prepared.name),
                });
            }
        }
        // Last, because a function that cannot be built takes no names.
        self.names.take_records(&handlers)?;
        // Sources that take any event are tried last.
        routes.sort_by_key(|route| route.source.takes_anything());
        let Self { engine, otherwise, .. } = self;
        Ok(Function(Arc::new(Inner { engine, routes, otherwise })))
    }
}

/// Each operation's name with its source.
impl fmt::Debug for FunctionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routes = self.routes.iter();
        let named = routes.map(|route| (route.operation.name(), route.source.name()));
        f.debug_map().entries(named).finish()
    }
}
