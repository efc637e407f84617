//! A Lambda function made of sources, operations and handlers.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::join_all;
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    failure::Failure,
    outcome::Outcome,
    policy::Policy,
};
use lambda_idempotency_engine::batch::{Batch, Engine};
use lambda_runtime::LambdaEvent;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};
use tower_service::Service;

use crate::{
    call::Invoked,
    delivery::Extraction,
    error::{ConfigError, InvocationError},
    handler::{ErasedHandler, Handler, Typed},
    names::{Names, Worker},
    operation::{Operation, Place, Prepared},
    rejection::Rejection,
    source::{Event, Record, Source, hidden_with, unwrap},
    sources::{Member, Sources},
};

/// A Lambda function: a service to be given to `lambda_runtime::run` or `run_concurrent`.
///
/// Takes the raw event, so that keys and payloads are what AWS delivered and not what some type
/// made of it. Clones share everything.
#[derive(Clone)]
pub struct Function(Arc<Inner>);

struct Inner {
    engine: Engine,
    routes: Vec<Route>,
    otherwise: Option<Otherwise>,
}

type Otherwise = Box<
    dyn Fn(LambdaEvent<Box<RawValue>>) -> BoxFuture<'static, Result<Box<RawValue>, Failure>>
        + Send
        + Sync,
>;

struct Route {
    source: Box<dyn Source>,
    operation: Operation,
    prepared: Arc<Prepared>,
    policy: Policy,
    handler: Arc<dyn ErasedHandler>,
}

/// What each route has to do of an event, and what no route takes.
struct Shares<'f, 'e> {
    shares: Vec<(&'f Route, Event<'e>)>,
    rest: Option<Event<'e>>,
}

/// Builds a [`Function`] for several sources; see
/// [`Idempotency::function`](crate::Idempotency::function).
#[must_use]
pub struct FunctionBuilder {
    engine: Engine,
    names: Names,
    routes: Vec<Draft>,
    otherwise: Option<Otherwise>,
    /// The first mistake that was met before `build`.
    mistake: Option<ConfigError>,
}

/// A route that is not checked yet.
struct Draft {
    source: Box<dyn Source>,
    operation: Operation,
    handler: Arc<dyn ErasedHandler>,
    worker: Worker,
    /// The place of the first route that was registered together with this one.
    first: usize,
}

impl Route {
    /// Whether this route, asked first, takes every event of the other.
    fn shadows(&self, other: &Self) -> bool {
        self.source.name() == other.source.name() && self.operation.covers(&other.operation)
    }

    /// The source, and where it takes its records from.
    fn describe(&self) -> String {
        let source = self.source.name();
        let names: Vec<&str> = self.operation.filter_names().collect();
        if names.is_empty() {
            source.to_owned()
        } else {
            format!("{source} from {}", names.join(", "))
        }
    }
}

impl FunctionBuilder {
    pub(crate) fn new(engine: Engine, names: Names, mistake: Option<ConfigError>) -> Self {
        Self { engine, names, routes: Vec::new(), otherwise: None, mistake }
    }

