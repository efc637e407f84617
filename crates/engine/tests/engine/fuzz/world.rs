//! A world in which scenarios are played: the clock, the store, the processes, and the handlers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    failure::Failure,
    memory::MemoryStore,
    outcome::Rejected,
    policy::OnOutage,
    record::{Fingerprint, IdempotencyRecord},
    store::Store,
};
use lambda_idempotency_engine::{
    batch::{Delivery, Engine, Job, Pace, Returned, Work},
    call::RecordId,
    completed::Cache,
    delivered::Delivered,
    observe::{Observer, Report},
};
use lambda_idempotency_keys::Key;
use lambda_idempotency_testkit::{
    clock::ManualClock,
    faults::{Fault, FaultyStore},
};
use tokio::sync::Notify;

use super::{
    contract::{Contract, Following, Wrong},
    messages::{Post, Wire},
    scenario::{End, Kind, Plan, Scenario, Step, Trouble},
};
use crate::support::START;

/// An engine that asks for the time more often than this in one poll would never return from it.
const ASKED: usize = 50_000;

/// A clock that notices an engine which asks it in an endless loop.
#[derive(Clone)]
pub(super) struct WatchedClock {
    pub(super) clock: ManualClock,
    pub(super) asked: Arc<AtomicUsize>,
}

impl Clock for WatchedClock {
    fn now(&self) -> Timestamp {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        assert!(asked < ASKED, "the engine loops");
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }
}

pub(super) struct World {
    pub(super) clock: ManualClock,
    pub(super) asked: Arc<AtomicUsize>,
    pub(super) store: FaultyStore<Following<MemoryStore>>,
    pub(super) wrong: Wrong,
    /// Handlers of a key that run now.
    pub(super) running: Mutex<BTreeMap<u8, usize>>,
    /// Successes of a key's handler, protected ones only.
    pub(super) effects: Mutex<BTreeMap<u8, usize>>,
    /// Keys of which a handler succeeded, protected or not.
    pub(super) done: Mutex<BTreeSet<u8>>,
    /// Keys of which a delivery was acknowledged.
    pub(super) acknowledged: Mutex<BTreeSet<u8>>,
    /// Messages and effects.
    pub(super) post: Post,
    /// For how long handlers have kept the processor.
    pub(super) blocked: Mutex<Duration>,
    pub(super) pace: Pace,
    /// Whether nothing may run without a claim.
    pub(super) strict: bool,
    pub(super) processes: [Process; 2],
    /// How often each record was received.
    pub(super) received: Mutex<BTreeMap<(u8, u8), u32>>,
    pub(super) scenario: Scenario,
}

/// A process with its invocations.
#[derive(Default)]
pub(super) struct Process {
    pub(super) is_dead: AtomicBool,
    pub(super) dies: Notify,
}

/// What is known of an invocation while it runs.
pub(super) struct Flight {
    /// By record: acknowledged or not, once it is reported.
    pub(super) reported: Mutex<Vec<Option<bool>>>,
    /// By record: whether it will never be processed.
    pub(super) is_final: Mutex<Vec<bool>>,
    pub(super) labels: Mutex<Vec<Option<&'static str>>>,
    pub(super) began: Mutex<Vec<bool>>,
    pub(super) running: AtomicUsize,
    pub(super) process: usize,
    pub(super) receives: Vec<u32>,
    /// Of the handlers that run.
    pub(super) suspicions: Mutex<Vec<Option<Suspicion>>>,
}

/// How often a record was lost in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Suspicion {
    pub(super) losses: u32,
}

pub(super) struct Reports(pub(super) Arc<Flight>, pub(super) Wrong);

impl Observer for Reports {
    fn reported(&self, report: &Report<'_>) {
        let at: usize =
            report.record.label().rsplit('/').next().unwrap().parse().unwrap_or(usize::MAX);
        let Some(at) = self.0.labels.lock().unwrap().get(at).map(|_| at) else {
            return self.1.say(format!("a report of an unknown record: {}", report.record.label()));
        };
        let before = self.0.labels.lock().unwrap()[at].replace(report.outcome.label());
        if before.is_some() {
            self.1.say(format!("record {at} is reported twice"));
        }
        self.0.reported.lock().unwrap()[at] = Some(report.outcome.is_acknowledged());
        self.0.is_final.lock().unwrap()[at] = report.outcome.is_final();
    }
}

pub(super) fn key(n: u8) -> Key {
    Key::from_text(format!("op#{n}"))
}

pub(super) struct Runs<'w> {
    world: &'w World,
    key: Option<u8>,
    flight: Arc<Flight>,
    suspicion: Option<Suspicion>,
}

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            *self.world.running.lock().unwrap().entry(key).or_default() -= 1;
        }
        self.flight.running.fetch_sub(1, Ordering::Relaxed);
        let mut suspicions = self.flight.suspicions.lock().unwrap();
        if let Some(place) = suspicions.iter().position(|other| *other == self.suspicion) {
            suspicions.remove(place);
        }
    }
}

