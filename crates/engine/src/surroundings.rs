//! The sources of the machine's [`Host`]: the user's code for each record, and the engine
//! that the invocations of this process share, with the workers that claim.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use lambda_idempotency_core::{
    admission::Held,
    clock::{Clock, Timestamp},
    contained::Contained,
    effects::{Collector, EffectsKind},
    outbox::{PublishError, Sender},
    outcome::{NotStarted, Outcome},
    policy::{Mode, Policy},
    record::{EntropyError, IdempotencyRecord, Json, Owner, Provenance, Status, Worker},
    store::{Store, StoreError},
};
use lambda_idempotency_keys::Key;

use crate::{
    call::{Call, History, RecordId, Shared, Subject},
    completed::Completed,
    delivered::Delivered,
    delivery::{Delivery, Job, Pace, Work},
    machine::{Carried, Handling, Host, NewRecord},
    observe::Observers,
    running::{Due, HandlerCall, Latest, Polled, RunningHandlers},
    steps::{KeptSteps, Refusal},
};

/// A record, beside what the machine knows of it.
struct RecordSlot<'a> {
    record: RecordId,
    delivered: Delivered,
    key: Option<Key>,
    /// The identity of a record that has no key.
    identity: Option<Key>,
    /// Until the handler starts. It holds the user's payload.
    job: Contained<Job<'a>>,
    /// The slot in which its handler runs.
    handler: Option<usize>,
    /// The steps and messages of its call, from when the handler is started.
    shared: Option<Shared>,
    /// When its handler was started, and when it returned.
    times: (Option<Timestamp>, Option<Timestamp>),
    outcome: Option<Outcome>,
}

/// The parts of attempts that an operation keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// Claims with their steps, and completions with their messages.
    All,
    /// Completions only, since nothing is claimed.
    Completions,
    /// Nothing.
    Nothing,
}

/// The outcome of a record without one, which cannot happen.
const NEVER: Outcome = Outcome::Returned(NotStarted::Deadline);

/// The surroundings of one batch.
pub(crate) struct Surroundings<'a> {
    parts: &'a EngineParts,
    operation: &'a str,
    /// The worker that claims in this invocation.
    worker: Arc<Worker>,
    pace: &'a Pace,
    /// Which effects calls collect, if the operation is transactional.
    effects: Option<EffectsKind>,
    /// The parts of an attempt that are kept.
    keeps: Keeps,
    slots: Vec<RecordSlot<'a>>,
    running: RunningHandlers<'a>,
    cache_hits: usize,
}

impl<'a> Surroundings<'a> {
    pub(crate) fn new(
        parts: &'a EngineParts,
        operation: &'a str,
        request_id: Option<&str>,
        pace: &'a Pace,
        effects: Option<EffectsKind>,
        records: usize,
    ) -> Self {
        let slots = Vec::with_capacity(records);
        let running = RunningHandlers::default();
        Self {
            parts,
            operation,
            worker: parts.workers.within(request_id),
            pace,
            effects,
            keeps: Keeps::All,
            slots,
            running,
            cache_hits: 0,
        }
    }

    /// The parts of an attempt that are kept, by this policy, and how many handlers run at once.
    pub(crate) fn keeping(mut self, policy: &Policy) -> Self {
        self.keeps = match policy.mode {
            Mode::Optimistic => Keeps::Completions,
            Mode::Mutex => Keeps::Nothing,
            _ => Keeps::All,
        };
        self.running.limit(policy.concurrency.min(self.slots.capacity()));
        self
    }

    /// Keeps what the machine need not know of a delivery; returns the rest.
    pub(crate) fn take_in(&mut self, mut delivery: Delivery<'a>) -> NewRecord<'a> {
        let kept = delivery.delivered.take_kept();
        let (ask, identity, job) = delivery.work.ask(delivery.group, delivery.receives);
        self.slots.push(RecordSlot {
            record: delivery.record,
            delivered: delivery.delivered,
            key: ask.key.clone(),
            identity,
            job,
            handler: None,
            shared: None,
            times: (None, None),
            outcome: None,
        });
        NewRecord { lets_pass: delivery.lets_pass, kept, ..ask }
    }

    #[expect(clippy::indexing_slicing, reason = "records are numbered as `slots` is")]
    fn slot(&mut self, at: usize) -> &mut RecordSlot<'a> {
        &mut self.slots[at]
    }

