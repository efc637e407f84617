//! What happens to the first execution of an order.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{FaultKind, Settings, ledger::Step, random::Random};

/// What happens to the first execution of an order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Plan {
    /// It is placed.
    Plain,
    /// It fails or panics at first.
    Stumble(FaultKind),
    /// It fails permanently.
    Doomed,
    /// When it has come to this step, its process gets a signal. It waits there for that, holding
    /// the thread or not.
    Signalled { at: Step, fault: ProcessFault, holding: bool },
    /// Having come to this step it takes longer than it may, holding the thread or not. A process
    /// that misses its deadline is killed, or left running for a while beside its own retry.
    Overrun { at: Step, holding: bool, left_running: bool },
}

/// The signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ProcessFault {
    Kill,
    /// Stopped, and told to go on when the lease is over and taken by somebody else.
    Stop,
}

impl Plan {
    /// One of each kind in these settings, but for the plain one.
    pub(crate) fn all(settings: &Settings) -> Vec<Self> {
        let kinds = settings.faults.iter().copied();
        kinds.flat_map(Self::of).collect()
    }

    /// The plans in which this fault shows.
    fn of(kind: FaultKind) -> Vec<Self> {
        let signalled = |fault, at, holding| Self::Signalled { at, fault, holding };
        let overrun = |at, holding, left_running| Self::Overrun { at, holding, left_running };
        match kind {
            FaultKind::Kill => [Step::Start, Step::Effect]
                .map(|at| signalled(ProcessFault::Kill, at, false))
                .into(),
            FaultKind::Stop => vec![
                signalled(ProcessFault::Stop, Step::Start, false),
                signalled(ProcessFault::Stop, Step::Start, true),
                signalled(ProcessFault::Stop, Step::Effect, false),
                signalled(ProcessFault::Stop, Step::Effect, true),
            ],
            FaultKind::Timeout => vec![
                overrun(Step::Start, false, false),
                overrun(Step::Effect, false, false),
                overrun(Step::Start, true, false),
                overrun(Step::Effect, true, false),
                overrun(Step::Start, true, true),
            ],
            FaultKind::Fail | FaultKind::Panic => vec![Self::Stumble(kind)],
            FaultKind::DeadLetter => vec![Self::Doomed],
            _ => Vec::new(),
        }
    }

    /// Mostly plain; what takes seconds is rare.
    pub(crate) fn random(settings: &Settings, random: &mut Random) -> Self {
        let kind = match random.between(1, 1000) {
            1..=4 => FaultKind::Kill,
            5..=7 => FaultKind::Stop,
            8..=10 => FaultKind::Timeout,
            11..=30 => FaultKind::Fail,
            31..=45 => FaultKind::Panic,
            46..=48 => FaultKind::DeadLetter,
            _ => return Self::Plain,
        };
        if !settings.has(kind) {
            return Self::Plain;
        }
        random.pick(&Self::of(kind)).cloned().unwrap_or(Self::Plain)
    }

    /// What the function has to do for this: members of the order.
    pub(crate) fn script(&self, settings: &Settings, random: &mut Random) -> Value {
        let timeout = settings.timeout_ms();
        let wait = |at: &Step, holding: bool, ms: u64| {
            let member = match (at, holding) {
                (Step::Start, false) => "firstDelayMs",
                (Step::Start, true) => "firstBlockMs",
                (Step::Effect, false) => "lateDelayMs",
                (Step::Effect, true) => "lateBlockMs",
            };
            json!({ member: ms })
        };
        match self {
            Self::Plain if random.one_in(5) => json!({ "delayMs": random.between(1, 25) }),
            Self::Plain | Self::Doomed => json!({}),
            Self::Stumble(FaultKind::Panic) => json!({ "panicTimes": random.between(1, 2) }),
            Self::Stumble(_) => json!({ "failTimes": random.between(1, 3) }),
            // Without a signal it is in time all the same.
            Self::Signalled { at, holding, .. } => wait(at, *holding, timeout * 6 / 10),
            Self::Overrun { at, holding: false, .. } => wait(at, false, timeout * 5),
            Self::Overrun { at, holding: true, .. } => wait(at, true, timeout + timeout / 2),
        }
    }
}

/// The most that clocks, ours included, may be off together.
const CLOCKS: Duration = Duration::from_secs(1);

/// How long a stopped process stands still: until the lease of an invocation that had just begun is
/// over (its deadline and a second of lease grace), a successor may take it (a second for clock skew, by a clock
/// that is slow), and the message has been delivered again.
pub(crate) fn standstill(settings: &Settings) -> Duration {
    settings.timeout + Duration::from_secs(2) + CLOCKS + settings.visibility
}