impl World {
    pub(super) fn new(scenario: Scenario) -> Arc<Self> {
        let wrong = Wrong::default();
        let inner = Following { inner: MemoryStore::new(), wrong: wrong.clone() };
        let store = FaultyStore::new(inner).yielding();
        let clock = ManualClock::new(START);
        for fault in &scenario.faults {
            let mut made = match fault.what {
                Trouble::Refuse(kind) => Fault::refuse(kind),
                Trouble::Lose => Fault::lose_answer(),
                Trouble::Delay(ms) => Fault::delay(clock.clone(), Duration::from_millis(ms)),
                Trouble::DelayAnswer(ms) => {
                    Fault::delay_answer(clock.clone(), Duration::from_millis(ms))
                }
                Trouble::Duplicate(later) => Fault::duplicate(later),
            };
            if let Some(n) = fault.key {
                made = made.for_key(&key(n));
            }
            made = match (fault.reads, fault.guard) {
                (true, _) if !matches!(fault.what, Trouble::Duplicate(_)) => made.on_reads(),
                (_, Some(guard)) => made.guarded_by(guard),
                _ => made,
            };
            store.inject(made.nth(fault.nth).times(fault.times));
        }
        Arc::new(Self {
            clock,
            asked: Arc::default(),
            store,
            wrong,
            running: Mutex::default(),
            effects: Mutex::default(),
            done: Mutex::default(),
            acknowledged: Mutex::default(),
            post: Post::default(),
            blocked: Mutex::default(),
            pace: Pace::default(),
            processes: Default::default(),
            received: Mutex::default(),
            strict: scenario.policy.on_outage == OnOutage::Return,
            scenario,
        })
    }

    pub(super) fn stored(&self, key: &Key) -> Option<IdempotencyRecord> {
        let keys = std::slice::from_ref(key);
        let found = self.store.inner().read(keys, START).now_or_never().unwrap();
        found.into_iter().next().unwrap().unwrap()
    }

    pub(super) fn engine(self: &Arc<Self>) -> Engine {
        let clock = WatchedClock { clock: self.clock.clone(), asked: Arc::clone(&self.asked) };
        let store = Contract { inner: self.store.clone(), wrong: self.wrong.clone() };
        let engine = Engine::new(store).with_clock(clock).with_sender(Wire(Arc::clone(self)));
        if self.scenario.cache { engine } else { engine.with_cache(Cache::off()) }
    }

    pub(super) async fn work(&self, steps: &[Step], process: usize) {
        for step in steps {
            match step {
                Step::Yield => tokio::task::yield_now().await,
                Step::Sleep(ms) => self.clock.sleep(Duration::from_millis(*ms)).await,
                Step::Block(ms) => {
                    let for_ = Duration::from_millis(*ms);
                    *self.blocked.lock().unwrap() += for_;
                    self.clock.advance(for_);
                }
                Step::Panic => panic!("a handler panics"),
                // Without a claim and without a deadline nothing would ever stop it.
                Step::Forever if self.scenario.timeout.is_none() => {
                    self.clock.sleep(Duration::from_secs(1000)).await;
                }
                Step::Forever => std::future::pending().await,
                Step::Kill => {
                    self.processes[process].is_dead.store(true, Ordering::Relaxed);
                    self.processes[process].dies.notify_waiters();
                    std::future::pending().await
                }
            }
        }
    }

    pub(super) fn delivery<'a>(
        self: &'a Arc<Self>,
        at: usize,
        all: &'a [Plan],
        texts: &'a [String],
        flight: &Arc<Flight>,
    ) -> Delivery<'a> {
        let plan = &all[at];
        let record = RecordId::new("test", at.to_string());
        let (world, of, process) = (self, Arc::clone(flight), flight.process);
        let job: Job<'a> = Box::new(move |call| {
            let keyed = matches!(plan.kind, Kind::Keyed);
            let suspicion = world.begins(at, &call, all, &of);
            let key = keyed.then_some(plan.key);
            let runs = Runs { world, key, flight: of, suspicion };
            Box::pin(async move {
                let _runs = runs;
                world.work(&plan.steps, process).await;
                match plan.end {
                    End::Ok => {
                        if keyed {
                            world.collect(plan.key, &call)?;
                        }
                        *world.effects.lock().unwrap().entry(plan.key).or_default() +=
                            usize::from(keyed);
                        world.done.lock().unwrap().insert(plan.key);
                        Ok(Returned::Value("true".into()))
                    }
                    End::Transient => Err(Failure::transient("no luck")),
                    End::Permanent => Err(Failure::permanent("never")),
                    End::Declined => Ok(Returned::Declined),
                }
            })
        });
        let payload: &'a str = &texts[at];
        let work = match plan.kind {
            Kind::Keyed => {
                let fingerprint =
                    self.scenario.fingerprints.then(|| Fingerprint::new(plan.payload.to_string()));
                Work::Keyed { key: key(plan.key), fingerprint, payload, job }
            }
            Kind::Unprotected => {
                Work::Unprotected { identity: Key::from_text(format!("id/{at}")), job }
            }
            Kind::Reject => Work::Reject(Rejected::new(std::io::Error::other("bad"))),
        };
        let group = plan.group.map(|group| Arc::from(group.to_string()));
        let (delivered, receives) = (Delivered::default(), flight.receives[at]);
        Delivery { record, delivered, group, receives, work, lets_pass: plan.lets_pass }
    }
}