    /// Handles every other event, without protection against duplicates.
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
                to_raw_value(&value).map_err(Failure::retry)
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
        let (worker, first) = (Worker::of::<H>(), self.routes.len());
        self.routes.push(Draft { source, operation, handler, worker, first });
        self
    }

    /// One operation and one handler for records of several sources: what one of them has delivered
    /// is not done again when another delivers it.
    ///
    /// The operation needs a [`key`](Operation::key) for every source, since default identities of
    /// two sources never agree. Each source may adjust the operation for itself: where the key is,
    /// which records it takes, in which envelope they come. It may not change the name, nor how keys
    /// are made from what they select (`readable_keys`, `key_secret`, `optional`, `dialect`).
    ///
    /// ```
    /// # use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation, Sources};
    /// # async fn place_order(_: serde_json::Value, _: Call) -> Result<(), std::io::Error> { Ok(()) }
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// let sources = Sources::new()
    ///     .sqs(|place| place.from_queue("orders"))
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
        let (worker, first) = (Worker::of::<H>(), self.routes.len());
        for Member { source, adjust } in sources.members {
            let (operation, handler) = (adjust(operation.clone()), Arc::clone(&handler));
            self.routes.push(Draft { source, operation, handler, worker, first });
        }
        self
    }

    /// Checks everything that can be checked before the first event, and builds the function.
    /// Events go to the first source that recognises them, and to
    /// [`invoke`](Self::invoke) only if no other does.
    ///
    /// # Errors
    /// Any mistake in an operation; a setting that has no effect for its source; two registrations of
    /// one name, or a name that is used for something else; [several sources](Self::sources) of one operation whose keys can never agree; an
    /// operation behind another that takes all of its events; no source at all.
    pub fn build(self) -> Result<Function, ConfigError> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let mut workers = HashMap::new();
        let mut routes: Vec<Route> = Vec::with_capacity(self.routes.len());
        for Draft { source, operation, handler, worker, first } in self.routes {
            let prepared = operation.prepared()?;
            if let Some(first) = routes.get(first) {
                let pair = [(first.source.name(), &first.operation), (source.name(), &operation)];
                Operation::agree(pair)?;
            } else if workers.insert(Arc::clone(&prepared.name), worker).is_some() {
                return Err(ConfigError::DuplicateName { name: Arc::clone(&prepared.name) });
            }
            operation.fits(Place::Source(source.name()))?;
            operation.check_filters_of(source.name())?;
            operation.lasts(&*source)?;
            let mut policy = prepared.policy.clone();
            policy.conflict = prepared.conflict.unwrap_or_else(|| source.conflict());
            routes.push(Route { source, operation, prepared, policy, handler });
        }
        if routes.is_empty() {
            return Err(ConfigError::NoSource);
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
        for (name, worker) in &workers {
            self.names.take_records(name, *worker)?;
        }
        // What takes anything is asked last.
        routes.sort_by_key(|route| route.source.takes_anything());
        let Self { engine, otherwise, .. } = self;
        Ok(Function(Arc::new(Inner { engine, routes, otherwise })))
    }
}

impl Inner {
    async fn invoke(
        &self,
        event: LambdaEvent<Box<RawValue>>,
    ) -> Result<Box<RawValue>, InvocationError> {
        let invoked = Invoked::new(event);
        let read = Event::read(invoked.payload(), &invoked.context().request_id);
        match self.share(read) {
            Ok(shares) => self.process(shares, &invoked).await,
            Err(found) => self.other(invoked.into_event(), found).await,
        }
    }

