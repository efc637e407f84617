//! The driver of a [`Machine`]: it makes the calls of the store, polls the handlers, reports
//! to observers and watches the clock. It decides nothing. A call of the store that panics fails its own members only:
//! the store's author has made a mistake, but the other records of the batch are not to blame.
//!
//! Nothing is spawned: the whole batch is one future, and ends with it.

use std::{
    collections::BTreeMap,
    future::{pending, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    contained::{Ended, run},
    outbox::{OutgoingMessage, SendError, calling},
    outcome::Outcome,
    record::IdempotencyRecord,
    store::{Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

use crate::{
    delivery::Batch,
    machine::{Action, CallId, Input, Machine, RecordOutcome, Setting},
    observe::{BatchEnd, Report, StoreCall, StorePurpose, errors},
    running::{Polled, time_of_polled_handler},
    surroundings::{EngineParts, Surroundings},
};

/// The longest sleep: what the wall clock said is not trusted for longer, since it may be put right
/// meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A call of the store, or of the sender, that has ended.
struct FinishedCall {
    answer: Input,
    /// The report of a call of the store.
    of_store: Option<OfStore>,
}

/// A call of the store that has ended.
struct OfStore {
    purpose: StorePurpose,
    members: usize,
    since: Timestamp,
}

/// One batch on its way.
pub(crate) struct Driver<'a> {
    parts: &'a EngineParts,
    /// The report that observers get at the end.
    end: BatchEnd<'a>,
    /// How many records had which outcome, for the log.
    outcomes: BTreeMap<&'static str, usize>,
    begun: Timestamp,
    machine: Machine<'a>,
    surroundings: Surroundings<'a>,
    calls: FuturesUnordered<BoxFuture<'static, FinishedCall>>,
    timer: Option<(Timestamp, BoxFuture<'static, ()>)>,
    /// The machine had nothing to do when it was asked last, and nothing has happened since.
    rests: bool,
    gives_way: bool,
    /// For how long handlers were polled since the machine was told last.
    polled: Duration,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(parts: &'a EngineParts, batch: Batch<'a>, is_redelivered: bool) -> Self {
        let now = parts.clock.now();
        let setting = Setting {
            operation: batch.operation,
            application: parts.application.clone(),
            policy: batch.policy,
            deadline: batch.invocation_deadline,
            work_end: time_of_polled_handler().map(|left| now.plus(left)),
            time_after: batch.time_after,
            is_redelivered,
        };
        let records = batch.deliveries.len();
        let source = batch.deliveries.first().map_or("", |delivery| delivery.record.source);
        let (id, pace) = (batch.request_id, batch.pace);
        let effects = match batch.policy.mode.commits_effects() {
            true => parts.store.capabilities().effects,
            false => None,
        };
        let mut surroundings =
            Surroundings::new(parts, batch.operation, id, pace, effects, records)
                .keeping(batch.policy);
        let asks: Vec<_> =
            batch.deliveries.into_iter().map(|delivery| surroundings.take_in(delivery)).collect();
        let machine = Machine::new(setting, asks.into_iter(), now, &mut surroundings);
        Self {
            parts,
            end: BatchEnd::new(batch.operation, source, records),
            outcomes: BTreeMap::new(),
            begun: now,
            machine,
            surroundings,
            calls: FuturesUnordered::new(),
            timer: None,
            rests: false,
            gives_way: false,
            polled: Duration::ZERO,
        }
    }

    fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    /// Does what the machine says.
    fn act(&mut self) {
        while let Some(action) = self.machine.next(self.now(), &mut self.surroundings) {
            match action {
                Action::Read { call, keys, deadline } => {
                    let store = Arc::clone(&self.parts.store);
                    let (purpose, members) = (StorePurpose::Look, keys.len());
                    self.call(purpose, members, async move {
                        let found = read_contained(&*store, &keys, deadline).await;
                        Input::Read { call, found }
                    });
                }
                Action::Write { call, mut writes, deadline } => {
                    let store = Arc::clone(&self.parts.store);
                    let (purpose, members) = (StorePurpose::of(&writes), writes.len());
                    self.call(purpose, members, async move {
                        let verdicts = write_contained(&*store, &mut writes, deadline).await;
                        Input::Written { call, writes, verdicts }
                    });
                }
                Action::Send { call, messages, deadline } => self.send(call, messages, deadline),
                Action::GiveWay => self.gives_way = true,
                Action::Start { at, held, stop } => {
                    self.surroundings.start(at, held.as_deref(), stop);
                }
                Action::Report(ended) => self.report(ended),
            }
        }
    }

    /// Makes a call of the store.
    fn call(
        &self,
        purpose: StorePurpose,
        members: usize,
        call: impl Future<Output = Input> + Send + 'static,
    ) {
        let since = self.now();
        let of_store = Some(OfStore { purpose, members, since });
        self.calls.push(Box::pin(call.map(move |answer| FinishedCall { answer, of_store })));
    }

    /// Hands messages to the sender.
    fn send(&self, call: CallId, messages: Vec<OutgoingMessage>, deadline: Timestamp) {
        let Some(sender) = self.parts.sender.clone() else {
            let error = SendError::new(
                "there is no sender: set the one by which they were published with `Idempotency::with_sender`",
            );
            let answers = messages.iter().map(|_| Err(error.clone())).collect();
            let answer = Input::Sent { call, answers };
            return self.calls.push(Box::pin(ready(FinishedCall { answer, of_store: None })));
        };
        let clock = Arc::clone(&self.parts.clock);
        self.calls.push(Box::pin(async move {
            let answers = calling::send(&*sender, &*clock, &messages, deadline).await;
            FinishedCall { answer: Input::Sent { call, answers }, of_store: None }
        }));
    }

    /// Reports a call of the store to the observers.
    fn tell_of(&self, called: &FinishedCall) {
        let FinishedCall { answer, of_store: Some(called) } = called else { return };
        if !self.parts.observers.are_any() {
            return;
        }
        let call = StoreCall {
            operation: self.end.operation,
            source: self.end.source,
            purpose: called.purpose,
            members: called.members,
            took: self.now().since(called.since),
            errors: &errors(answer),
        };
        self.parts.observers.tell(|observer| observer.store_called(&call));
    }

    /// Reports to the observers that all records have their outcomes.
    fn tell_end(&mut self) {
        if self.end.records > 1 {
            self.parts.observers.log_end(&self.end, &self.outcomes);
        }
        if self.end.records > 0 && self.parts.observers.are_any() {
            self.end.at = self.now();
            self.end.took = self.end.at.since(self.begun);
            self.end.cache_hits = self.surroundings.cache_hits();
            self.parts.observers.tell(|observer| observer.batch_ended(&self.end));
        }
    }

    /// Reports an outcome to the observers. If one panics, the record has its outcome all the same.
    fn report(&mut self, ended: RecordOutcome) {
        if let Some((record, key)) = self.surroundings.record(ended.at) {
            let mut report = Report::new(self.end.operation, record, key, &ended.outcome);
            let (started, returned) = self.surroundings.times(ended.at);
            report.waited = started.map(|started| started.since(self.begun));
            report.ran_for = ended.ran_for;
            report.settled_in = returned.map(|returned| self.now().since(returned));
            report.unrecorded = ended.unrecorded.as_deref().map(|error| &error.0);
            if let Some(held) = &ended.held {
                report.failed_attempts = held.failed_attempts();
                report.lost_attempts = held.lost_attempts();
            }
            self.parts.observers.report(&report);
        }
        if self.end.records > 1 {
            *self.outcomes.entry(ended.outcome.label()).or_default() += 1;
        }
        self.surroundings.set_outcome(ended.at, ended.outcome.0);
    }

    /// The next event: answers of the store first, then handlers.
    fn poll_events(&mut self, context: &mut Context<'_>) -> Poll<Input> {
        match self.calls.poll_next_unpin(context) {
            Poll::Ready(Some(called)) => {
                self.tell_of(&called);
                return Poll::Ready(called.answer);
            }
            // No call is left that others could help along.
            Poll::Ready(None) => self.gives_way = false,
            Poll::Pending => {}
        }
        if self.gives_way {
            return Poll::Pending;
        }
        let mut last = self.now();
        while let Poll::Ready(polled) = self.surroundings.poll_handler(context) {
            let now = self.now();
            self.polled += now.since(last);
            last = now;
            match polled {
                Polled::Ended(at, ended, since, steps) => {
                    self.surroundings.returned(at, now);
                    if let Some(steps) = steps {
                        // The completion carries them, if the handler has ended.
                        let input = Input::Steps { at, steps };
                        self.machine.handle(input, now, &mut self.surroundings);
                    }
                    let polled = std::mem::take(&mut self.polled);
                    return Poll::Ready(Input::Ended { at, ended, since, polled });
                }
                Polled::Pending(at, Some(steps)) => {
                    let polled = std::mem::take(&mut self.polled);
                    self.machine.handle(Input::Polled { polled }, now, &mut self.surroundings);
                    return Poll::Ready(Input::Steps { at, steps });
                }
                Polled::Pending(..) if self.machine.must_flush(self.polled) => {
                    let polled = std::mem::take(&mut self.polled);
                    return Poll::Ready(Input::Polled { polled });
                }
                Polled::Pending(..) => {}
            }
        }
        Poll::Pending
    }

    /// Whether the machine still has nothing to do: the request of a call wakes the batch several times before it is
    /// answered. A clock that steps back is noticed by the timer, which does not sleep for long.
    fn still_rests(&self) -> bool {
        let is_due = |(due, _): &(Timestamp, _)| self.now() >= *due;
        self.rests && !self.timer.as_ref().is_some_and(is_due)
    }

    /// Sleeps until it is time to look at the clock again.
    fn set_timer(&mut self, now: Timestamp) {
        match (self.machine.wake(now), &self.timer) {
            (None, _) => self.timer = None,
            (Some(wake), Some((due, _))) if *due == wake => {}
            (Some(wake), _) => {
                let sleep = self.parts.clock.sleep(wake.since(now).min(LONGEST_SLEEP));
                self.timer = Some((wake, sleep));
            }
        }
    }

    /// Whether it is time to look at the clock again.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some((_, timer)) = &mut self.timer else { return Poll::Pending };
        timer.as_mut().poll(context).map(|()| self.timer = None)
    }
}

impl Future for Driver<'_> {
    type Output = Vec<Outcome>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.surroundings.begin_turn();
        this.rests = this.still_rests();
        loop {
            if !this.rests {
                this.act();
                if this.machine.is_done() {
                    this.tell_end();
                    return Poll::Ready(this.surroundings.take_outcomes(this.end.records));
                }
            }
            if let Poll::Ready(input) = this.poll_events(context) {
                this.rests = false;
                let now = this.now();
                this.machine.handle(input, now, &mut this.surroundings);
                continue;
            }
            if std::mem::take(&mut this.gives_way) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !this.rests {
                let now = this.now();
                if this.machine.rest(now, &mut this.surroundings) {
                    continue;
                }
                this.set_timer(now);
                this.rests = true;
            }
            if this.poll_timer(context).is_pending() {
                return Poll::Pending;
            }
            this.rests = false;
        }
    }
}