    /// Starts the handler of a record, unless that has been done.
    pub(crate) fn start(&mut self, at: usize, held: Option<&Held>, stop: Timestamp) {
        let (clock, operation) = (Arc::clone(&self.parts.clock), self.operation);
        let effects = self.effects.filter(|_| held.is_some());
        let has_opentelemetry_fields = self.parts.has_opentelemetry_fields;
        let has_sender = self.parts.sender.is_some();
        let keeps = self.keeps;
        let slot = self.slot(at);
        let Some(job) = slot.job.take() else { return };
        let shared = Shared::default();
        slot.shared = Some(shared.clone());
        let effects = effects.map(|kind| Arc::new(Collector::new(kind)));
        let publishes = match (held, keeps) {
            (_, Keeps::Nothing) => Err(PublishError::Mutex),
            _ if !has_sender => Err(PublishError::NoSender),
            (Some(_), Keeps::All) => Ok(()),
            _ => Err(PublishError::Unprotected),
        };
        let record = held.map(|held| &held.record);
        let steps = match (record, keeps) {
            (_, Keeps::Completions) => KeptSteps::Refused(Refusal::Unclaimed),
            (_, Keeps::Nothing) => KeptSteps::Refused(Refusal::Mutex),
            (Some(record), Keeps::All) => KeptSteps::Stored(record.steps.clone()),
            _ => KeptSteps::NotStored,
        };
        let history = record.map_or_else(|| History::none(clock.now()), History::of);
        let lease = record.and_then(|record| record.lease_until);
        // The key of a mutex is not that of the work.
        let is_mutex = keeps == Keeps::Nothing;
        let attempt = held.filter(|_| is_mutex).map(|held| held.claim.owner);
        let subject = Subject { key: slot.key.clone(), identity: slot.identity.clone(), attempt };
        let (record, delivered) = (slot.record.clone(), slot.delivered.clone());
        let call =
            Call::new(subject, record, history, Some(stop), Arc::clone(&clock), delivered, shared)
                .collecting(effects)
                .with_steps(steps)
                .publishing(publishes);
        let latest = Latest { lease, stop };
        let due = Due { operation, job, call, latest, clock, has_opentelemetry_fields };
        let handler = self.running.start(at, HandlerCall::new(due));
        let now = self.parts.clock.now();
        let slot = self.slot(at);
        slot.handler = Some(handler);
        slot.times.0 = Some(now);
    }

    /// The handler of a record has returned.
    pub(crate) fn returned(&mut self, at: usize, now: Timestamp) {
        self.slot(at).times.1 = Some(now);
    }

    /// When the handler of a record was started, and when it returned.
    pub(crate) fn times(&self, at: usize) -> (Option<Timestamp>, Option<Timestamp>) {
        self.slots.get(at).map_or((None, None), |slot| slot.times)
    }

    /// How often a key was found in the cache of this process.
    pub(crate) const fn cache_hits(&self) -> usize {
        self.cache_hits
    }

    /// Begins another poll of the batch.
    pub(crate) fn begin_turn(&mut self) {
        self.running.begin_turn();
    }

    /// Polls one handler.
    pub(crate) fn poll_handler(&mut self, context: &mut Context<'_>) -> Poll<Polled> {
        let polled = self.running.poll_one(context);
        if let Poll::Ready(Polled::Ended(at, ..)) = &polled {
            self.slot(*at).handler = None;
        }
        polled
    }

    pub(crate) fn record(&self, at: usize) -> Option<(&RecordId, Option<&Key>)> {
        self.slots.get(at).map(|slot| (&slot.record, slot.key.as_ref()))
    }

    /// Keeps the outcome of a record, and drops its payload if it was not processed.
    pub(crate) fn set_outcome(&mut self, at: usize, outcome: Outcome) {
        let slot = self.slot(at);
        slot.job = Contained::none();
        slot.outcome = Some(outcome);
    }

    /// The outcomes of the first `records`, in order.
    pub(crate) fn take_outcomes(&mut self, records: usize) -> Vec<Outcome> {
        let slots = self.slots.drain(..).take(records);
        slots.map(|slot| slot.outcome.unwrap_or(NEVER)).collect()
    }
}

