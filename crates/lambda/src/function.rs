//! A Lambda function: sources, operations and handlers.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::{join, join_all};
use lambda_idempotency_core::{
    clock::BoxFuture,
    failure::Failure,
    outcome::Outcome,
    policy::{OnConflict, OnOutage},
    record::IdempotencyRecord,
};
use lambda_idempotency_engine::batch::{Batch, Delivery, Engine, Work};
use lambda_idempotency_keys::Key;
use lambda_runtime::LambdaEvent;
use serde_json::value::RawValue;
use tower_service::Service;

use crate::{
    call::{Invoked, Read, invocation_deadline},
    divert::{Sinks, claimed_keys, time_for_sinks},
    error::InvocationError,
    find_key::Extraction,
    rejection::Rejection,
    route::Route,
    source::{Event, EventSource, Record, RecordEnd, all_or_error, hidden_with, share_arns},
};

/// A Lambda function: a service for `lambda_runtime::run` or `run_concurrent`.
///
/// It takes the raw event, so that keys and payloads are exactly what AWS delivered and not what a
/// type's deserialization made of it. Clones share everything.
#[derive(Clone)]
pub struct Function(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) routes: Vec<Route>,
    pub(crate) otherwise: Option<Otherwise>,
}

pub(crate) type Otherwise = Box<
    dyn Fn(LambdaEvent<Box<RawValue>>) -> BoxFuture<'static, Result<Box<RawValue>, Failure>>
        + Send
        + Sync,
>;

/// The part of an event for each route, and the part that no route takes.
struct Shares<'f, 'e> {
    shares: Vec<(&'f Route, Event<'e>)>,
    rest: Option<Event<'e>>,
}

impl Inner {
    async fn invoke(
        &self,
        event: LambdaEvent<Box<RawValue>>,
    ) -> Result<Box<RawValue>, InvocationError> {
        let now = self.engine.clock().now();
        let deadline = invocation_deadline(&event.context, now, Read::AtStart);
        let invoked = Invoked::new(event, deadline);
        let read = Event::read(invoked.payload(), &invoked.context().request_id);
        match self.share(read) {
            Ok(shares) => self.process(shares, &invoked).await,
            Err(found) => self.other(invoked.into_event(), found).await,
        }
    }

