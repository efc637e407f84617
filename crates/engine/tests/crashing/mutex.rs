//! Mutex mode, with a stop at every await: handlers of a key do not overlap, each message has its own call that
//! succeeds before it is acknowledged, and no key stays locked for longer than a lease.
//!
//! The messages share their keys, and nothing is ever done for a key, so this has a log of its own.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join;
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock as _, Timestamp},
    failure::Failure,
    memory::MemoryStore,
    policy::{Mode, Policy},
    record::IdempotencyRecord,
    store::{Capabilities, Guard, RecordVersion, Store, StoreError, Verdict, Write},
};
use lambda_idempotency_engine::{
    batch::{Batch, Delivery, Engine, Job, Pace, Returned, Work},
    call::{Call, RecordId},
    delivered::Delivered,
};
use lambda_idempotency_keys::Key;
use lambda_idempotency_testkit::{
    clock::ManualClock,
    crashing::{DelayedStore, DelayedWrites, crash_points, drop_after},
};

use crate::message::key;

/// The key of each message. The fourth fails at its first call.
const KEYS: [&str; 4] = ["a", "b", "a", "a"];
const FAILS: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(30);
/// Rounds after which a story counts as stuck, and the pause between them.
const ROUNDS: usize = 5;
const VISIBILITY: Duration = Duration::from_secs(40);

/// How the first worker of the first round is stopped, after some polls.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Dropped(DelayedWrites),
    /// It goes on this long after its lease has ended.
    Frozen(Duration),
}

#[derive(Default)]
struct State {
    /// By key: the calls, in their order, and which of them is running.
    calls: BTreeMap<&'static str, (Vec<usize>, Option<usize>)>,
    /// By message: how often its handler was called, and returned Ok.
    called: [usize; KEYS.len()],
    succeeded: [bool; KEYS.len()],
    is_acknowledged: [bool; KEYS.len()],
    violations: Vec<String>,
    numbers: usize,
}

#[derive(Clone)]
struct World {
    clock: ManualClock,
    store: DelayedStore<Memory>,
    state: Arc<Mutex<State>>,
}

/// A store that, if it is careless, deletes whatever is there.
struct Memory {
    memory: MemoryStore,
    is_careless: bool,
}

impl Store for Memory {
    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let mut verdicts = Vec::new();
            for write in writes {
                let mut write = write.clone();
                if self.is_careless && write.record.is_none() {
                    let found = self.memory.read(&[write.key.clone()], call_deadline).await;
                    if let [Ok(Some(found))] = &found[..] {
                        write.guard = Guard::Unchanged(RecordVersion::of(found));
                    }
                }
                verdicts.extend(self.memory.write(&[write], call_deadline).await);
            }
            verdicts
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.memory.read(keys, call_deadline)
    }
}

/// A handler at work, until this is dropped.
struct AtWork(World, &'static str, usize);

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap();
        let (_, running) = state.calls.entry(self.1).or_default();
        if *running == Some(self.2) {
            *running = None;
        }
    }
}

impl World {
    fn new(is_careless: bool) -> Self {
        Self {
            clock: ManualClock::new(Timestamp::from_secs(1_000_000)),
            store: DelayedStore::new(Memory { memory: MemoryStore::new(), is_careless }),
            state: Arc::default(),
        }
    }

    fn violation(&self, what: String) {
        self.state.lock().unwrap().violations.push(what);
    }

    async fn handle(&self, message: usize, call: Call) -> Result<(), Failure> {
        let label = KEYS[message];
        let (number, overlaps) = {
            let mut state = self.state.lock().unwrap();
            state.numbers += 1;
            state.called[message] += 1;
            let number = state.numbers;
            let (calls, running) = state.calls.entry(label).or_default();
            calls.push(number);
            (number, running.replace(number).is_some())
        };
        if overlaps {
            self.violation(format!("two handlers of {label} overlap: {call:?}"));
        }
        let _at_work = AtWork(self.clone(), label, number);
        self.clock.sleep(Duration::from_millis(500)).await;
        // What it does now must not fall into the time of another.
        if self.state.lock().unwrap().calls[label].0.last() != Some(&number) {
            self.violation(format!("{label} goes on after another took over"));
        }
        if message == FAILS && self.state.lock().unwrap().called[message] == 1 {
            return Err(Failure::permanent("the first call fails"));
        }
        tokio::task::yield_now().await;
        self.state.lock().unwrap().succeeded[message] = true;
        Ok(())
    }

    /// An invocation with all messages that are not acknowledged.
    async fn invoke(&self) {
        let engine = Engine::new(self.store.clone()).with_clock(self.clock.clone());
        let acknowledged = self.state.lock().unwrap().is_acknowledged;
        let batch: Vec<_> = (0..KEYS.len()).filter(|message| !acknowledged[*message]).collect();
        let deliveries = batch.iter().map(|message| self.delivery(*message)).collect();
        let mut policy = Policy::default();
        policy.mode = Mode::Mutex;
        let outcomes = engine
            .run(Batch {
                operation: "op",
                deliveries,
                policy: &policy,
                request_id: None,
                invocation_deadline: Some(self.clock.now().plus(TIMEOUT)),
                time_after: Duration::ZERO,
                pace: &Pace::default(),
            })
            .await;
        for (message, outcome) in batch.into_iter().zip(outcomes) {
            let mut state = self.state.lock().unwrap();
            if !outcome.is_acknowledged() {
                continue;
            }
            state.is_acknowledged[message] = true;
            if !state.succeeded[message] {
                state.violations.push(format!("{message} is lost: {outcome:?}"));
            }
        }
    }