impl Host for Surroundings<'_> {
    fn owner(&mut self) -> Result<Owner, EntropyError> {
        Owner::random()
    }

    fn provenance(&self, at: usize, now: Timestamp) -> Option<Provenance> {
        let record = &self.slots.get(at)?.record;
        let provenance = Provenance::new(now, Arc::clone(&self.worker));
        Some(provenance.with_record(record.source, Arc::clone(record.shown())))
    }

    fn pace(&self) -> Duration {
        self.pace.estimate()
    }

    fn took(&mut self, took: Duration) {
        self.pace.learn(took);
    }

    fn learn(&mut self, key: &Key, record: &IdempotencyRecord, now: Timestamp) {
        if record.status == Status::Completed && record.outbox.is_none() {
            // It is not written again, and is kept for long: where its claim came from is for people.
            let mut record = record.clone();
            record.provenance = None;
            self.parts.completed.keep(key, &Arc::new(record), now);
        }
    }

    fn known(&mut self, key: &Key, now: Timestamp) -> Option<Arc<IdempotencyRecord>> {
        let known = self.parts.completed.get(key, now);
        self.cache_hits += usize::from(known.is_some());
        known
    }

    fn renewed(&mut self, at: usize, lease_until: Timestamp) {
        if let Some(handler) = self.slot(at).handler {
            self.running.renewed(handler, lease_until);
        }
    }

    fn steps_stored(&mut self, at: usize, steps: &Json) {
        if let Some(shared) = &self.slot(at).shared {
            shared.steps_are_in_store(steps);
        }
    }

    fn steps_refused(&mut self, at: usize, error: &StoreError) {
        if let Some(shared) = &self.slot(at).shared {
            shared.steps_are_refused(error);
        }
    }

    fn stop(&mut self, at: usize) -> Option<Timestamp> {
        let handler = self.slot(at).handler.take()?;
        self.running.stop(handler)
    }
}

impl<'a> Work<'a> {
    /// The part of the work that the machine has to know, its identity if it has no key, and its
    /// handler.
    fn ask(
        self,
        group: Option<Arc<str>>,
        receives: u32,
    ) -> (NewRecord<'a>, Option<Key>, Contained<Job<'a>>) {
        let new = |handling| NewRecord {
            key: None,
            fingerprint: None,
            payload: None,
            group,
            receives,
            handling,
            lets_pass: false,
            kept: None,
        };
        match self {
            Self::Keyed { key, fingerprint, payload, job } => {
                let (key, payload) = (Some(key), Some(payload));
                let ask = NewRecord { key, fingerprint, payload, ..new(Handling::Keyed) };
                (ask, None, Contained::new(job))
            }
            Self::Unprotected { identity, job } => {
                (new(Handling::Unprotected), Some(identity), Contained::new(job))
            }
            Self::Reject(rejection) => {
                (new(Handling::Reject(Carried(rejection))), None, Contained::none())
            }
        }
    }
}

/// The parts of an engine, which its clones share.
#[derive(Clone)]
pub(crate) struct EngineParts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Sends the messages that calls publish.
    pub(crate) sender: Option<Arc<dyn Sender>>,
    pub(crate) observers: Observers,
    /// Whether the spans of handlers have the fields of OpenTelemetry.
    pub(crate) has_opentelemetry_fields: bool,
    pub(crate) completed: Arc<Completed>,
    /// Whether nothing is claimed: each record runs.
    pub(crate) is_unprotected: bool,
    pub(crate) application: Option<Arc<str>>,
    /// The function, for the provenance of claims.
    pub(crate) workers: Arc<Workers>,
}

/// The function, and its worker in the invocation that was asked for last. Calls of `run` are a batch each, and a program
/// may have very many at once: those of one invocation share its worker, and so do the records that they complete.
#[derive(Default)]
pub(crate) struct Workers {
    function: Arc<Worker>,
    last: Mutex<Weak<Worker>>,
}

impl Workers {
    pub(crate) fn of(function: Worker) -> Self {
        Self { function: Arc::new(function), last: Mutex::default() }
    }

    /// The function in the invocation of this request id, if there is one.
    pub(crate) fn within(&self, request_id: Option<&str>) -> Arc<Worker> {
        let Some(id) = request_id else { return Arc::clone(&self.function) };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |worker: &Arc<Worker>| worker.request_id.as_deref() == Some(id);
        if let Some(worker) = last.upgrade().filter(is_same) {
            return worker;
        }
        let worker = Arc::new(Worker::clone(&self.function).with_request_id(id));
        *last = Arc::downgrade(&worker);
        worker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claims_of_an_invocation_share_their_worker() {
        let workers = Workers::of(Worker::default());
        let (one, same) = (workers.within(Some("r-1")), workers.within(Some("r-1")));
        assert!(Arc::ptr_eq(&one, &same));
        let (next, none) = (workers.within(Some("r-2")), workers.within(None));
        let id = |worker: &Arc<Worker>| worker.request_id.as_deref().map(str::to_owned);
        assert_eq!(
            [one, next, none].each_ref().map(id),
            [Some("r-1".into()), Some("r-2".into()), None]
        );
    }
}
