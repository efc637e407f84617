//! A small world for tests: one store, one clock, and records with their handlers.

use std::{
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    failure::Failure,
    memory::MemoryStore,
    outcome::{Outcome, Rejected},
    policy::Policy,
    record::{Fingerprint, IdempotencyRecord, Status},
    store::{Capabilities, Guard, Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_engine::{
    batch::{Batch, Delivery, Engine, Job, Pace, Returned, Work},
    call::{Call, RecordId},
    delivered::Delivered,
};
use lambda_idempotency_keys::Key;
use lambda_idempotency_testkit::{
    clock::ManualClock,
    crashing::drop_after,
    deadlines::{BrokenRule, Deadlines},
    faults::{Call as StoreCall, FaultyStore},
    ledger::Ledger,
};

pub(crate) const START: Timestamp = Timestamp::from_secs(1_000_000);

/// How long each call of the store takes.
pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(4);

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) store: FaultyStore<Arc<MemoryStore>>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) policy: Policy,
    /// Nothing delivers its records again: its invocations are calls of `run` and `run_many`.
    pub(crate) runs_once: bool,
    /// The time from the start of an invocation to its deadline; `None` if the deadline is not known.
    pub(crate) timeout: Option<Duration>,
    /// How much time handlers leave for work after a batch.
    pub(crate) time_after: Duration,
    /// The handler durations that the process has observed.
    pub(crate) pace: Arc<Pace>,
    /// Which calls of the store broke a rule for their deadlines: checked after each invocation.
    pub(crate) deadlines: Deadlines,
    /// The rules that calls may break in this test, for a reason that it names.
    pub(crate) tolerates: &'static [BrokenRule],
}

type Handler = Box<dyn FnOnce(World, Call) -> BoxFuture<'static, Result<(), Failure>> + Send>;

/// One record of a batch.
pub(crate) struct Rec {
    label: &'static str,
    key: Key,
    payload: &'static str,
    fingerprint: Option<Fingerprint>,
    group: Option<&'static str>,
    receives: u32,
    /// The handler does no work, and declines the record.
    declines: bool,
    handler: Handler,
    lets_pass: bool,
    has_key: bool,
    is_rejected: bool,
    /// What is kept with its claim.
    kept: Option<&'static str>,
}

/// A record whose handler succeeds at once.
pub(crate) fn ok(label: &'static str) -> Rec {
    rec(label, |_, _| async { Ok(()) })
}

/// A record with this handler.
pub(crate) fn rec<Fut>(
    label: &'static str,
    handler: impl FnOnce(World, Call) -> Fut + Send + 'static,
) -> Rec
where
    Fut: Future<Output = Result<(), Failure>> + Send + 'static,
{
    Rec {
        label,
        key: key(label),
        payload: label,
        fingerprint: None,
        group: None,
        receives: 0,
        declines: false,
        lets_pass: false,
        has_key: true,
        is_rejected: false,
        kept: None,
        handler: Box::new(move |world, call| {
            Box::pin(async move {
                let attempt = format!("{} {}", call.failed_attempts(), call.lost_attempts());
                let effect = label;
                let result = handler(world.clone(), call).await;
                if result.is_ok() {
                    world.ledger.record(effect, attempt);
                }
                result
            })
        }),
    }
}

/// A record whose handler fails.
pub(crate) fn failing(label: &'static str) -> Rec {
    rec(label, |_, _| async { Err(Failure::transient("no luck")) })
}

/// A record whose handler declines it.
pub(crate) fn declining(label: &'static str) -> Rec {
    let handler: Handler = Box::new(|_, _| Box::pin(async { Ok(()) }));
    Rec { declines: true, handler, ..ok(label) }
}

/// A record whose handler succeeds after this long.
pub(crate) fn slow(label: &'static str, takes: Duration) -> Rec {
    rec(label, move |world, _| async move {
        world.clock.sleep(takes).await;
        Ok(())
    })
}

/// A record whose handler does not end.
pub(crate) fn hanging(label: &'static str) -> Rec {
    rec(label, |_, _| std::future::pending())
}

/// A record whose handler notes when it begins.
pub(crate) fn noting(label: &'static str) -> (Rec, Arc<OnceLock<Timestamp>>) {
    let began = Arc::new(OnceLock::new());
    let noted = Arc::clone(&began);
    let record = rec(label, move |world: World, _| async move {
        noted.get_or_init(|| world.clock.now());
        Ok(())
    });
    (record, began)
}

