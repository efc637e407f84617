//! The handlers that run, polled one at a time: each begins only in time, and its panics harm no other record.
//!
//! A completion must not wait for other handlers, so the driver looks after each poll of a handler
//! whether something else comes first. A stream of futures polls all that were woken before it comes
//! back. Here, each handler has a slot with its own waker, and [`RunningHandlers::poll_one`] polls the one
//! that was woken first. Slots and wakers are used again for later handlers.
//!
//! Between being started and its first poll a handler waits for those before it, and maybe for a
//! process that was stopped and continued. So the clock is asked again at the very moment when it
//! would begin: one whose lease is over by then is not called at all.
//!
//! A handler may run a batch itself. That has to end before the handler is stopped: otherwise its handlers would be dropped
//! with this one, which counts as the death of their process.

mod sync;
mod waking;

use std::{
    cell::RefCell,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake as _, Waker, ready},
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

use self::waking::{HandlerWaker, Woken};
use crate::{
    call::{Call, Shared},
    delivered::Messaging,
    delivery::{Job, Returned},
    machine::{Collected, HandlerEnd},
};

/// The handlers that were started and have not ended.
#[derive(Default)]
pub(crate) struct RunningHandlers<'a> {
    /// How many run at once, at most, as far as is known: there is room for them once the first is started.
    handlers: usize,
    slots: Vec<HandlerSlot<'a>>,
    free: Vec<usize>,
    woken: Arc<Woken>,
    /// Counts the polls of the batch.
    turn: u64,
    /// Slots that were woken after they had been polled in this turn. They wait for the next one, so
    /// that a handler which wakes itself keeps neither the others nor the runtime waiting.
    again: Vec<usize>,
}

struct HandlerSlot<'a> {
    /// The record of the handler.
    at: usize,
    handler: Option<HandlerCall<'a>>,
    /// The turn in which the handler was polled last.
    polled: Option<u64>,
    task: Arc<HandlerWaker>,
    waker: Waker,
}

/// The end of a poll of a handler.
pub(crate) enum Polled {
    /// It has not ended: its record, and its steps if one has ended.
    Pending(usize, Option<Json>),
    /// It has ended: of which record, how, and since when it ran, if it was called; and its steps if one has
    /// ended.
    Ended(usize, HandlerEnd, Option<Timestamp>, Option<Json>),
}

impl<'a> RunningHandlers<'a> {
    /// So many handlers run at once, at most.
    pub(crate) const fn limit(&mut self, handlers: usize) {
        self.handlers = handlers;
    }

    /// Takes in the handler of record `at`; returns its slot. It is polled as if it had been woken.
    pub(crate) fn start(&mut self, at: usize, handler: HandlerCall<'a>) -> usize {
        if self.slots.capacity() == 0 {
            self.slots.reserve_exact(self.handlers);
            self.free.reserve_exact(self.handlers);
            self.woken.reserve(self.handlers);
        }
        let handler = Some(handler);
        let number = self.free.pop().unwrap_or(self.slots.len());
        if let Some(slot) = self.slots.get_mut(number) {
            (slot.at, slot.handler, slot.polled) = (at, handler, None);
            slot.task.wake_by_ref();
        } else {
            let task = Arc::new(HandlerWaker::new(number, Arc::clone(&self.woken)));
            task.wake_by_ref();
            let waker = Waker::from(Arc::clone(&task));
            self.slots.push(HandlerSlot { at, handler, polled: None, task, waker });
        }
        number
    }

    /// Drops the handler in this slot. Says since when it ran, if it was called.
    pub(crate) fn stop(&mut self, number: usize) -> Option<Timestamp> {
        let handler = self.slots.get_mut(number)?.handler.take()?;
        self.free.push(number);
        handler.since()
    }

    /// The lease of the handler in this slot was renewed.
    pub(crate) fn renewed(&mut self, number: usize, lease_until: Timestamp) {
        if let Some(handler) = self.slots.get_mut(number).and_then(|slot| slot.handler.as_mut()) {
            handler.renewed(lease_until);
        }
    }

    /// The batch is polled anew: each handler may be polled once more.
    pub(crate) fn begin_turn(&mut self) {
        self.turn += 1;
        if !self.again.is_empty() {
            self.woken.put_back(self.again.drain(..));
        }
    }

    /// Polls the handler that was woken first. `Pending` if there is none that may be polled in this
    /// turn.
    pub(crate) fn poll_one(&mut self, context: &mut Context<'_>) -> Poll<Polled> {
        self.woken.wakes(context.waker());
        while let Some(number) = self.woken.next() {
            let Some(slot) = self.slots.get_mut(number) else { continue };
            if slot.polled == Some(self.turn) {
                self.again.push(number);
                continue;
            }
            slot.task.begin_poll();
            let Some(handler) = &mut slot.handler else { continue };
            slot.polled = Some(self.turn);
            let polled = Pin::new(&mut *handler).poll(&mut Context::from_waker(&slot.waker));
            return Poll::Ready(match polled {
                Poll::Pending => Polled::Pending(slot.at, handler.take_steps()),
                Poll::Ready(ended) => {
                    let (since, steps) = (handler.since(), handler.take_steps());
                    slot.handler = None;
                    self.free.push(number);
                    Polled::Ended(slot.at, ended, since, steps)
                }
            });
        }
        if !self.again.is_empty() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

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
        let collected = close(effects, shared);
        // Without all of its effects the work is not done.
        let answer = answer.and_then(|returned| Ok((returned, collected?)));
        if let Err(failure) = &answer {
            mark_failed(span, failure.error_type());
        }
        Poll::Ready(HandlerEnd::Through(answer))
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
    let some = |attempts| (attempts > 0).then_some(attempts);
    macro_rules! span {
        ($($more:tt)*) => {
            tracing::info_span!(
                target: "lambda_idempotency::handler",
                "handler",
                source = record.source,
                record = record.label(),
                operation,
                key_hash = call.key_hash(),
                failed_attempts = some(call.failed_attempts()),
                lost_attempts = some(call.lost_attempts()),
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

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, poll_fn},
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering},
        },
        task::Wake,
        time::Duration,
    };

