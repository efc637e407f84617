//! The fate of the first execution of an order.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    kinds::{FaultKind, Mode},
    ledger::Step,
    random::Random,
    settings::Settings,
};

/// The fate of the first execution of an order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Plan {
    /// It is placed at once.
    Plain,
    /// It fails or panics a few times, and is placed then.
    Stumble(FaultKind),
    /// It fails permanently.
    Doomed,
    /// When it reaches this step, its process gets a signal: [`FaultKind::Kill`] or [`FaultKind::Stop`]. It waits there for the signal, blocking
    /// the thread (`holding`) or not.
    Signalled { at: Step, fault: FaultKind, holding: bool },
    /// At this step it waits past its deadline, blocking the thread (`holding`) or not. A process
    /// that misses its deadline is killed, or left running for a while beside its own retry.
    Overrun { at: Step, holding: bool, left_running: bool },
}

impl Plan {
    /// One plan of each kind in these settings, without the plain one.
    pub(crate) fn all(settings: &Settings) -> Vec<Self> {
        let kinds = settings.faults.iter().copied();
        kinds.flat_map(|kind| Self::of(kind, settings)).collect()
    }

    /// The plans with this fault. In a transaction the handler waits at [`Step::Effect`] after it has collected its
    /// effect, and at [`Step::Collected`] it does not wait: the signal comes while the transaction is committed. At
    /// [`Step::Kept`] it waits after its step.
    fn of(kind: FaultKind, settings: &Settings) -> Vec<Self> {
        let signalled = |fault, at, holding| Self::Signalled { at, fault, holding };
        let overrun = |at, holding, left_running| Self::Overrun { at, holding, left_running };
        let further: &[Step] = match settings.mode {
            Mode::Claim => &[],
            Mode::Transaction | Mode::Optimistic => &[Step::Collected],
            Mode::Steps => &[Step::Kept],
        };
        let further = further.iter().copied();
        match kind {
            FaultKind::Kill => [Step::Start, Step::Effect]
                .into_iter()
                .chain(further)
                .map(|at| signalled(FaultKind::Kill, at, false))
                .collect(),
            FaultKind::Stop => [
                signalled(FaultKind::Stop, Step::Start, false),
                signalled(FaultKind::Stop, Step::Start, true),
                signalled(FaultKind::Stop, Step::Effect, false),
                signalled(FaultKind::Stop, Step::Effect, true),
            ]
            .into_iter()
            .chain(further.map(|at| signalled(FaultKind::Stop, at, false)))
            .collect(),
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

    /// Chooses a plan: mostly the plain one; plans that take seconds are rare.
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
        random.pick(&Self::of(kind, settings)).cloned().unwrap_or(Self::Plain)
    }

    /// The members of the order that make the function follow this plan.
    pub(crate) fn script(&self, settings: &Settings, random: &mut Random) -> Value {
        let timeout = settings.timeout_ms();
        let wait = |at: &Step, holding: bool, ms: u64| {
            let member = match (at, holding) {
                (Step::Start, false) => "firstDelayMs",
                (Step::Start, true) => "firstBlockMs",
                // With a step, the first delay is after it.
                (Step::Kept, _) => "firstDelayMs",
                (Step::Collected, _) => return json!({}),
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
            // Short enough to meet the deadline if no signal comes.
            Self::Signalled { at, holding, .. } => wait(at, *holding, timeout * 6 / 10),
            Self::Overrun { at, holding: false, .. } => wait(at, false, timeout * 5),
            Self::Overrun { at, holding: true, .. } => wait(at, true, timeout + timeout / 2),
        }
    }
}

/// The largest difference between clocks, the rig's included.
pub(crate) const CLOCKS: Duration = Duration::from_secs(1);

/// How long a stopped process stays stopped: until the lease of an invocation that had just begun has
/// expired (its deadline and a second of lease grace), a successor with a slow clock may take the key (a
/// second of clock skew), and the message has been delivered again.
pub(crate) fn standstill(settings: &Settings) -> Duration {
    settings.timeout + Duration::from_secs(2) + CLOCKS + settings.visibility
}
