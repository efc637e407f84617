//! A handler on its way: it begins only in time, and its panics harm no other record.
//!
//! Between being started and its first poll a handler waits for those before it, and maybe for a
//! process that was stopped and continued. So the clock is asked again at the very moment when it
//! would begin: one whose lease is over by then is not called at all.
//!
//! A handler may run a batch itself. That has to end before the handler is stopped: otherwise its handlers would be dropped
//! with this one, which counts as the death of their process.

use std::{
    cell::RefCell,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    contained::{Contained, caught, discard},
    effects::{CollectError, Collector},
    failure::Failure,
    outcome::NotStarted,
    record::Json,
};

use tracing::{Span, field};

use crate::{
    call::{Call, Shared},
    delivered::Messaging,
    delivery::{Job, Returned},
    machine::{Collected, HandlerEnd},
};

/// When a handler is stopped, by the clock of its engine.
struct Stop {
    at: Timestamp,
    clock: Arc<dyn Clock>,
}

thread_local! {
    /// The stop of the handler that this thread polls, the innermost one.
    static POLLED: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// How much time the handler has that this thread polls, if there is one.
pub(crate) fn time_of_polled_handler() -> Option<Duration> {
    let left = |stop: &Stop| stop.at.since(stop.clock.now());
    POLLED.try_with(|polled| polled.borrow().as_ref().map(left)).ok().flatten()
}

/// Notes the stop of the handler that is polled from now on; returns the one before.
fn note(stop: Option<Stop>) -> Option<Stop> {
    // Fails only while the thread is ending.
    POLLED.try_with(|polled| polled.replace(stop)).ok().flatten()
}

/// Until when a handler may begin.
pub(crate) struct Latest {
    /// The end of its lease when it was started, included; `None` if it runs without a claim.
    pub(crate) lease: Option<Timestamp>,
    /// When handlers are stopped; one that begins then is only cut off.
    pub(crate) stop: Timestamp,
}

impl Latest {
    fn missed(&self, renewed: Timestamp, now: Timestamp) -> Option<NotStarted> {
        if self.lease.is_some_and(|lease| now > lease.max(renewed)) {
            return Some(NotStarted::Lease);
        }
        (now >= self.stop).then_some(NotStarted::Deadline)
    }
}

/// The arguments of a handler, and when it is called at the latest.
pub(crate) struct Due<'a> {
    pub(crate) operation: &'a str,
    pub(crate) job: Job<'a>,
    pub(crate) call: Call,
    pub(crate) latest: Latest,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether its span has the fields of OpenTelemetry.
    pub(crate) has_opentelemetry_fields: bool,
}

/// One call of a handler, as a future, in a span of its own. It catches what the handler throws, also while
/// it is dropped.
pub(crate) struct HandlerCall<'a> {
    /// Until the first poll.
    due: Contained<Due<'a>>,
    /// From then on.
    running: Contained<BoxFuture<'a, Result<Returned, Failure>>>,
    begun: Option<Timestamp>,
    /// When it is stopped; `None` while it is polled.
    stop: Option<Stop>,
    /// The end of its lease, once that was renewed.
    renewed: Timestamp,
    /// From the first poll on.
    span: Span,
    /// The effects that its call collects, if its operation is transactional.
    effects: Option<Arc<Collector>>,
    /// The steps and messages of its call.
    shared: Shared,
}

impl<'a> HandlerCall<'a> {
    pub(crate) fn new(due: Due<'a>) -> Self {
        let renewed = Timestamp::from_millis(0);
        Self {
            stop: Some(Stop { at: due.latest.stop, clock: Arc::clone(&due.clock) }),
            effects: due.call.collector().cloned(),
            shared: due.call.shared().clone(),
            due: Contained::new(due),
            running: Contained::none(),
            begun: None,
            renewed,
            span: Span::none(),
        }
    }

    /// Since when it runs, if it was called.
    pub(crate) const fn since(&self) -> Option<Timestamp> {
        self.begun
    }

    /// Its lease was renewed.
    pub(crate) const fn renewed(&mut self, lease_until: Timestamp) {
        self.renewed = lease_until;
    }

    /// The text of all steps, if one has ended since this was asked last.
    pub(crate) fn take_steps(&self) -> Option<Json> {
        self.shared.take_steps()
    }