/// The answer to a read of a key.
pub(crate) type Found = Result<Option<IdempotencyRecord>, StoreError>;

/// Writes. A record whose payload leaves no room for the rest is written without it, and later writes carry none on: it is
/// then not recoverable, which is what it would be without the setting.
pub(crate) async fn write_contained(
    store: &dyn Store,
    writes: &mut [Write],
    deadline: Timestamp,
) -> Vec<Verdict> {
    let mut verdicts = write_once(store, writes, deadline).await;
    let too_large = writes.iter_mut().zip(&mut verdicts).filter_map(|(write, verdict)| {
        *write = without_payload(write, verdict)?;
        Some((verdict, write.clone()))
    });
    let (refused, smaller): (Vec<_>, Vec<_>) = too_large.unzip();
    if !smaller.is_empty() {
        let answers = write_once(store, &smaller, deadline).await;
        refused.into_iter().zip(answers).for_each(|(refused, answer)| *refused = answer);
    }
    verdicts
}

/// The same write without the payload, if it was too large with it.
fn without_payload(write: &Write, verdict: &Verdict) -> Option<Write> {
    let Verdict::Unknown(error) = verdict else { return None };
    if error.kind() != StoreErrorKind::TooLarge {
        return None;
    }
    let mut smaller = write.clone();
    smaller.record.as_mut()?.payload.take()?;
    tracing::warn!(
        key = %write.key,
        %error,
        "a record is processed, but the store has no room to keep it with its claim: if its worker dies and nothing \
         delivers it again, it cannot be recovered; lower the limit of `.recoverable(..)`"
    );
    Some(smaller)
}

/// After a panic, nothing is known of any of the writes.
async fn write_once(store: &dyn Store, writes: &[Write], deadline: Timestamp) -> Vec<Verdict> {
    match run(|| store.write(writes, deadline), pending()).await {
        Ended::Through(verdicts) => verdicts,
        _ => writes.iter().map(|_| Verdict::Unknown(panicked())).collect(),
    }
}

/// Reads; after a panic, each key has an error.
pub(crate) async fn read_contained(
    store: &dyn Store,
    keys: &[Key],
    deadline: Timestamp,
) -> Vec<Found> {
    match run(|| store.read(keys, deadline), pending()).await {
        Ended::Through(found) => found,
        _ => keys.iter().map(|_| Err(panicked())).collect(),
    }
}

fn panicked() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "the store panicked; the message of the panic is in the function's log",
    )
}
