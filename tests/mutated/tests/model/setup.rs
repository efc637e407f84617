//! The configuration of a world and of its machines.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use crate::{
    core::{clock::Timestamp, key::Key, policy::Policy},
    powertools::Powertools,
    world::Faults,
};

/// By how much a clock may be ahead.
pub(crate) const SKEW: Duration = Duration::from_secs(1);

/// When a world begins.
pub(crate) const START: Timestamp = Timestamp::from_secs(1_000);

/// A record that is delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) key: usize,
    /// Which payload it has.
    pub(crate) payload: usize,
}

/// One world.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) processes: usize,
    /// The number of concurrent invocations of a process.
    pub(crate) at_once: usize,
    /// The maximum number of records of an invocation.
    pub(crate) batch: usize,
    pub(crate) messages: Vec<Message>,
    pub(crate) keys: Vec<Key>,
    /// Whether the messages are one order group.
    pub(crate) ordered: bool,
    /// Whether the source is a stream: what comes behind a record that is returned is delivered with it again, and
    /// receives are not counted.
    pub(crate) whole: bool,
    /// Whether handlers publish messages.
    pub(crate) publishes: bool,
    /// Whether claims carry a fingerprint of the payload.
    pub(crate) fingerprints: bool,
    /// Whether each payload belongs to another application, and to the process of its number.
    pub(crate) applications: bool,
    /// Whether handlers may fail permanently.
    pub(crate) fails_permanently: bool,
    /// Whether the server removes expired records, by a clock that may be ahead.
    pub(crate) sweeps: bool,
    /// Whether answers of the store may be late, as well as calls.
    pub(crate) late_answers: bool,
    /// The function that uses Powertools and shares the table.
    pub(crate) powertools: Option<Powertools>,
    /// Whether each handler has a step, after which it goes on.
    pub(crate) steps: bool,
    /// Whether processes die only while the first key's handler runs.
    pub(crate) poison: bool,
    /// The time of an invocation; `None` if it does not know its deadline.
    pub(crate) timeout: Option<Duration>,
    /// The visibility timeout of a message.
    pub(crate) visibility: Duration,
    /// The maximum time that a handler takes, unless it hangs.
    pub(crate) takes: Duration,
    /// Whether handlers end in the order in which they were started: larger worlds are small enough then.
    pub(crate) in_turn: bool,
    pub(crate) policy: &'static Policy,
    pub(crate) faults: Faults,
    /// How often a message may be received after the last fault.
    pub(crate) receives: u8,
    /// The same with `MODEL=large`, if that differs.
    pub(crate) larger_receives: Option<u8>,
    /// How often the handler of one key may die because of another's.
    pub(crate) harm: u8,
    /// The rule that is left out.
    pub(crate) left_out: Option<&'static str>,
    /// The properties that are known not to hold.
    pub(crate) lost: &'static [&'static str],
    /// The events that must occur.
    pub(crate) expect: &'static [&'static str],
    pub(crate) witness: Witness,
}

/// The events that occurred in any state of a world.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    seen: Mutex<BTreeSet<&'static str>>,
    receives: AtomicU8,
    harm: AtomicU8,
}

impl Witness {
    pub(crate) fn saw(&self, event: &'static str) {
        self.seen.lock().unwrap().insert(event);
    }

    pub(crate) fn received(&self, since_fault: u8) {
        self.receives.fetch_max(since_fault, Ordering::Relaxed);
    }

    pub(crate) fn harmed(&self, times: u8) {
        self.harm.fetch_max(times, Ordering::Relaxed);
    }

    pub(crate) fn seen(&self) -> BTreeSet<&'static str> {
        self.seen.lock().unwrap().clone()
    }

    /// The most receives of a message after the last fault.
    pub(crate) fn receives(&self) -> u8 {
        self.receives.load(Ordering::Relaxed)
    }

    /// The most deaths of a handler because of another key's.
    pub(crate) fn harm(&self) -> u8 {
        self.harm.load(Ordering::Relaxed)
    }
}

impl Setup {
    /// A world with one process and one invocation, for messages with these keys.
    pub(crate) fn new(name: &'static str, keys: &[usize]) -> Self {
        let distinct: BTreeSet<_> = keys.iter().collect();
        Self {
            name,
            processes: 1,
            at_once: 1,
            batch: keys.len(),
            messages: keys.iter().map(|key| Message { key: *key, payload: 0 }).collect(),
            keys: (0..distinct.len()).map(|key| Key::from_text(format!("k{key}"))).collect(),
            ordered: false,
            whole: false,
            publishes: false,
            fingerprints: false,
            applications: false,
            fails_permanently: false,
            sweeps: false,
            late_answers: false,
            powertools: None,
            steps: false,
            poison: false,
            timeout: Some(Duration::from_secs(6)),
            visibility: Duration::from_secs(12),
            takes: Duration::ZERO,
            in_turn: false,
            policy: leak(Policy::default()),
            faults: Faults::default(),
            receives: 1,
            larger_receives: None,
            harm: 1,
            left_out: None,
            lost: &[],
            expect: &[],
            witness: Witness::default(),
        }
    }

    pub(crate) fn policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        let mut policy = self.policy.clone();
        change(&mut policy);
        self.policy = leak(policy);
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// When the response of an invocation that ends then is due, as the machine's budget has it.
    pub(crate) fn reply(&self, ends: Timestamp) -> Timestamp {
        let total = self.timeout.unwrap_or_default();
        ends.minus(Duration::from_millis(250).min(total / 20))
    }

    /// With `MODEL=large`, the same world with one more death, lost answer, failure and clock step, of
    /// each kind that it has.
    pub(crate) fn grown(mut self) -> Self {
        // Larger, these would have tens of millions of states.
        let is_large_enough = self.processes > 2 || self.powertools.is_some_and(|it| it.is_ahead);
        if !Self::is_large() || is_large_enough {
            return self;
        }
        let faults = &mut self.faults;
        for kind in [&mut faults.deaths, &mut faults.losses, &mut faults.errors, &mut faults.steps]
        {
            *kind += u8::from(*kind > 0);
        }
        self.receives = self.larger_receives.unwrap_or(self.receives);
        self
    }

    /// Whether `MODEL=large` is set.
    pub(crate) fn is_large() -> bool {
        std::env::var_os("MODEL").is_some_and(|size| size == "large")
    }

    pub(crate) fn key(&self, key: &Key) -> usize {
        self.keys.iter().position(|other| other == key).expect("a key of this world")
    }
}

/// A machine borrows its policy, and the checker wants states without borrows.
fn leak(policy: Policy) -> &'static Policy {
    Box::leak(Box::new(policy))
}
