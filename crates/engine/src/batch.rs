//! The engine: takes a batch of deliveries through claim, handler and completion.
//!
//! ```text
//! deliveries ─ order ─► first of each key and group ─ claim ─► handlers ─ settle ─► outcomes
//!                              ▲                                             │
//!                              └──── the next of the key, of the group ◄─────┘
//! ```
//!
//! * Keys are claimed together, in one call of the store; a completion goes out as soon as no other
//!   is on its way, and before a handler is polled again that keeps the processor; what finishes
//!   meanwhile goes together in the next.
//! * Records of one key run one after the other: a copy of one that succeeded is answered from it
//!   (*coalesced*), another payload under the same key counts as a later delivery.
//! * Where the order counts, a group goes one record at a time, and nothing after a failure in it starts.
//! * The first record always starts; others only if the time allows. A handler that still runs
//!   shortly before the deadline is dropped, and its lease left standing, since its effect may be
//!   on its way. An invocation whose deadline is not known ends after the policy's fallback timeout.
//! * A record whose last attempts were lost may be what kills the process. It is claimed just before it
//!   runs, in a *quarantine group* with nothing else of the batch beside it: all that were lost once, or one that
//!   was lost more often. Such groups go before all other records at every second receive, and after them
//!   otherwise: what was received before is therefore looked at first.
//! * A key that this process saw completed a short while ago is answered from memory ([`completed`](crate::completed)).
//!
//! # How it is built
//!
//! The engine is a state machine without I/O ([`machine`](crate::machine), with a table of which file answers which
//! question) under a thin driver (`driver`), which polls calls of the store and handlers, and decides
//! nothing. `surroundings` has what the machine asks for and is answered at once, `handler` what
//! becomes of a handler's panics.
//!
//! Nothing is spawned: everything runs inside the future of [`Engine::run`], and ends with it.

pub use crate::delivery::{Batch, Delivery, Job, Pace, Returned, Work};

use std::{future::Future, sync::Arc};

use futures_util::future::{FutureExt as _, lazy};
use lambda_idempotency_core::{
    admission::{Claim, Finding, admit},
    clock::{Clock, SystemClock},
    outbox::Sender,
    outcome::{Completion, Foreign, Outcome},
    policy::Policy,
    record::Worker,
    store::{Capabilities, Store, StoreError},
};
use lambda_idempotency_keys::Key;

use crate::{
    completed::{Cache, Completed},
    driver::{Driver, read_contained},
    machine::{FIRST_CALL, each, unanswered},
    observe::{Observer, Observers, TracingObserver},
    surroundings::{EngineParts, Workers},
};

/// Drives a store and handlers. Cheap to clone; clones share all.
#[derive(Clone)]
pub struct Engine {
    parts: EngineParts,
}

