//! One execution environment of the function, with the real engine in it.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use lambda_idempotency_core::{
    clock::Clock as _, failure::Failure, outcome::Outcome, policy::Policy,
};
use lambda_idempotency_engine::{
    batch::{AfterFailure, Batch, Delivery, Engine, Job, Pace, Returned, Work},
    call::RecordId,
    delivered::Delivered,
    process::Cache,
};

use crate::{
    ledger::Cause,
    queue::Message,
    random::{Random, mix},
    scenario::FaultKind,
    table::{TableStore, key},
    time::{MachineClock, Micros},
    world::World,
};

/// The share of invocations that a fault kills.
const CRASHES: f64 = 0.05;
/// How long a new process takes until it can be invoked.
const START: Duration = Duration::from_millis(150);
/// How much of a handler's time has passed when it has its effect.
const BEFORE_EFFECT: f64 = 0.8;
/// How much longer handlers take if what they call does not answer.
const SLOWER: u32 = 10;

/// An execution environment.
pub(crate) struct Function {
    clock: MachineClock,
    random: Random,
    policy: Policy,
    process: Process,
}

/// A process of the function, until it is killed.
struct Process {
    engine: Engine,
    pace: Pace,
}

/// What is known of an invocation besides its outcomes.
#[derive(Default)]
struct Seen {
    /// The keys whose handlers had their effects.
    effects: Mutex<Vec<u32>>,
    /// Whether a handler has killed the process.
    is_killed: AtomicBool,
}

impl Function {
    pub(crate) fn new(world: &World, number: usize) -> Self {
        let mut random = Random::new(mix(world.scenario.seed ^ ((number as u64 + 1) << 32)));
        let skew = world.scenario.skew.as_millis() as f64;
        let ahead = ((random.share() * 2.0 - 1.0) * skew) as i64;
        let clock = MachineClock { timeline: world.timeline.clone(), ahead };
        let process = Process::new(world, &clock, &mut random);
        Self { clock, random, policy: Policy::default(), process }
    }

    /// Processes a batch, and says which records are acknowledged. `None` if the invocation was killed.
    pub(crate) async fn invoke(
        &mut self,
        world: &Arc<World>,
        batch: &[Message],
    ) -> Option<Vec<bool>> {
        let seen = Arc::new(Seen::default());
        let now = world.timeline.now();
        let is_crashed = world.scenario.suffers(FaultKind::Crashes, now);
        let crash = (is_crashed && self.random.chance(CRASHES))
            .then(|| self.random.up_to(world.scenario.handler.0 * 4));
        let deliveries = batch.iter().map(|message| self.delivery(world, message, &seen)).collect();
        let killed_after = crash.unwrap_or(world.scenario.timeout).min(world.scenario.timeout);
        let invocation_deadline = Some(self.clock.now().plus(world.scenario.timeout));
        let outcomes = {
            let mut running = pin!(self.process.engine.run(Batch {
                operation: "fleet",
                deliveries,
                after_failure: AfterFailure::Group,
                policy: &self.policy,
                request_id: None,
                invocation_deadline,
                pace: &self.process.pace,
            }));
            let mut kill = pin!(world.timeline.sleep(killed_after));
            poll_fn(|context| {
                if let Poll::Ready(outcomes) = running.as_mut().poll(context) {
                    return Poll::Ready(Some(outcomes));
                }
                if seen.is_killed.load(Ordering::Relaxed) {
                    return Poll::Ready(None);
                }
                kill.as_mut().poll(context).map(|()| None)
            })
            .await
        };
        self.judge(world, batch, &seen, outcomes.as_deref());
        trace(world, batch, now, outcomes.as_deref());
        if outcomes.is_none() {
            self.process = Process::new(world, &self.clock, &mut self.random);
            world.timeline.sleep(START).await;
        }
        Some(outcomes?.iter().map(Outcome::is_acknowledged).collect())
    }

