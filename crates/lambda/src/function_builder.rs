//! Builds a function from sources, operations and handlers, and checks them before the first event.

use std::{any::type_name, fmt, sync::Arc};

use lambda_idempotency_core::{failure::Failure, policy::Mode};
use lambda_idempotency_engine::batch::Engine;
use lambda_runtime::LambdaEvent;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    error::ConfigError,
    function::{Function, Inner, Otherwise},
    handler::{
        Callback, ClonedForEachCall, ErasedHandler, Handler, HandlerResult, Payload, Typed,
        call_clone,
    },
    names::{HandlerType, Names},
    operation::Operation,
    route::{Draft, Route},
    source::{Sources, parts_of_each},
};

/// Builds a [`Function`] for several sources; see
/// [`Idempotency::function`](crate::Idempotency::function).
#[must_use]
pub struct FunctionBuilder {
    engine: Engine,
    names: Names,
    drafts: Vec<Draft>,
    otherwise: Option<Otherwise>,
    /// The first mistake that was found before `build`.
    mistake: Option<ConfigError>,
}

impl FunctionBuilder {
    pub(crate) fn new(engine: Engine, names: Names, mistake: Option<ConfigError>) -> Self {
        Self { engine, names, drafts: Vec::new(), otherwise: None, mistake }
    }

    /// Handles the records that `source`, or each of [several](Sources), delivers, each once per key of `operation`.
    ///
    /// The same operation and the same handler on several sources are one piece of work: what was done for one source is
    /// not done again when another source delivers it. Such an operation needs a [`key`](Operation::key), because the
    /// default keys are made for one source alone; a source whose payloads have it elsewhere has
    /// [a path of its own](crate::source::Sqs::key).
    ///
    /// ```
    /// use lambda_idempotency::{Operation, source::{EventBridge, Sns, Sqs}};
    /// # use lambda_idempotency::{Call, Idempotency, MemoryStore};
    /// # async fn place_order(_: serde_json::Value, _: Call) -> Result<(), std::io::Error> { Ok(()) }
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// let place = Operation::new("place-order").key("orderId");
    /// let function = idempotency
    ///     .function()
    ///     .on((Sqs::new().queue("orders"), Sns::new().topic("orders")), &place, place_order)
    ///     .on(EventBridge::new().detail_type("OrderRequested").key("order.id"), &place, place_order)
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A closure that holds something, and a function pointer, is given to all sources of its operation at once: two of one
    /// type may do different work. A function can be given again, also with an operation that differs in its policies:
    /// `.on(Kinesis::new(), &place.clone().on_conflict(..), place_order)`.
    pub fn on<T, R, H>(mut self, source: impl Sources, operation: &Operation, handler: H) -> Self
    where
        T: Payload,
        R: HandlerResult,
        H: ClonedForEachCall + Handler<T, R>,
    {
        let handler: Arc<dyn ErasedHandler> = Arc::new(Typed::<H, T, R>::new(handler));
        let sources = parts_of_each(source);
        if sources.is_empty() {
            let name = operation.name();
            self.mistake.get_or_insert(ConfigError::source(format!(
                "operation `{name}` has a list of sources with none in it; add one, or leave the operation out"
            )));
        }
        self.drafts.extend(sources.into_iter().map(|source| Draft {
            source,
            operation: operation.clone(),
            handler: Arc::clone(&handler),
            handler_type: HandlerType::of::<H>(),
            payload: type_name::<T>(),
        }));
        self
    }

    /// Handles every event that no source of the function recognises, without protection against
    /// duplicates. Not together with [`Invoke`](crate::source::Invoke), which leaves none.
    pub fn otherwise<F, R, E>(mut self, handler: F) -> Self
    where
        F: ClonedForEachCall + Callback<LambdaEvent<Box<RawValue>>, Result<R, E>>,
        R: Serialize + 'static,
        E: Into<Failure> + 'static,
    {
        self.otherwise = Some(Box::new(move |event| {
            let running = call_clone(&handler, event);
            Box::pin(async move {
                let value = running.await.map_err(Into::into)?;
                to_raw_value(&value).map_err(Failure::transient)
            })
        }));
        self
    }

