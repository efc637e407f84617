//! The engine: takes a batch of deliveries through claim, handler and completion.
//!
//! ```text
//! deliveries ─ plan ─► first of each key and group ─ claim ─► handlers ─ settle ─► outcomes
//!                              ▲                                             │
//!                              └──── the next of the key, of the group ◄─────┘
//! ```
//!
//! * Keys are claimed together, in one call of the store; a completion goes out as soon as no other
//!   is on its way, and what finishes meanwhile goes together in the next.
//! * Records of one key run one after the other: a copy of one that succeeded is answered from it
//!   (*coalesced*), another payload under the same key counts as a later delivery.
//! * Where the order counts, a group goes one record at a time, and nothing after a failure starts:
//!   in its group, or in the whole batch ([`AfterFailure`]).
//! * The first record always starts; others only if the time allows. A handler that still runs
//!   shortly before the deadline is dropped, and its lease left standing, since its effect may be
//!   on its way.
//! * A key whose last owner disappeared is claimed last, and runs alone: it may be what kills the
//!   process.
//! * A record that failed permanently, or whose key belongs to another payload, is put aside where the
//!   user said, as work with a key of its own; what waits for the record waits for that.
//! * A key that another invocation of this process works on is not asked for in the store; one that
//!   this process saw completed a short while ago is answered from memory ([`process`](crate::process)).
//!
//! Nothing is spawned: everything runs inside the future of [`Engine::run`], and ends with it.

mod answers;
mod asleep;
mod budget;
mod calls;
mod claims;
mod diverting;
mod drive;
mod ending;
mod entry;
mod granted;
mod handler;
mod heartbeat;
mod launch;
mod leases;
mod plan;
mod settles;
mod settling;
mod sharing;
mod turns;

pub use budget::Pace;

use std::sync::Arc;

use crate::{
    call::{Call, RecordId},
    observe::{Observer, TracingObserver},
    process::{Cache, Completed, SingleFlight},
    unanswered::{each, unanswered},
};
use lambda_idempotency_core::{
    admission::{Admission, Claim, admit},
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    failure::Failure,
    outcome::{DivertReason, Foreign, Outcome, Rejected},
    policy::Policy,
    record::{Fingerprint, Json, Owner},
    store::{Store, StoreError},
};
use lambda_idempotency_keys::Key;

/// Drives a store and handlers. Cheap to clone; clones share all.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
    single_flight: Arc<SingleFlight>,
    completed: Arc<Completed>,
    application: Option<Arc<str>>,
}

/// A handler with its decoded payload, ready to be called once.
pub type Job<'a> = Box<dyn FnOnce(Call) -> BoxFuture<'a, Result<Returned, Failure>> + Send + 'a>;

/// What a handler returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Returned {
    /// Its result as JSON text, for later deliveries.
    Value(Json),
    /// Nothing that a later delivery would want.
    Nothing,
    /// A result that could not be serialized. The work is done all the same.
    Unserializable,
    /// Nothing: it only put aside a record that will never be processed, for this reason.
    Diverted(DivertReason),
    /// It turned the record away and did no work. The key is free again as if it had not been claimed:
    /// nothing is kept, and no failure is counted.
    Declined,
}

/// One delivery of one record.
pub struct Delivery<'a> {
    /// Which record.
    pub record: RecordId,
    /// Its order group: records of one group are processed in the order of the batch, and none
    /// after one that goes back. `None` where the source keeps no order.
    pub group: Option<Arc<str>>,
    /// Among records without a group, those of higher priority start first: what was delivered
    /// often is closest to being given up by its source.
    pub priority: u32,
    /// What to do.
    pub work: Work<'a>,
    /// How the record is put aside if it fails permanently or its key belongs to another payload.
    /// `None` returns it to its source, again and again.
    pub divert: Option<Divert<'a>>,
}

/// Makes the work of putting a record aside, once it is known why.
///
/// The number is the fence of the final record of its idempotency key: of its permanent failure, or of
/// the other payload's outcome. It is the same at each delivery until that record is deleted or has
/// expired, and another one afterwards. `None` if the record ran without a claim.
pub type Divert<'a> = Box<dyn FnOnce(DivertReason, Option<u64>) -> Aside<'a> + Send + 'a>;

/// The work of putting a record aside. It is done once per key, as the work of a record is, but its
/// own failures are never permanent: the next delivery tries again. What ran without a claim is put
/// aside without one.
pub struct Aside<'a> {
    /// A key of its own: not the record's. Made of all that tells this record and this failure from
    /// others, since whatever has the same key is taken for done.
    pub key: Key,
    /// Puts the record aside, and returns [`Returned::Diverted`].
    pub job: Job<'a>,
}

