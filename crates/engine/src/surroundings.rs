//! What the machine's [`Host`] answers from: the user's code for each record, and the engine that the
//! invocations of this process share.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::stream::{FuturesUnordered, StreamExt as _};

use lambda_idempotency_core::{
    admission::Held,
    clock::{BoxFuture, Timestamp},
    contained::Contained,
    outcome::{DivertReason, NotStarted, Outcome},
    record::{EntropyError, IdempotencyRecord, Owner, Provenance, Worker},
};
use lambda_idempotency_keys::Key;

use crate::{
    batch::{Delivery, Divert, Job, Pace, Work},
    call::{Call, History, RecordId, Subject},
    delivered::Delivered,
    handler::{Due, Handler, Latest},
    machine::{Ask, Carried, Enter, Host, Join, Side, Task},
    parts::Parts,
    process::{Joined, Leader, Place, Until, is_nested},
    running::{Polled, Running},
};

/// What is kept for a record beside what the machine knows of it.
struct Slot<'a> {
    record: RecordId,
    delivered: Delivered,
    key: Option<Key>,
    /// What stands for the key of a record that has none.
    identity: Option<Key>,
    /// Until it starts. It holds the user's payload.
    job: Contained<Job<'a>>,
    /// How the record is put aside, until that begins.
    divert: Option<Divert<'a>>,
    /// Where its handler runs.
    handler: Option<usize>,
    /// While this record has its key in this process.
    leader: Option<Leader>,
    outcome: Option<Outcome>,
}

/// What is said of a record that has no outcome, which cannot be.
const NEVER: Outcome = Outcome::Returned(NotStarted::Deadline);

/// Who followed, and what its leader knew.
pub(crate) type LeaderDone = (usize, Option<Arc<IdempotencyRecord>>);

/// The surroundings of one batch.
pub(crate) struct Surroundings<'a> {
    parts: &'a Parts,
    operation: &'a str,
    /// Who claims, in this invocation.
    worker: Arc<Worker>,
    pace: &'a Pace,
    slots: Vec<Slot<'a>>,
    running: Running<'a>,
    /// This invocation's place in the process, taken or waited for.
    place: Option<Place>,
    /// Whether a handler of this engine makes the invocation: it needs no place of its own.
    is_nested: bool,
    /// Other invocations of this process that have the key of a record that waits, once there was one.
    following: Option<FuturesUnordered<BoxFuture<'static, LeaderDone>>>,
}

impl<'a> Surroundings<'a> {
    pub(crate) fn new(
        parts: &'a Parts,
        operation: &'a str,
        request_id: Option<&str>,
        pace: &'a Pace,
        records: usize,
    ) -> Self {
        let worker = match request_id {
            Some(id) => Arc::new(Worker::clone(&parts.worker).with_request_id(id)),
            None => Arc::clone(&parts.worker),
        };
        let slots = Vec::with_capacity(records);
        let is_nested = is_nested(&parts.isolation);
        let running = Running::default();
        let (place, following) = (None, None);
        Self { parts, operation, worker, pace, slots, running, place, is_nested, following }
    }

    /// Keeps what the machine need not know of a delivery; returns the rest.
    pub(crate) fn take_in(&mut self, delivery: Delivery<'a>) -> Ask<'a> {
        let (ask, identity, job) = delivery.work.ask(delivery.group, delivery.receives);
        self.slots.push(Slot {
            record: delivery.record,
            delivered: delivery.delivered,
            key: ask.key.clone(),
            identity,
            job,
            handler: None,
            leader: None,
            outcome: None,
            divert: delivery.divert,
        });
        let can_be_put_aside = self.slots.last().is_some_and(|slot| slot.divert.is_some());
        Ask { can_be_put_aside, ..ask }
    }

    #[expect(clippy::indexing_slicing, reason = "records are numbered as `slots` is")]
    fn slot(&mut self, at: usize) -> &mut Slot<'a> {
        &mut self.slots[at]
    }

    /// Starts the handler of a record, unless that has been done.
    pub(crate) fn start(&mut self, at: usize, held: Option<&Held>, stop: Option<Timestamp>) {
        let (clock, operation) = (Arc::clone(&self.parts.clock), self.operation);
        let slot = self.slot(at);
        let Some(job) = slot.job.take() else { return };
        let record = held.map(|held| &held.record);
        let history = record.map_or_else(|| History::none(clock.now()), History::of);
        let lease = record.and_then(|record| record.lease_until);
        let subject = Subject { key: slot.key.clone(), identity: slot.identity.clone() };
        let (record, delivered) = (slot.record.clone(), slot.delivered.clone());
        let call = Call::new(subject, record, history, stop, Arc::clone(&clock), delivered);
        let due = Due { operation, job, call, latest: Latest { lease, stop }, clock };
        let handler = self.running.start(at, Handler::new(due));
        self.slot(at).handler = Some(handler);
    }

    /// Whether a leader is through that a record of this batch follows.
    pub(crate) fn poll_leaders(&mut self, context: &mut Context<'_>) -> Poll<LeaderDone> {
        match self.following.as_mut().map(|following| following.poll_next_unpin(context)) {
            Some(Poll::Ready(Some(done))) => Poll::Ready(done),
            _ => Poll::Pending,
        }
    }

