//! What may happen: batches, policies, faults of the store, and deaths.

use lambda_idempotency_core::{policy::Policy, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::GuardKind;

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Yield,
    Sleep(u64),
    Block(u64),
    Panic,
    Forever,
    /// The process dies, with all its invocations.
    Kill,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Ok,
    Transient,
    Permanent,
    Declined,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Keyed,
    Unprotected,
    Reject,
}

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) key: u8,
    pub(super) payload: u8,
    pub(super) group: Option<u8>,
    pub(super) receives: u32,
    pub(super) kind: Kind,
    pub(super) steps: Vec<Step>,
    pub(super) end: End,
    /// Whether somebody takes care of it if it will never be processed.
    pub(super) lets_pass: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub(super) records: Vec<Plan>,
    /// Which of the two processes it is in.
    pub(super) process: usize,
    /// Dropped after so many polls.
    pub(super) dies_after: Option<usize>,
    /// How often it is woken for nothing.
    pub(super) spurious: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    Refuse(StoreErrorKind),
    Lose,
    Delay(u64),
    DelayAnswer(u64),
    Duplicate(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StoreFault {
    pub(super) what: Trouble,
    pub(super) nth: usize,
    pub(super) times: usize,
    pub(super) key: Option<u8>,
    pub(super) guard: Option<GuardKind>,
    pub(super) reads: bool,
}

/// A message that a handler publishes: to one of two destinations, one of which keeps an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Queue,
    Fifo,
}

impl Line {
    pub(super) const fn to(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Fifo => "queue.fifo",
        }
    }

    pub(super) const fn is_grouped(self) -> bool {
        matches!(self, Self::Fifo)
    }
}

/// What goes wrong in a call of the sender.
#[derive(Clone, Copy, Debug)]
pub(super) enum WireTrouble {
    Panic,
    /// After its first message has arrived.
    PanicLater,
    /// It does not return, after all have arrived.
    Hang,
    Slow(u64),
    Refuse,
    RefuseOne(usize),
    /// All have arrived, and it says that none has.
    Lose,
    /// All have arrived, and it gives an answer too few.
    Short,
}

#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) policy: Policy,
    /// What handlers publish, by key.
    pub(super) publishes: Vec<Vec<Line>>,
    /// What goes wrong, by the call of the sender.
    pub(super) wire: Vec<Option<WireTrouble>>,
    /// The source counts receives, and after so many from one again, as after a redrive; otherwise
    /// records say any number.
    pub(super) counts: Option<u32>,
    pub(super) timeout: Option<u64>,
    pub(super) fingerprints: bool,
    pub(super) cache: bool,
    pub(super) faults: Vec<StoreFault>,
    pub(super) waves: Vec<(u64, Vec<Invocation>)>,
    /// Whether each record that does not kill, and is behind none that does in its group, has to be done in these
    /// waves.
    pub(super) all_start: bool,
}

impl Plan {
    /// A record whose handler succeeds at once.
    pub(super) fn quick(key: u8, payload: u8) -> Self {
        Self {
            key,
            payload,
            group: None,
            receives: 0,
            kind: Kind::Keyed,
            steps: vec![Step::Yield],
            end: End::Ok,
            lets_pass: true,
        }
    }
}

impl Scenario {
    /// The keys of the records that have to be done: they do not kill, and are behind none that does in their group.
    pub(super) fn innocent(&self) -> Vec<u8> {
        let last = self.waves.last().and_then(|(_, wave)| wave.first());
        let mut blocked = Vec::new();
        let mut innocent = Vec::new();
        for plan in last.iter().flat_map(|invocation| &invocation.records) {
            if plan.steps.iter().any(|step| matches!(step, Step::Kill)) {
                blocked.extend(plan.group);
            } else if plan.group.is_none_or(|group| !blocked.contains(&group)) {
                innocent.push(plan.key);
            }
        }
        innocent
    }

    /// Whether an invocation or a process dies.
    pub(super) fn has_deaths(&self) -> bool {
        let kills = |steps: &[Step]| steps.iter().any(|step| matches!(step, Step::Kill));
        self.waves.iter().flat_map(|(_, wave)| wave).any(|invocation| {
            invocation.dies_after.is_some()
                || invocation.records.iter().any(|plan| kills(&plan.steps))
        })
    }
}
