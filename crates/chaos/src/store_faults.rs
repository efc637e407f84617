//! When the store fails, and how.

use std::time::Duration;

use lambda_idempotency_local::{Apply, Fault};

use crate::{kinds::FaultKind, random::Random, settings::Settings};

/// How many messages are sent between two store faults, on average.
const PERIOD: u64 = 60;

const TRANSACTION: &str = "TransactWriteItems";
/// Why a transaction may be cancelled that is sent again then.
const CANCELLATIONS: [&str; 3] =
    ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoreFault {
    /// It begins when this many messages have been sent.
    pub(crate) at: usize,
    pub(crate) trouble: Trouble,
}

/// A fault of the store: for a number of requests, or for all requests during a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Trouble {
    Throttle {
        times: u64,
    },
    ThrottleMembers {
        members: Vec<usize>,
        times: u64,
    },
    Error {
        after: bool,
        times: u64,
    },
    Drop {
        after: bool,
        times: u64,
    },
    Slow {
        ms: u64,
        times: u64,
    },
    Outage {
        ms: u64,
    },
    /// A transaction is cancelled, this member of it being the reason.
    Cancel {
        member: usize,
        code: &'static str,
        times: u64,
    },
    /// The same transaction is said to be in progress.
    InProgress {
        times: u64,
    },
    /// A transaction reaches the store after the lease of its owner, when a successor may have the key.
    Late {
        ms: u64,
    },
}

impl StoreFault {
    /// The store faults of a run. Each kind occurs once before the rest are random; long outages are rare.
    pub(crate) fn all(settings: &Settings, random: &mut Random) -> Vec<Self> {
        let beyond = Trouble::Outage { ms: settings.timeout_ms() + settings.timeout_ms() / 2 };
        let kinds: Vec<FaultKind> = settings
            .faults
            .iter()
            .copied()
            .filter(|kind| concerns_store(*kind) && settings.mode.has(*kind))
            .collect();
        // Two leases: the timeout, the lease grace, the clock skew, and time for a successor.
        let late = Trouble::Late { ms: settings.timeout_ms() * 2 + 2500 };
        let commits = settings.mode.commits();
        let mut forced = kinds.iter();
        let mut store_faults = Vec::new();
        let mut at = PERIOD / 2;
        while at < settings.deliveries as u64 && !kinds.is_empty() {
            let trouble = match forced.next() {
                Some(FaultKind::Outage) => beyond.clone(),
                Some(FaultKind::Slow) if commits => late.clone(),
                Some(kind) => Trouble::random(*kind, random),
                None => match random.pick(&kinds) {
                    Some(FaultKind::Outage) if random.one_in(40) => beyond.clone(),
                    Some(FaultKind::Slow) if commits && random.one_in(4) => late.clone(),
                    Some(kind) => Trouble::random(*kind, random),
                    None => break,
                },
            };
            store_faults.push(Self { at: usize::try_from(at).unwrap_or(usize::MAX), trouble });
            at += random.between(1, 2 * PERIOD);
        }
        store_faults
    }

    pub(crate) const fn kind(&self) -> FaultKind {
        match self.trouble {
            Trouble::Throttle { .. } | Trouble::ThrottleMembers { .. } => FaultKind::Throttle,
            Trouble::Error { .. } => FaultKind::Error,
            Trouble::Drop { .. } => FaultKind::Drop,
            Trouble::Slow { .. } | Trouble::Late { .. } => FaultKind::Slow,
            Trouble::Cancel { .. } | Trouble::InProgress { .. } => FaultKind::Conflict,
            Trouble::Outage { .. } => FaultKind::Outage,
        }
    }

    /// The fault of the embedded DynamoDB to activate, and for how long if it does not end after a number of requests.
    pub(crate) fn fault(&self) -> (Fault, Option<Duration>) {
        let (fault, times) = match &self.trouble {
            Trouble::Throttle { times } => (Fault::throttled(), times),
            Trouble::ThrottleMembers { members, times } => {
                (Fault::throttle_members(members.iter().copied()), times)
            }
            Trouble::Error { after, times } => (Fault::internal_error(apply(*after)), times),
            Trouble::Drop { after, times } => (Fault::hang_up(apply(*after)), times),
            Trouble::Slow { ms, times } => (Fault::delay(Duration::from_millis(*ms)), times),
            Trouble::Cancel { member, code, times } => {
                (Fault::cancel_transaction(*member, *code), times)
            }
            Trouble::InProgress { times } => (
                Fault::error(Apply::Before, 400, "TransactionInProgressException").on(TRANSACTION),
                times,
            ),
            Trouble::Late { ms } => (Fault::delay(Duration::from_millis(*ms)).on(TRANSACTION), &1),
            Trouble::Outage { ms } => {
                return (Fault::unavailable(), Some(Duration::from_millis(*ms)));
            }
        };
        (fault.times(*times), None)
    }
}

impl Trouble {
    fn random(kind: FaultKind, random: &mut Random) -> Self {
        let times = random.between(1, 6);
        let after = random.one_in(2);
        match kind {
            FaultKind::Throttle if random.one_in(2) => {
                let members = (0..10).filter(|_| random.one_in(3)).collect();
                Self::ThrottleMembers { members, times }
            }
            FaultKind::Throttle => Self::Throttle { times },
            FaultKind::Conflict if random.one_in(4) => Self::InProgress { times },
            FaultKind::Conflict => {
                let code = random.pick(&CANCELLATIONS).copied().unwrap_or("TransactionConflict");
                Self::Cancel { member: usize::from(random.one_in(2)), code, times }
            }
            FaultKind::Error => Self::Error { after, times },
            FaultKind::Drop => Self::Drop { after, times },
            // The client abandons a request after a second and sends it again. The first is applied as well.
            FaultKind::Slow => {
                let ms = if random.one_in(4) { 1200 } else { random.between(20, 400) };
                Self::Slow { ms, times }
            }
            _ => Self::Outage { ms: random.between(20, 200) },
        }
    }
}

const fn concerns_store(kind: FaultKind) -> bool {
    use FaultKind::{Conflict, Drop, Error, Outage, Slow, Throttle};
    matches!(kind, Throttle | Error | Drop | Slow | Outage | Conflict)
}

/// Before or after the write is applied.
fn apply(after: bool) -> Apply {
    if after { Apply::After } else { Apply::Before }
}