    /// Gives the event to the first route that recognises it. For a list of events, each item goes
    /// to the first route that recognises that item. If no route does, the error describes the
    /// event.
    fn share<'e>(&self, event: Event<'e>) -> Result<Shares<'_, 'e>, String> {
        // Nearly always, one route takes all.
        let mut shares = Vec::with_capacity(1);
        let mut rest = Some(event);
        for route in &self.routes {
            let Some(event) = rest.take() else { break };
            // The rest of a divided list is not a direct invocation: `process` rejects its records.
            let is_partly_shared = !shares.is_empty() && route.source.answers_its_caller();
            if is_partly_shared || !route.source.recognises(&event, &route.settings) {
                rest = Some(event);
                continue;
            }
            let (share, others) = route.source.divide(event, &route.settings);
            shares.push((route, share));
            rest = others;
        }
        match (shares.is_empty(), rest) {
            (true, Some(event)) => Err(event.describe()),
            (_, rest) => Ok(Shares { shares, rest }),
        }
    }

    /// Processes all shares concurrently, and answers the source for all of them.
    async fn process(
        &self,
        Shares { shares, rest }: Shares<'_, '_>,
        invoked: &Arc<Invoked>,
    ) -> Result<Box<RawValue>, InvocationError> {
        let Some((first, event)) = shares.first() else { return Ok(RawValue::NULL.to_owned()) };
        // Only lists of one source are divided, so all shares have this source.
        let source = &first.source;
        let running = shares.iter().map(|(route, share)| self.run(route, share, invoked));
        let mut done = join_all(running).await;
        if let Some(rest) = &rest {
            let records = self.unclaimed(source.records(rest, &first.settings), &**source);
            done.push(self.reject(records, first, invoked).await);
        }
        let (records, outcomes) = match done.pop() {
            Some(all) if done.is_empty() => all,
            last => {
                let parts = shares.iter().map(|(_, share)| share).chain(&rest);
                in_order(parts.zip(done.into_iter().chain(last)))
            }
        };
        if source.answers_its_caller() {
            let outcome = outcomes.into_iter().next().map(|ended| ended.outcome);
            return Ok(first.answer(event, outcome)?);
        }
        if shares.iter().any(|(route, _)| route.settings.returns_whole_batch) {
            all_or_error(source.name(), &records, &outcomes)?;
        }
        source.respond(event, &records, &outcomes)
    }

    /// Records that no operation takes. Their ids are hashed in the log with the secret of another
    /// operation of the same source, because they have no operation themselves.
    fn unclaimed<'e>(&self, records: Vec<Record<'e>>, source: &dyn EventSource) -> Vec<Record<'e>> {
        let mut of_source = self.routes.iter().filter(|route| route.source.name() == source.name());
        match of_source.find_map(|route| route.operation.secret()) {
            Some(secret) => hidden_with(secret, records),
            None => records,
        }
    }

    /// Rejects records that no operation takes. They have no operation, and the engine only reports them: the log has
    /// a line for each delivery.
    async fn reject<'e>(
        &self,
        records: Vec<Record<'e>>,
        other: &Route,
        invoked: &Arc<Invoked>,
    ) -> (Vec<Record<'e>>, Vec<RecordEnd>) {
        let delivery = |record: &Record<'_>| {
            let work = Work::Reject(Rejection::NoOperation.into());
            Delivery::alone(record.id.clone(), invoked.delivers(record, false), work)
        };
        let batch = Batch::for_operation("", &other.policy, &other.prepared.pace)
            .within(Some(&invoked.context().request_id), invoked.deadline())
            .with(records.iter().map(delivery).collect());
        let outcomes = self.engine.run(batch).await;
        (records, outcomes.into_iter().map(RecordEnd::from).collect())
    }

    /// Processes the records of an event, or of the route's share of it.
    async fn run<'e>(
        &self,
        route: &Route,
        event: &Event<'e>,
        invoked: &Arc<Invoked>,
    ) -> (Vec<Record<'e>>, Vec<RecordEnd>) {
        let context = invoked.context();
        let begun = self.engine.clock().now();
        let mut records = route.records(event);
        share_arns(&mut records);
        let extraction =
            Extraction { operation: &route.prepared, tenant: context.tenant_id.as_deref() };
        // The trace of an invocation is that of its record if the record caused the invocation alone.
        let is_cause = route.source.about().is_cause_of_invocation && records.len() == 1;
        let mut whole = None;
        let deliveries = records.iter().map(|record| {
            let kept = route.kept(event, record, context, &mut whole);
            let delivered = invoked.delivers(record, is_cause).kept(kept);
            route.delivery(record, delivered, &extraction)
        });
        let deliveries: Vec<_> = deliveries.collect();
        let keys = claimed_keys(&route.settings, &deliveries);
        let batch = Batch::for_operation(&route.prepared.name, &route.policy, &route.prepared.pace)
            .within(Some(&context.request_id), invoked.deadline())
            .leaving(time_for_sinks(&route.settings))
            .with(deliveries);
        let outcomes = self.engine.run(batch).await;
        let hooks = async {
            if let Some(hook) = &route.settings.on_busy {
                let clock = &**self.engine.clock();
                hook.call_for_busy(clock, invoked.deadline(), &records, &outcomes).await;
            }
        };
        let span = (begun, invoked.deadline());
        let sinks = Sinks::new(&self.engine, route, &extraction, keys, span);
        let ((), diverted) = join(hooks, sinks.call(&records, &outcomes)).await;
        let ended = outcomes.into_iter().enumerate();
        let ended =
            ended.map(|(at, outcome)| RecordEnd { outcome, is_diverted: diverted.contains(&at) });
        let ended = ended.collect();
        (records, ended)
    }

    /// Processes the record of an event that has this key, once more: `left` was found under it. Returns its outcome and how
    /// long that took, without its sink; `None` if the event has no such record.
    pub(crate) async fn recover(
        &self,
        key: &Key,
        left: &IdempotencyRecord,
        invoked: &Arc<Invoked>,
        request_id: Option<&str>,
    ) -> Option<(Outcome, Duration)> {
        let context = invoked.context();
        let read = Event::read(invoked.payload(), &context.request_id);
        let claimed = left.provenance.as_ref().and_then(|provenance| provenance.record.as_deref());
        for (route, event) in self.share(read).ok()?.shares {
            // Its source is not there to wait for it, nor to keep an order. Without a claim it would be left as it is, and the
            // next recovery would run it again.
            let mut policy = route.policy.clone();
            policy.on_conflict = OnConflict::Return;
            policy.on_outage = OnOutage::Return;
            let records = route.records(&event);
            let extraction =
                Extraction { operation: &route.prepared, tenant: context.tenant_id.as_deref() };
            // Several records of an event that is kept whole may have the key: the claimed one goes first.
            let mut by_claim: Vec<_> = records.iter().collect();
            by_claim.sort_by_key(|record| claimed != Some(record.id.label()));
            let delivery = by_claim.into_iter().find_map(|record| {
                // Whatever the limit is by now: without the payload, no later run could try again.
                let kept = left.payload.clone();
                let is_cause = route.source.about().is_cause_of_invocation;
                let delivered = invoked.delivers(record, is_cause).kept(kept);
                let delivery = route.delivery(record, delivered, &extraction);
                (delivery.work.key() == Some(key)).then_some((record, delivery))
            });
            let Some((record, delivery)) = delivery else { continue };
            let keys = claimed_keys(&route.settings, std::slice::from_ref(&delivery));
            let begun = self.engine.clock().now();
            let batch = Batch::for_operation(&route.prepared.name, &policy, &route.prepared.pace)
                .within(request_id, invoked.deadline())
                .leaving(time_for_sinks(&route.settings))
                .with(vec![delivery.in_group(None)]);
            let outcomes = self.engine.run(batch).await;
            let took = self.engine.clock().now().since(begun);
            let span = (begun, invoked.deadline());
            let sinks = Sinks::new(&self.engine, route, &extraction, keys, span).in_recovery();
            sinks.call(std::slice::from_ref(record), &outcomes).await;
            return outcomes.into_iter().next().map(|outcome| (outcome, took));
        }
        None
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

/// The records of a divided list with their outcomes, in the list's order: each item is one record.
fn in_order<'s, 'e: 's>(
    parts: impl Iterator<Item = (&'s Event<'e>, (Vec<Record<'e>>, Vec<RecordEnd>))>,
) -> (Vec<Record<'e>>, Vec<RecordEnd>) {
    let all = parts.flat_map(|(share, (records, outcomes))| {
        let places = share.places.iter().flatten().copied();
        places.zip(records.into_iter().zip(outcomes))
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, record)| record).unzip()
}

/// Each operation with its source.
impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let routes = self.0.routes.iter();
        f.debug_map().entries(routes.map(|route| (&route.prepared.name, route.describe()))).finish()
    }
}

impl Function {
    /// Handles events until Lambda ends the process: `lambda_runtime::run(self)`. Give the function to
    /// `lambda_runtime` itself to put layers around it, or to `run_concurrent` on Managed Instances.
    ///
    /// # Errors
    /// Lambda's Runtime API does not answer.
    pub async fn serve(self) -> Result<(), lambda_runtime::Error> {
        lambda_runtime::run(self).await
    }
}

impl Service<LambdaEvent<Box<RawValue>>> for Function {
    type Response = Box<RawValue>;
    type Error = InvocationError;
    type Future = BoxFuture<'static, Result<Box<RawValue>, InvocationError>>;

    /// Always ready: the call itself handles an outage of the store.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), InvocationError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, event: LambdaEvent<Box<RawValue>>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.invoke(event).await })
    }
}