impl Rec {
    pub(crate) fn payload(mut self, payload: &'static str) -> Self {
        self.payload = payload;
        self
    }

    pub(crate) fn fingerprint(mut self, hash: &str) -> Self {
        self.fingerprint = Some(Fingerprint::new(hash));
        self
    }

    pub(crate) fn group(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }

    /// Says that somebody takes care of the record if it will never be processed.
    pub(crate) fn passing(self) -> Self {
        Self { lets_pass: true, ..self }
    }

    /// Rejects the record, which cannot be processed.
    pub(crate) fn rejected(self) -> Self {
        Self { is_rejected: true, ..self }
    }

    /// Declines the record when the handler has returned.
    pub(crate) fn declines(self) -> Self {
        Self { declines: true, ..self }
    }

    /// Takes the record's key away: it runs unprotected.
    pub(crate) fn unprotected(mut self) -> Self {
        self.has_key = false;
        self
    }

    /// Keeps this payload with the claim, so that the record can be recovered.
    pub(crate) fn kept(mut self, payload: &'static str) -> Self {
        self.kept = Some(payload);
        self
    }

    pub(crate) fn receives(mut self, receives: u32) -> Self {
        self.receives = receives;
        self
    }
}

pub(crate) fn key(label: &str) -> Key {
    Key::from_text(format!("op#{label}"))
}

impl World {
    /// Each call of the store takes a [`ROUND_TRIP`].
    pub(crate) fn new() -> Self {
        let world = Self::without_latency();
        let store = FaultyStore::new(Arc::default()).taking(world.clock.clone(), ROUND_TRIP);
        Self { store, ..world }
    }

    /// The store answers at once: for tests of other things than time, which poll an invocation by hand.
    pub(crate) fn without_latency() -> Self {
        Self {
            clock: ManualClock::new(START),
            store: FaultyStore::new(Arc::default()),
            ledger: Arc::new(Ledger::new()),
            policy: Policy::default(),
            runs_once: false,
            timeout: Some(Duration::from_secs(30)),
            time_after: Duration::ZERO,
            pace: Arc::default(),
            deadlines: Deadlines::default(),
            tolerates: &[],
        }
    }

    /// The store takes no time, but each call yields twice: for tests that drop an invocation at every await.
    pub(crate) fn yielding() -> Self {
        Self { store: FaultyStore::new(Arc::default()).yielding(), ..Self::without_latency() }
    }

    /// One invocation. The caller drives the clock.
    pub(crate) async fn invoke(&self, records: Vec<Rec>) -> Vec<Outcome> {
        self.invoke_on(self.store.clone(), records).await
    }

    /// One invocation with another store.
    pub(crate) async fn invoke_on(&self, store: impl Store, records: Vec<Rec>) -> Vec<Outcome> {
        self.invoke_by(&self.engine_on(store), records).await
    }

    /// An invocation whose process dies as soon as its handlers were called. It takes no time.
    pub(crate) async fn dies(&self, records: Vec<Rec>) {
        let invocation = self.invoke_on(Arc::clone(self.store.inner()), records);
        assert!(drop_after(1, invocation).await.is_none(), "its handlers do not end");
    }

    /// A new engine, for invocations of one process to share.
    pub(crate) fn engine(&self) -> Engine {
        self.engine_on(self.store.clone())
    }

    fn engine_on(&self, store: impl Store) -> Engine {
        Engine::new(self.deadlines.around(store, self.clock.clone())).with_clock(self.clock.clone())
    }

    /// One invocation in the process that has this engine.
    pub(crate) async fn invoke_by(&self, engine: &Engine, records: Vec<Rec>) -> Vec<Outcome> {
        let deliveries = records.into_iter().map(|record| self.delivery(record)).collect();
        let invocation_deadline = self.timeout.map(|timeout| self.clock.now().plus(timeout));
        self.deadlines.allow_until(invocation_deadline.unwrap_or(Timestamp::from_millis(u64::MAX)));
        let batch = Batch::for_operation("op", &self.policy, &self.pace)
            .within(None, invocation_deadline)
            .leaving(self.time_after)
            .with(deliveries);
        let outcomes = match self.runs_once {
            true => engine.run_once(batch).await,
            false => engine.run(batch).await,
        };
        let broken = self.deadlines.broken();
        let wrong = broken.iter().find(|broken| !self.tolerates.contains(&broken.rule));
        assert_eq!(wrong, None, "a call of the store");
        outcomes
    }