    use futures_util::task::noop_waker;
    use lambda_idempotency_core::clock::{BoxFuture, Clock, SystemClock};

    use super::*;
    use crate::{
        call::{Call, History, RecordId, Shared, Subject},
        delivered::Delivered,
        delivery::Returned,
    };

    type Work = BoxFuture<'static, Result<Returned, lambda_idempotency_core::failure::Failure>>;

    fn handler(work: impl FnOnce() -> Work + Send + 'static) -> HandlerCall<'static> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let subject = Subject { key: None, identity: None, attempt: None };
        let history = History::none(clock.now());
        let record = RecordId::new("test", "1");
        let call = Call::new(
            subject,
            record,
            history,
            None,
            Arc::clone(&clock),
            Delivered::default(),
            Shared::default(),
        );
        let latest = Latest { lease: None, stop: clock.now().plus(Duration::from_secs(60)) };
        let job = Box::new(|_| work());
        let due =
            Due { operation: "op", job, call, latest, clock, has_opentelemetry_fields: false };
        HandlerCall::new(due)
    }

    /// Which record was polled, and whether it ended.
    fn poll(running: &mut RunningHandlers<'_>) -> Option<(Option<usize>, bool)> {
        match running.poll_one(&mut Context::from_waker(&noop_waker())) {
            Poll::Pending => None,
            Poll::Ready(Polled::Pending(..)) => Some((None, false)),
            Poll::Ready(Polled::Ended(at, ..)) => Some((Some(at), true)),
        }
    }

    #[test]
    fn handlers_are_polled_one_at_a_time_in_the_order_of_their_starts() {
        let mut running = RunningHandlers::default();
        for at in [7, 8] {
            running.start(at, handler(|| Box::pin(async { Ok(Returned::Nothing) })));
        }
        assert_eq!(
            [poll(&mut running), poll(&mut running)],
            [7, 8].map(|at| Some((Some(at), true)))
        );
        assert_eq!(poll(&mut running), None);
    }

    #[test]
    fn a_handler_that_wakes_itself_is_polled_once_in_a_turn() {
        let mut running = RunningHandlers::default();
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let wakes_itself = poll_fn(move |context| {
            counted.fetch_add(1, Ordering::Relaxed);
            context.waker().wake_by_ref();
            Poll::Pending
        });
        running.start(0, handler(|| Box::pin(wakes_itself)));
        running.start(1, handler(|| Box::pin(async { Ok(Returned::Nothing) })));
        let turn = |running: &mut RunningHandlers<'_>| std::iter::from_fn(|| poll(running)).count();
        assert_eq!(turn(&mut running), 2, "itself, and the other one");
        for turns in 2..5 {
            running.begin_turn();
            assert_eq!((turn(&mut running), polls.load(Ordering::Relaxed)), (1, turns));
        }
    }

    #[test]
    fn a_handler_that_is_stopped_is_dropped_at_once_and_its_slot_used_again() {
        struct Dropped(Arc<AtomicUsize>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let drops = Arc::new(AtomicUsize::new(0));
        let dropped = Dropped(Arc::clone(&drops));
        let mut running = RunningHandlers::default();
        let slot = running.start(
            0,
            handler(|| {
                Box::pin(async move {
                    let _dropped = dropped;
                    pending().await
                })
            }),
        );
        assert_eq!(poll(&mut running), Some((None, false)));
        assert!(running.stop(slot).is_some(), "it was called");
        assert_eq!((drops.load(Ordering::Relaxed), running.stop(slot)), (1, None));
        let next = running.start(1, handler(|| Box::pin(async { Ok(Returned::Nothing) })));
        assert_eq!((next, poll(&mut running)), (slot, Some((Some(1), true))));
    }

    #[test]
    fn a_handler_that_is_woken_from_elsewhere_wakes_the_batch() {
        let mut running = RunningHandlers::default();
        let kept: Arc<Mutex<Option<Waker>>> = Arc::default();
        let keeps = Arc::clone(&kept);
        let waits = poll_fn(move |context| {
            *keeps.lock().unwrap() = Some(context.waker().clone());
            Poll::Pending
        });
        running.start(0, handler(|| Box::pin(waits)));
        let (waker, woken) = counting();
        let context = &mut Context::from_waker(&waker);
        assert!(running.poll_one(context).is_ready() && running.poll_one(context).is_pending());
        let before = woken.0.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| kept.lock().unwrap().take().unwrap().wake());
        });
        assert_eq!(woken.0.load(Ordering::Relaxed), before + 1);
        running.begin_turn();
        assert!(running.poll_one(context).is_ready());
    }

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counting() -> (Waker, Arc<Count>) {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        (Waker::from(Arc::clone(&count)), count)
    }
}