    /// The batch is polled anew.
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

    /// Ends when the place that this invocation waits for may have become free.
    pub(crate) fn poll_place(&self, context: &Context<'_>) -> Poll<()> {
        self.place.as_ref().map_or(Poll::Pending, |place| place.poll_changed(context))
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

    fn join(&mut self, at: usize, key: &Key, now: Timestamp, until: Timestamp) -> Join {
        if self.slot(at).leader.is_some() {
            return Join::Leads;
        }
        match self.parts.single_flight.join(key, now, until) {
            Joined::Leader(leader) => {
                self.slot(at).leader = Some(leader);
                Join::Leads
            }
            Joined::Follower(follower) => {
                let (until, holds) = (follower.until(), follower.leader_holds());
                let done = async move { (at, follower.finished().await) };
                self.following.get_or_insert_default().push(Box::pin(done));
                Join::Follows { until, holds }
            }
        }
    }

    fn holds(&mut self, at: usize) {
        if let Some(leader) = &self.slot(at).leader {
            leader.holds();
        }
    }

    fn leave(&mut self, at: usize) {
        self.slot(at).leader = None;
    }

    fn learn(&mut self, at: usize, key: &Key, record: IdempotencyRecord, now: Timestamp) {
        let record = Arc::new(record);
        self.parts.completed.keep(key, &record, now);
        if let Some(leader) = &mut self.slot(at).leader {
            leader.learn(record);
        }
    }

    fn known(&mut self, key: &Key, now: Timestamp) -> Option<Arc<IdempotencyRecord>> {
        self.parts.completed.get(key, now)
    }

    fn enter(
        &mut self,
        side: Side,
        until: Timestamp,
        patience: Timestamp,
        now: Timestamp,
    ) -> Enter {
        if self.is_nested {
            return Enter::Entered;
        }
        let is_isolated = side == Side::Isolated;
        let until = Until { taken: until, waiting: patience };
        let taken = if let Some(place) = &self.place {
            debug_assert_eq!(
                place.is_isolated(),
                is_isolated,
                "it exits before it asks for another"
            );
            place.ask(until, now)
        } else {
            let (place, taken) = self.parts.isolation.ask(is_isolated, until, now);
            self.place = Some(place);
            taken
        };
        taken.map_or_else(|until| Enter::Waits { until }, |()| Enter::Entered)
    }

    fn exit(&mut self) {
        self.place = None;
    }

    fn put_aside(
        &mut self,
        at: usize,
        aside: usize,
        reason: DivertReason,
        fence: Option<u64>,
    ) -> Option<Key> {
        debug_assert_eq!(aside, self.slots.len(), "what puts a record aside is added last");
        let slot = self.slot(at);
        let work = (slot.divert.take()?)(reason, fence);
        let (record, delivered) = (slot.record.clone(), slot.delivered.clone());
        let key = work.key.clone();
        self.slots.push(Slot {
            record,
            delivered,
            key: Some(work.key),
            identity: None,
            job: Contained::new(work.job),
            divert: None,
            handler: None,
            leader: None,
            outcome: None,
        });
        Some(key)
    }

    fn renewed(&mut self, at: usize, lease_until: Timestamp) {
        if let Some(handler) = self.slot(at).handler {
            self.running.renewed(handler, lease_until);
        }
    }

    fn withdraw(&mut self, at: usize) -> bool {
        let Some(handler) = self.slot(at).handler else { return false };
        let withdrawn = self.running.withdraw(handler);
        if withdrawn {
            self.slot(at).handler = None;
        }
        withdrawn
    }

    fn stop(&mut self, at: usize) -> Option<Timestamp> {
        let handler = self.slot(at).handler.take()?;
        self.running.stop(handler)
    }
}

impl<'a> Work<'a> {
    /// What the machine has to know of the work, what stands for its key if it has none, and its
    /// handler.
    fn ask(
        self,
        group: Option<Arc<str>>,
        receives: u32,
    ) -> (Ask<'a>, Option<Key>, Contained<Job<'a>>) {
        let ask = |task| Ask {
            key: None,
            fingerprint: None,
            payload: "",
            group,
            receives,
            task,
            can_be_put_aside: false,
            is_aside: false,
        };
        match self {
            Self::Keyed { key, fingerprint, payload, job } => {
                let ask = Ask { key: Some(key), fingerprint, payload, ..ask(Task::Keyed) };
                (ask, None, Contained::new(job))
            }
            Self::Unprotected { identity, job } => {
                (ask(Task::Unprotected), Some(identity), Contained::new(job))
            }
            Self::Skip => (ask(Task::Skip), None, Contained::none()),
            Self::Divert { aside, payload } => {
                let ask = Ask { key: Some(aside.key), payload, is_aside: true, ..ask(Task::Keyed) };
                (ask, None, Contained::new(aside.job))
            }
            Self::Reject(rejection) => {
                (ask(Task::Reject(Carried(rejection))), None, Contained::none())
            }
        }
    }
}