    /// Runs one invocation in simulated time, and returns the labels of the outcomes.
    pub(crate) async fn deliver(&self, records: Vec<Rec>) -> Vec<&'static str> {
        labels(&self.clock.drive(self.invoke(records)).await)
    }

    fn delivery<'d>(&self, record: Rec) -> Delivery<'d> {
        let world = self.clone();
        let (handler, payload) = (record.handler, record.payload);
        let returned = match record.declines {
            true => Returned::Declined,
            false => Returned::Value("true".into()),
        };
        let job: Job<'d> = Box::new(move |call| {
            let running = handler(world, call);
            Box::pin(async move { running.await.map(|()| returned) })
        });
        let work = match record.has_key {
            _ if record.is_rejected => Work::Reject(Rejected::new(std::io::Error::other("bad"))),
            false => Work::Unprotected { identity: key(record.label), job },
            true => Work::Keyed { key: record.key, fingerprint: record.fingerprint, payload, job },
        };
        Delivery {
            record: RecordId::new("test", record.label),
            delivered: Delivered::default().kept(record.kept.map(Into::into)),
            group: record.group.map(Into::into),
            receives: record.receives,
            work,
            lets_pass: record.lets_pass,
        }
    }

    /// The writes that were sent.
    pub(crate) fn writes(&self) -> Vec<Write> {
        let writes = self.store.history().into_iter().filter_map(|call| match call {
            StoreCall::Write { writes, .. } => Some(writes),
            _ => None,
        });
        writes.flatten().collect()
    }

    /// The number of requests to the store.
    pub(crate) fn requests(&self) -> usize {
        self.store.write_calls() + self.store.read_calls()
    }

    /// The idempotency record that the store holds for a label.
    pub(crate) async fn stored(&self, label: &str) -> Option<IdempotencyRecord> {
        let found = self.store.inner().read(&[key(label)], START).await;
        found.into_iter().next().unwrap().unwrap()
    }
}

/// The store of a world, with writes that a test treats in its own way.
pub(crate) struct Treating<F>(World, F);

pub(crate) fn treating<F>(world: &World, treat: F) -> Treating<F>
where
    F: for<'a> Fn(&'a World, &'a [Write], Timestamp) -> BoxFuture<'a, Vec<Verdict>>,
{
    Treating(world.clone(), treat)
}

impl<F> Store for Treating<F>
where
    F: for<'a> Fn(&'a World, &'a [Write], Timestamp) -> BoxFuture<'a, Vec<Verdict>>
        + Send
        + Sync
        + 'static,
{
    fn capabilities(&self) -> Capabilities {
        self.0.store.capabilities()
    }

    fn write<'a>(&'a self, writes: &'a [Write], until: Timestamp) -> BoxFuture<'a, Vec<Verdict>> {
        self.1(&self.0, writes, until)
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        until: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.0.store.read(keys, until)
    }
}

/// A store with a throttled partition: it applies all writes except those that are `hot`, and then returns only after the
/// call deadline, because timers are late and processors busy.
pub(crate) fn throttled(world: &World, hot: fn(&Write) -> bool) -> impl Store {
    treating(world, move |world, writes, until| {
        Box::pin(async move {
            let mut verdicts = Vec::new();
            for write in writes {
                verdicts.extend(if hot(write) {
                    let error = StoreError::new(StoreErrorKind::Throttled, "still");
                    vec![Verdict::Unknown(error)]
                } else {
                    world.store.write(std::slice::from_ref(write), until).await
                });
            }
            if writes.iter().any(hot) {
                let late = Duration::from_millis(50);
                world.clock.sleep(until.plus(late).since(world.clock.now())).await;
            }
            verdicts
        })
    })
}

/// Whether a write completes a key.
pub(crate) fn completes(write: &Write) -> bool {
    write.record.as_ref().is_some_and(|record| record.status == Status::Completed)
}

/// Whether a write renews a lease, or takes a key over.
pub(crate) fn renews(write: &Write) -> bool {
    matches!(write.guard, Guard::Unchanged(_))
}

/// Asserts that handlers and waits took this long since `begun`, and the calls of the store little more.
#[track_caller]
pub(crate) fn assert_took(world: &World, begun: Timestamp, expected: Duration) {
    let took = world.clock.now().since(begun);
    assert!(took >= expected && took <= expected + 15 * ROUND_TRIP, "{took:?}, not {expected:?}");
}

pub(crate) fn labels(outcomes: &[Outcome]) -> Vec<&'static str> {
    outcomes.iter().map(Outcome::label).collect()
}