    fn delivery<'a>(
        &mut self,
        world: &Arc<World>,
        message: &Message,
        seen: &Arc<Seen>,
    ) -> Delivery<'a> {
        let number = world.scenario.key(message.record);
        let (median, sigma) = world.scenario.handler;
        let takes = self.random.around(median, sigma);
        let (world, seen) = (Arc::clone(world), Arc::clone(seen));
        let job: Job<'a> =
            Box::new(move |_| Box::pin(async move { handle(&world, number, takes, &seen).await }));
        Delivery {
            record: RecordId::new("sqs", message.record.to_string()),
            delivered: Delivered::default(),
            group: None,
            receives: u32::from(message.receives),
            work: Work::Keyed { key: key(number), fingerprint: None, payload: "", job },
            divert: None,
        }
    }

    /// Enters into the ledger what became of a batch.
    fn judge(&self, world: &World, batch: &[Message], seen: &Seen, outcomes: Option<&[Outcome]>) {
        let mut ledger = world.ledger();
        let effects = seen.effects.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(outcomes) = outcomes else {
            for key in effects.iter().filter(|key| !world.table.is_completed(**key)) {
                ledger.excuse(*key, Cause::Killed);
            }
            return;
        };
        for (message, outcome) in batch.iter().zip(outcomes) {
            let key = world.scenario.key(message.record);
            ledger.outcome(key, outcome);
            match outcome {
                Outcome::Executed { .. } if !world.table.is_completed(key) => {
                    ledger.uncompleted();
                }
                Outcome::CompletionLost { .. } => ledger.excuse(key, Cause::CompletionLost),
                Outcome::TimedOut { .. } if effects.contains(&key) => {
                    ledger.excuse(key, Cause::Stopped);
                }
                _ => {}
            }
        }
    }
}

/// Prints what became of a batch, if it has the record that is traced.
fn trace(world: &World, batch: &[Message], begun: Micros, outcomes: Option<&[Outcome]>) {
    let Some(record) = world.scenario.trace else { return };
    if !batch.iter().any(|message| message.record == record) {
        return;
    }
    let seconds = |at: Micros| Duration::from_micros(at).as_secs_f64();
    println!("{:.3} s to {:.3} s", seconds(begun), seconds(world.timeline.now()));
    for (at, message) in batch.iter().enumerate() {
        let label = outcomes.and_then(|all| all.get(at)).map_or("killed", Outcome::label);
        let Message { record, receives, .. } = message;
        println!("  record {record}, receive {receives}: {label}");
    }
}

impl Process {
    fn new(world: &World, clock: &MachineClock, random: &mut Random) -> Self {
        let store = TableStore::new(world.table.clone(), clock.clone(), random.number());
        let cache = if world.scenario.remembers { Cache::new() } else { Cache::off() };
        let engine = Engine::new(store).with_clock(clock.clone()).with_cache(cache);
        Self { engine, pace: Pace::default() }
    }
}

/// The handler.
async fn handle(
    world: &Arc<World>,
    key: u32,
    takes: Duration,
    seen: &Seen,
) -> Result<Returned, Failure> {
    let _running = Running::of(world, key);
    if world.scenario.is_killer(key) {
        seen.is_killed.store(true, Ordering::Relaxed);
        return std::future::pending().await;
    }
    if world.scenario.suffers(FaultKind::FailingHandlers, world.timeline.now()) {
        world.timeline.sleep(takes * SLOWER).await;
        return Err(Failure::transient("what it calls does not answer"));
    }
    world.timeline.sleep(takes.mul_f64(BEFORE_EFFECT)).await;
    if world.scenario.is_poison(key) {
        return Err(Failure::transient("it always fails"));
    }
    world.ledger().effect(key);
    seen.effects.lock().unwrap_or_else(PoisonError::into_inner).push(key);
    world.timeline.sleep(takes.mul_f64(1.0 - BEFORE_EFFECT)).await;
    Ok(Returned::Nothing)
}

/// A handler that works on a key.
struct Running {
    world: Arc<World>,
    key: u32,
}

impl Running {
    fn of(world: &Arc<World>, key: u32) -> Self {
        world.ledger().begins(key);
        Self { world: Arc::clone(world), key }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.world.ledger().ends(self.key);
    }
}