    /// Gives the event to the first route that recognises it. Of a list of events, each goes to the
    /// first route that recognises that one. The error says what came, if it is for nobody.
    fn share<'e>(&self, event: Event<'e>) -> Result<Shares<'_, 'e>, String> {
        let mut shares = Vec::new();
        let mut rest = Some(event);
        for route in &self.routes {
            let Some(event) = rest.take() else { break };
            let is_partly_shared = !shares.is_empty() && route.source.takes_anything();
            if is_partly_shared || !route.source.recognises(&event, &route.operation) {
                rest = Some(event);
                continue;
            }
            let (share, others) = route.source.divide(event, &route.operation);
            shares.push((route, share));
            rest = others;
        }
        match (shares.is_empty(), rest) {
            (true, Some(event)) => Err(event.describe()),
            (_, rest) => Ok(Shares { shares, rest }),
        }
    }

    /// Processes all shares side by side, and answers for them together.
    async fn process(
        &self,
        Shares { shares, rest }: Shares<'_, '_>,
        invoked: &Arc<Invoked>,
    ) -> Result<Box<RawValue>, InvocationError> {
        let Some((first, event)) = shares.first() else { return Ok(RawValue::NULL.to_owned()) };
        let source = &first.source;
        let running = shares.iter().map(|(route, share)| self.run(route, share, invoked));
        let mut done: Vec<_> = join_all(running).await.into_iter().flatten().collect();
        if let Some(rest) = &rest {
            let records = self.unclaimed(source.records(rest, &first.operation), &**source);
            done.extend(
                records
                    .into_iter()
                    .map(|record| (record, Outcome::Rejected(Rejection::NoOperation.into()))),
            );
        }
        if shares.len() > 1 || rest.is_some() {
            // Each record of a list is a part of the event's text: its address tells its place.
            done.sort_by_key(|(record, _)| record.raw.as_ptr());
        }
        let (records, outcomes): (Vec<_>, Vec<_>) = done.into_iter().unzip();
        source.respond(event, &records, &outcomes)
    }

    /// Records that no operation takes. They have none whose secret hides their ids in the log, so another
    /// operation of their source lends its own.
    fn unclaimed<'e>(&self, records: Vec<Record<'e>>, source: &dyn Source) -> Vec<Record<'e>> {
        let mut of_source = self.routes.iter().filter(|route| route.source.name() == source.name());
        match of_source.find_map(|route| route.operation.secret()) {
            Some(secret) => hidden_with(secret, records),
            None => records,
        }
    }

    /// Processes the records of an event, or of the route's share of it.
    async fn run<'e>(
        &self,
        route: &Route,
        event: &Event<'e>,
        invoked: &Arc<Invoked>,
    ) -> Vec<(Record<'e>, Outcome)> {
        let context = invoked.context();
        let records = unwrap(route.source.records(event, &route.operation), &route.operation);
        let extraction =
            Extraction { operation: &route.prepared, tenant: context.tenant_id.as_deref() };
        let deliveries = records
            .iter()
            .map(|record| {
                extraction.delivery(record, |payload| {
                    let job = Arc::clone(&route.handler).job(payload, invoked.delivers(record))?;
                    Ok(match &route.prepared.spoken {
                        Some(spoken) => spoken.job(job),
                        None => job,
                    })
                })
            })
            .collect();
        let batch = Batch {
            operation: &route.prepared.name,
            deliveries,
            after_failure: route.operation.after_failure,
            policy: &route.policy,
            deadline: deadline(context),
            pace: &route.prepared.pace,
        };
        let outcomes = self.engine.run(batch).await;
        if let Some(hook) = &route.operation.on_busy {
            hook.tell(&**self.engine.clock(), deadline(context), &records, &outcomes).await;
        }
        records.into_iter().zip(outcomes).collect()
    }

    async fn other(
        &self,
        event: LambdaEvent<Box<RawValue>>,
        found: String,
    ) -> Result<Box<RawValue>, InvocationError> {
        if let Some(otherwise) = &self.otherwise {
            return otherwise(event).await.map_err(InvocationError::Otherwise);
        }
        let expected = self.routes.iter().map(Route::describe).collect::<Vec<_>>().join(", ");
        Err(InvocationError::UnknownEvent { expected, found })
    }
}

/// When the invocation ends. 0 is what a context without a deadline holds: unknown, not past.
pub(crate) fn deadline(context: &lambda_runtime::Context) -> Option<Timestamp> {
    (context.deadline != 0).then(|| Timestamp::from_millis(context.deadline))
}

/// Each operation with its source.
impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routes = self.0.routes.iter();
        f.debug_map().entries(routes.map(|route| (&route.prepared.name, route.describe()))).finish()
    }
}

/// Each operation with its source, as far as they are named.
impl fmt::Debug for FunctionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routes = self.routes.iter();
        let named = routes.map(|route| (route.operation.name(), route.source.name()));
        f.debug_map().entries(named).finish()
    }
}

impl Service<LambdaEvent<Box<RawValue>>> for Function {
    type Response = Box<RawValue>;
    type Error = InvocationError;
    type Future = BoxFuture<'static, Result<Box<RawValue>, InvocationError>>;

    /// Always ready: an outage of the store is the business of the call.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), InvocationError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, event: LambdaEvent<Box<RawValue>>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.invoke(event).await })
    }
}