    fn advance(&mut self, context: &mut Context<'_>) -> Poll<HandlerEnd> {
        let Self { due, running, begun, renewed, span, effects, shared, .. } = self;
        let mut entered = None;
        if let Some(Due { operation, job, call, latest, clock, has_opentelemetry_fields }) =
            due.take()
        {
            let now = clock.now();
            if let Some(why) = latest.missed(*renewed, now) {
                return Poll::Ready(HandlerEnd::NotBegun(why));
            }
            *begun = Some(now);
            shared.polled_by(context.waker());
            *span = span_of(operation, &call, has_opentelemetry_fields);
            entered = Some(span.enter());
            *running = Contained::new(job(call));
        }
        let _entered = entered.unwrap_or_else(|| span.enter());
        let Some(future) = running.get_mut() else { return Poll::Pending };
        let answer = ready!(future.as_mut().poll(context));
        // Its destructors may log, too.
        *running = Contained::none();
        let ended = match (answer, close(effects, shared)) {
            (Ok(returned), Ok(collected)) if !collected.is_empty() => {
                HandlerEnd::Collected(returned, collected)
            }
            // Without all of its effects the work is not done.
            (Ok(_), Err(incomplete)) => HandlerEnd::Through(Err(incomplete.into())),
            (answer, _) => HandlerEnd::Through(answer),
        };
        if let HandlerEnd::Through(Err(failure)) = &ended {
            mark_failed(span, failure.error_type());
        }
        Poll::Ready(ended)
    }
}

/// Ends collecting, so that what is left of the handler can add nothing to what is committed.
fn close(effects: &mut Option<Arc<Collector>>, shared: &Shared) -> Result<Collected, CollectError> {
    let outbox = shared.close();
    // Its messages may have to be sent long after, and until then nothing may take the key over.
    let retention = shared.retention().filter(|_| outbox.is_none());
    let effects = effects.take().map_or(Ok(None), |effects| effects.close())?;
    Ok(Collected { effects, outbox, retention })
}

impl Future for HandlerCall<'_> {
    type Output = HandlerEnd;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<HandlerEnd> {
        let outer = note(self.stop.take());
        let polled = catch_unwind(AssertUnwindSafe(|| self.advance(context)));
        self.stop = note(outer);
        polled.unwrap_or_else(|thrown| {
            let failure = Failure::panicked(&*thrown);
            discard(thrown);
            caught(|| mark_failed(&self.span, failure.error_type()));
            self.running = Contained::none();
            Poll::Ready(HandlerEnd::Through(Err(failure)))
        })
    }
}

/// A handler that is stopped is dropped in its span.
impl Drop for HandlerCall<'_> {
    fn drop(&mut self) {
        let Self { running, span, effects, shared, .. } = self;
        caught(|| close(effects, shared));
        shared.end();
        if running.get().is_none() {
            return;
        }
        caught(|| {
            mark_failed(span, "stopped");
            let _entered = span.enter();
            *running = Contained::none();
        });
    }
}

/// The span of one call of a handler. It is made when the handler is called, and entered for each of
/// its polls. If no subscriber wants it, its fields are not evaluated.
///
/// A subscriber may format the fields when the span is made, although most handlers log nothing. So there are only those
/// that name the record, unless those of OpenTelemetry are asked for. Their names, with dots, are those of its conventions
/// for messaging, and of `tracing-opentelemetry`.
fn span_of(operation: &str, call: &Call, has_opentelemetry_fields: bool) -> Span {
    let record = call.record();
    macro_rules! span {
        ($($more:tt)*) => {
            tracing::info_span!(
                target: "lambda_idempotency::handler",
                "handler",
                source = record.source,
                record = record.label(),
                operation,
                key_hash = call.key_hash(),
                failed_attempts = call.failed_attempts(),
                lost_attempts = call.lost_attempts(),
                $($more)*
            )
        };
    }
    if !has_opentelemetry_fields {
        return span!();
    }
    span!(
        "otel.name" = field::display(SpanName { operation, messaging: call.messaging() }),
        "otel.kind" = if call.messaging().is_some() { "consumer" } else { "internal" },
        "otel.status_code" = field::Empty,
        "error.type" = field::Empty,
        "messaging.system" = call.messaging().map(|messaging| messaging.system),
        "messaging.operation.name" = call.messaging().map(|_| "process"),
        "messaging.operation.type" = call.messaging().map(|_| "process"),
        "messaging.destination.name" = call.messaging().and_then(|messaging| messaging.destination),
        "messaging.message.id" = call.messaging().and_then(|messaging| messaging.message_id),
        "trace.parent" = call.trace_context().map(field::display),
    )
}

/// The handler of this span has failed, with an error of this type. A span without the fields does not record it.
fn mark_failed(span: &Span, error_type: &str) {
    span.record("error.type", error_type);
    span.record("otel.status_code", "ERROR");
}

/// The name of the span for OpenTelemetry: the destination that is processed, or the operation's name.
struct SpanName<'a> {
    operation: &'a str,
    messaging: Option<Messaging<'a>>,
}

impl fmt::Display for SpanName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.messaging {
            Some(Messaging { destination: Some(destination), .. }) => {
                write!(f, "process {destination}")
            }
            Some(_) => f.write_str("process"),
            None => f.write_str(self.operation),
        }
    }
}