    fn delivery(&self, message: usize) -> Delivery<'_> {
        let job: Job<'_> = Box::new(move |call| {
            Box::pin(async move { self.handle(message, call).await.map(|()| Returned::Nothing) })
        });
        let (key, payload) = (key(KEYS[message]), "the same");
        Delivery {
            record: RecordId::new("test", message.to_string()),
            delivered: Delivered::default(),
            group: None,
            receives: 0,
            lets_pass: false,
            work: Work::Keyed { key, fingerprint: None, payload, job },
        }
    }

    /// Three workers get the messages at the same time, and the first is stopped after `polls`. Then one worker after
    /// the other gets what is left. Returns whether the first was not stopped any more.
    async fn run(&self, polls: usize, stop: Stop) -> bool {
        let mut first = Box::pin(self.invoke());
        if let Stop::Dropped(fate) = stop {
            self.store.delayed_writes(fate);
        }
        let stopped = async {
            let ended = drop_after(polls, &mut first).await.is_some();
            if !ended {
                // Its handlers stand still from now on.
                for (_, running) in self.state.lock().unwrap().calls.values_mut() {
                    *running = None;
                }
            }
            ended
        };
        // The others begin a little later, so that the first gets a claim.
        let later = async |ms| {
            self.clock.sleep(Duration::from_millis(ms)).await;
            self.invoke().await;
        };
        let second = join(later(100), later(200));
        let ended = match stop {
            Stop::Dropped(_) => {
                let ended = self.clock.drive(stopped).await;
                drop(first);
                self.store.delayed_writes(DelayedWrites::Lost);
                self.clock.drive(second).await;
                ended
            }
            Stop::Frozen(longer) => {
                let ended = self.clock.drive(stopped).await;
                let thaw = async {
                    self.clock.sleep(TIMEOUT + Duration::from_secs(1) + longer).await;
                    if !ended {
                        first.await;
                    }
                };
                // Two workers come by twice, the second time when its lease has ended.
                let others = async {
                    second.await;
                    self.clock.sleep(Duration::from_secs(32)).await;
                    join(later(100), later(200)).await;
                };
                self.clock.drive(join(thaw, others)).await;
                ended
            }
        };
        for round in 0.. {
            if self.state.lock().unwrap().is_acknowledged.iter().all(|one| *one) {
                break;
            }
            if round == ROUNDS {
                self.violation("stuck".to_owned());
                break;
            }
            self.clock.advance(VISIBILITY);
            self.clock.drive(join(self.invoke(), later(200))).await;
        }
        self.store.apply_pending().await;
        // What a late claim has left behind is taken over.
        self.clock.advance(VISIBILITY);
        self.state.lock().unwrap().is_acknowledged = [false; KEYS.len()];
        self.clock.drive(self.invoke()).await;
        let is_free = self.state.lock().unwrap().is_acknowledged.iter().all(|one| *one);
        let left = self.store.inner().memory.len();
        if !is_free || left > 0 {
            self.violation(format!("a key is left over: {left} records"));
        }
        ended
    }
}

/// Stops the first worker after each of its polls. Returns the number of stories, and the violations.
async fn everywhere(is_careless: bool, stops: &[Stop]) -> (usize, Vec<String>) {
    let (mut stories, mut violations) = (0, Vec::new());
    crash_points(async |polls| {
        let mut all_ended = true;
        for stop in stops {
            let world = World::new(is_careless);
            all_ended &= world.run(polls, *stop).await;
            stories += 1;
            let state = world.state.lock().unwrap();
            let of = |what| format!("{polls} polls, {stop:?}: {what}");
            violations.extend(state.violations.iter().map(of));
        }
        all_ended
    })
    .await;
    println!("{stories} stories");
    (stories, violations)
}

/// After how many calls of the store the writes of a worker are applied that died meanwhile.
fn after() -> Vec<Stop> {
    let after = (0..14).map(DelayedWrites::After);
    after.chain([DelayedWrites::Lost]).map(Stop::Dropped).collect()
}

#[tokio::test]
async fn no_two_handlers_overlap_and_no_message_is_lost_wherever_a_worker_dies() {
    let (stories, violations) = everywhere(false, &after()).await;
    assert!(stories > 300 && violations.is_empty(), "{stories}: {}", violations.join("\n"));
}

/// How long a suspended worker may stand still beyond its lease.
fn longer() -> [Stop; 5] {
    [500, 1_500, 3_000, 3_700, 60_000].map(|ms| Stop::Frozen(Duration::from_millis(ms)))
}

#[tokio::test]
async fn a_worker_that_goes_on_after_its_lease_does_not_work_beside_its_successor() {
    let (stories, violations) = everywhere(false, &longer()).await;
    assert!(stories > 100 && violations.is_empty(), "{stories}: {}", violations.join("\n"));
}

/// The checks find a store that deletes whatever is there.
#[tokio::test]
async fn a_store_that_deletes_the_claims_of_others_is_caught() {
    let (_, violations) = everywhere(true, &after()).await;
    assert!(violations.iter().any(|what| what.contains("overlap")), "{violations:?}");
}