/// What is to be done with a record.
pub enum Work<'a> {
    /// Once per key.
    Keyed {
        /// The idempotency key.
        key: Key,
        /// What must agree with other deliveries of the key.
        fingerprint: Option<Fingerprint>,
        /// The whole payload, to tell copies from others where there is no fingerprint.
        payload: &'a str,
        /// The handler.
        job: Job<'a>,
    },
    /// At every delivery: it has no key, and the user said to run it.
    Unprotected {
        /// What tells it from other records, for the subkeys of its call. Nothing is claimed by it.
        identity: Key,
        /// The handler.
        job: Job<'a>,
    },
    /// Nothing: it has no key, and the user said to skip it.
    Skip,
    /// It cannot be processed and is put aside.
    Divert {
        /// How it is put aside.
        aside: Aside<'a>,
        /// The whole record, to tell copies from others.
        payload: &'a str,
    },
    /// It cannot be processed.
    Reject(Rejected),
}

/// What is not started any more after a record that goes back to its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AfterFailure {
    /// The rest of its order group. The default.
    #[default]
    Group,
    /// The rest of the batch.
    Batch,
}

/// The deliveries of one invocation.
pub struct Batch<'a> {
    /// The operation's name.
    pub operation: &'a str,
    /// The records, in the order of the event.
    pub deliveries: Vec<Delivery<'a>>,
    /// How far a record that goes back holds up the others.
    pub after_failure: AfterFailure,
    /// How they are treated.
    pub policy: &'a Policy,
    /// When the invocation ends; `None` if that is not known.
    pub invocation_deadline: Option<Timestamp>,
    /// How long the operation's handlers take.
    pub pace: &'a Pace,
}

impl Engine {
    /// An engine over a store, with the system clock and `tracing`.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self {
            store: Arc::new(store),
            clock: Arc::new(SystemClock),
            observer: Arc::new(TracingObserver::new()),
            single_flight: Arc::default(),
            completed: Arc::new(Completed::new(Cache::new())),
            application: None,
        }
    }

    /// Reads time from another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Tells another observer.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Observer) -> Self {
        self.observer = Arc::new(observer);
        self
    }

    /// Remembers completed keys within these bounds, or not at all ([`Cache::off`]). Clones made
    /// before go on with what they have.
    #[must_use]
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.completed = Arc::new(Completed::new(cache));
        self
    }

    /// Claims in the name of an application, so that the records of another one that has keys of the
    /// same operations are not taken for its own ([`Outcome::Foreign`]). Default: none.
    ///
    /// Records hold the name: see
    /// [`is_application_name`](lambda_idempotency_core::record::is_application_name) for what is fit to be one.
    #[must_use]
    pub fn with_application(mut self, name: Option<Arc<str>>) -> Self {
        self.application = name;
        self
    }

    /// What is to be said of a key that belongs to another application.
    #[must_use]
    pub fn foreign(&self, operation: &str, theirs: Arc<str>) -> Foreign {
        Foreign::new(operation, theirs, self.application.clone())
    }

    /// The engine's clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// What a claim of `key` would be answered now, without claiming it: its result, its permanent
    /// failure, or until when it is held. [`Admission::Try`] says that the work is not done.
    ///
    /// # Errors
    /// The store does not answer within 5 seconds, or holds something else there.
    pub async fn look_up(&self, key: &Key, policy: &Policy) -> Result<Admission, StoreError> {
        let now = self.clock.now();
        let claim = Claim {
            owner: Owner::from_bits(0),
            lease_until: now,
            retention: policy.retention,
            clock_skew: policy.clock_skew,
            fingerprint: None,
            application: self.application.clone(),
        };
        let found = self.store.read(std::slice::from_ref(key), now.plus(calls::FIRST_CALL)).await;
        let found = each(found, Err(unanswered())).next();
        let record = found.unwrap_or_else(|| Err(unanswered()))?;
        Ok(admit(&claim, record.as_ref(), self.clock.now()))
    }

    /// Processes a batch; returns one outcome for each delivery, in order.
    ///
    /// If the returned future is dropped, running handlers are dropped with it and their leases
    /// stand until they lapse.
    pub async fn run<'a>(&'a self, batch: Batch<'a>) -> Vec<Outcome> {
        drive::Drive::new(self, batch).run().await
    }
}