impl Engine {
    /// An engine over a store, with the system clock and without observers.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        let parts = EngineParts {
            store: Arc::new(store),
            clock: Arc::new(SystemClock),
            sender: None,
            observers: Observers::default(),
            has_opentelemetry_fields: false,
            completed: Arc::new(Completed::new(Cache::new())),
            is_unprotected: false,
            application: None,
            workers: Arc::default(),
        };
        Self { parts }
    }

    /// Reads time from another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.parts.clock = Arc::new(clock);
        self
    }

    /// Sends the messages that handlers publish. Default: none, and handlers cannot publish.
    #[must_use]
    pub fn with_sender(mut self, sender: impl Sender) -> Self {
        self.parts.sender = Some(Arc::new(sender));
        self
    }

    /// Adds an observer.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Observer) -> Self {
        self.parts.observers.add(Arc::new(observer));
        self
    }

    /// Runs each record without a claim, and says so in the log for each batch: for development.
    #[must_use]
    pub const fn without_protection(mut self) -> Self {
        self.parts.is_unprotected = true;
        self
    }

    /// Writes a log line for each record, or none. Default: none.
    #[must_use]
    pub const fn with_log(mut self, log: Option<TracingObserver>) -> Self {
        self.parts.observers.set_log(log);
        self
    }

    /// The observer that writes a log line for each record, if there is one.
    #[must_use]
    pub const fn log(&self) -> Option<TracingObserver> {
        self.parts.observers.log()
    }

    /// Gives the span of each call of a handler the fields of OpenTelemetry's conventions for messaging, beside those that
    /// name the record. Default: without.
    #[must_use]
    pub const fn with_opentelemetry_fields(mut self) -> Self {
        self.parts.has_opentelemetry_fields = true;
        self
    }

    /// Remembers completed keys within these bounds, or not at all ([`Cache::off`]). Clones made
    /// before go on with what they have.
    #[must_use]
    pub fn with_cache(mut self, cache: Cache) -> Self {
        self.parts.completed = Arc::new(Completed::new(cache));
        self
    }

    /// Claims in the name of an application, so that the records of another one that has keys of the
    /// same operations are not taken for its own ([`Outcome::Foreign`]). Default: none.
    ///
    /// Records hold the name: see
    /// [`is_application_name`](lambda_idempotency_core::record::is_application_name) for what is fit to be one.
    #[must_use]
    pub fn with_application(mut self, name: Option<Arc<str>>) -> Self {
        self.parts.application = name;
        self
    }

    /// Names the function that claims ([`Worker::from_environment`]), for the
    /// [provenance](lambda_idempotency_core::record::Provenance) in records. Default: nothing is known.
    #[must_use]
    pub fn with_worker(mut self, worker: Worker) -> Self {
        self.parts.workers = Arc::new(Workers::of(worker));
        self
    }

    /// Describes a key that belongs to another application.
    #[must_use]
    pub fn foreign(&self, operation: &str, theirs: Arc<str>) -> Foreign {
        Foreign::new(operation, theirs, self.parts.application.clone())
    }

    /// The capabilities of its store.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.parts.store.capabilities()
    }

    /// Whether it runs each record without a claim.
    #[must_use]
    pub const fn is_unprotected(&self) -> bool {
        self.parts.is_unprotected
    }

    pub(crate) const fn parts(&self) -> &EngineParts {
        &self.parts
    }

    /// The engine's clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.parts.clock
    }

    /// The answer that a claim of `key` would get now, without claiming it: its result, its permanent
    /// failure, or until when it is held. [`Finding::Free`] says that the work is not done.
    ///
    /// # Errors
    /// The store does not answer within 5 seconds, or holds something else there.
    pub async fn look_up(&self, key: &Key, policy: &Policy) -> Result<Finding, StoreError> {
        let until = self.parts.clock.now().plus(FIRST_CALL);
        let claim = Claim::reading(self.parts.application.clone(), policy.clock_skew);
        let (store, keys) = (&*self.parts.store, std::slice::from_ref(key));
        let found = read_contained(store, keys, until).await;
        let found = each(found, || Err(unanswered())).next();
        let record = found.unwrap_or_else(|| Err(unanswered()))?;
        let now = self.parts.clock.now();
        let gives = || policy.gives_result_of(record.as_ref().and_then(Completion::of), now);
        Ok(match admit(&claim, record.as_ref(), now) {
            Finding::Completed(result) => Finding::Completed(result.filter(|_| gives())),
            Finding::Unsent(result) => Finding::Unsent(result.filter(|_| gives())),
            finding => finding,
        })
    }

    /// Processes a batch; returns one outcome for each delivery, in order.
    ///
    /// If the returned future is dropped, running handlers are dropped with it and their leases
    /// stand until they lapse.
    pub fn run<'a>(&'a self, batch: Batch<'a>) -> impl Future<Output = Vec<Outcome>> + Send + 'a {
        self.driven(batch, true)
    }

    /// As [`run`](Self::run), for records that nothing delivers again: a caller waits for their outcomes. They are claimed for
    /// as long as a handler could start, two minutes at most. Where an outage runs them without a claim
    /// ([`OnOutage::RunUnprotected`](lambda_idempotency_core::policy::OnOutage::RunUnprotected)), claiming is given up as
    /// early as in [`run`](Self::run).
    pub fn run_once<'a>(
        &'a self,
        batch: Batch<'a>,
    ) -> impl Future<Output = Vec<Outcome>> + Send + 'a {
        self.driven(batch, false)
    }

    fn driven<'a>(
        &'a self,
        batch: Batch<'a>,
        is_redelivered: bool,
    ) -> impl Future<Output = Vec<Outcome>> + Send + 'a {
        lazy(move |_| Driver::new(&self.parts, self.protected(batch), is_redelivered)).flatten()
    }

    /// The batch as it is, or without protection, if this engine has none.
    fn protected<'a>(&self, mut batch: Batch<'a>) -> Batch<'a> {
        if self.parts.is_unprotected {
            tracing::warn!(
                operation = batch.operation,
                records = batch.deliveries.len(),
                "idempotency is disabled: these records are processed without protection"
            );
            let deliveries = batch.deliveries.into_iter();
            batch.deliveries = deliveries.map(Delivery::without_protection).collect();
        }
        batch
    }
}