    /// Checks everything that can be checked before the first event, and builds the function. Each
    /// event goes to the first source that recognises it, and to [`Invoke`](crate::source::Invoke) only if
    /// no other source does.
    ///
    /// # Errors
    /// A mistake in an operation or a source; a handler that takes the type of a whole event; a name that is used for
    /// something else, for another handler or in another mode; several sources of one operation whose keys or
    /// fingerprints can never agree; a source after another one that takes all of its events; no source.
    pub fn build(self) -> Result<Function, ConfigError> {
        let Self { engine, names, drafts, otherwise, mistake } = self;
        if let Some(mistake) = mistake {
            return Err(mistake);
        }
        let mut handlers: Vec<(Arc<str>, HandlerType, Mode)> = Vec::with_capacity(drafts.len());
        let mut routes: Vec<Route> = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let route = draft.checked(&engine)?;
            let name = &route.prepared.name;
            match routes.iter().find(|first| first.prepared.name == *name) {
                Some(first) => route.agrees_with(first)?,
                None => {
                    handlers.push((Arc::clone(name), route.handler_type, route.policy.mode));
                }
            }
            routes.push(route);
        }
        if routes.is_empty() {
            return Err(ConfigError::source(
                "the function has no source; add one with `.on(Sqs::new(), ..)`",
            ));
        }
        let is_direct = |route: &&Route| route.source.answers_its_caller();
        if let Some(route) = routes.iter().find(is_direct).filter(|_| otherwise.is_some()) {
            return Err(ConfigError::setting(format!(
                "`.otherwise(..)` has no effect beside the source {} of operation `{}`, which takes every event that no \
                 other source takes; remove one of them",
                route.source.name(),
                route.prepared.name
            )));
        }
        for (nth, route) in routes.iter().enumerate() {
            if let Some(before) = routes.iter().take(nth).find(|before| before.shadows(route)) {
                let remedy = if is_direct(&route) {
                    "give `Invoke` once, to a handler that chooses by the event"
                } else {
                    "filter the records of each (`.queue(\"...\")`, `.detail_type(\"...\")`, ...), or register the narrower \
                     source first"
                };
                return Err(ConfigError::source(format!(
                    "operation `{}` is never reached: `{}` comes before it and takes all of its {} events; {remedy}",
                    route.prepared.name,
                    before.prepared.name,
                    route.source.name()
                )));
            }
        }
        // Last, because a function that cannot be built takes no names.
        names.take_records(&handlers)?;
        // Whichever source does the work, a direct invocation may ask for the result.
        let asked: Vec<_> =
            routes.iter().filter(is_direct).map(|route| Arc::clone(&route.prepared.name)).collect();
        for route in &mut routes {
            route.keeps_result = asked.contains(&route.prepared.name);
            route.warn_of_dropped_result();
        }
        let (last, mut routes): (Vec<_>, Vec<_>) =
            routes.into_iter().partition(|route| route.source.answers_its_caller());
        routes.extend(last);
        Ok(Function(Arc::new(Inner { engine, routes, otherwise })))
    }
}

impl FunctionBuilder {
    /// Builds the function and serves it: [`build`](Self::build)`()?.`[`serve`](Function::serve)`().await`.
    ///
    /// # Errors
    /// A mistake, as of [`build`](Self::build); an error of the runtime.
    pub async fn serve(self) -> Result<(), lambda_runtime::Error> {
        self.build()?.serve().await
    }
}

/// No type is one: what is given to a function that is built. The trait lets the compiler say what to write.
#[diagnostic::on_unimplemented(
    message = "a function that is built takes no other source",
    label = "`Idempotency::on` has built the function already",
    note = "for several sources, write `idempotency.function().on(..).on(..).build()?`",
    note = "several sources of one operation are a tuple: `idempotency.on((one, other), &operation, handler)?`"
)]
pub trait LateSource {
    #[doc(hidden)]
    fn never(self) -> !;
}

impl Function {
    #[doc(hidden)]
    pub fn on<S: LateSource, O, H>(self, source: S, _: O, _: H) -> Result<Self, ConfigError> {
        source.never()
    }
}

/// Each operation's name with its source.
impl fmt::Debug for FunctionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.drafts.iter();
        let named = named.map(|draft| (draft.operation.name(), draft.source.events.name()));
        f.debug_map().entries(named).finish()
    }
}
