//! The checked protocol: by default the real functions of the core crate.

use lambda_idempotency_core::{
    admission::{self, Admission, Claim, Held, Settled, Settlement},
    clock::Timestamp,
    record::IdempotencyRecord,
    store::{Guard, Write},
};

/// The decisions of the protocol. Every default is the real function. A mutant replaces one, or leaves
/// out a rule of the engine.
pub(crate) trait Decisions {
    /// The rule that a mutant leaves out.
    const WITHOUT: Option<Rule> = None;

    /// Decides about a claim.
    fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
        admission::admit(claim, found, now)
    }

    /// The write that settles a claim.
    fn write(
        held: &Held,
        settlement: &Settlement,
        now: Timestamp,
    ) -> (Guard, Option<IdempotencyRecord>) {
        held.write(settlement, now)
    }

    /// What it means that this write was refused.
    fn settled(
        held: &Held,
        settlement: &Settlement,
        found: Option<&IdempotencyRecord>,
        now: Timestamp,
    ) -> Settled {
        held.settled(settlement, found, now)
    }

    /// Whether a store applies a write.
    fn applies(write: &Write, found: Option<&IdempotencyRecord>) -> bool {
        write.applies(found)
    }
}

/// The decisions as values, so that the explorer is compiled once, and not for each mutant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol {
    pub(crate) admit: fn(&Claim, Option<&IdempotencyRecord>, Timestamp) -> Admission,
    pub(crate) write: fn(&Held, &Settlement, Timestamp) -> (Guard, Option<IdempotencyRecord>),
    pub(crate) settled: fn(&Held, &Settlement, Option<&IdempotencyRecord>, Timestamp) -> Settled,
    pub(crate) applies: fn(&Write, Option<&IdempotencyRecord>) -> bool,
    without: Option<Rule>,
}

impl Protocol {
    pub(crate) const fn of<D: Decisions>() -> Self {
        Self {
            admit: D::admit,
            write: D::write,
            settled: D::settled,
            applies: D::applies,
            without: D::WITHOUT,
        }
    }

    /// Whether a rule of the engine is kept.
    pub(crate) fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}

/// The protocol as it is.
pub(crate) struct Real;

impl Decisions for Real {}

/// The engine's own rules, which the model's worker follows as the engine documents them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A handler starts only while its lease lasts by its worker's clock.
    StartsInTime,
    /// A delivery whose key is busy is not acknowledged, however long it has waited.
    ReturnsBusy,
    /// A handler is stopped when its lease has expired by its worker's clock.
    StopsWithItsLease,
    /// A handler whose renewal was refused is stopped.
    StopsWhenRefused,
    /// A renewal without an answer does not extend the lease that the worker relies on.
    TrustsOnlyAnsweredRenewals,
    /// A renewal never asks for more than the ceiling.
    KeepsTheCeiling,
    /// Only copies of a record share its outcome.
    SharesWithCopiesOnly,
    /// Copies get their outcome when the record gets it.
    SharesAtTheEnd,
    /// After a returned record, no record of its group is started.
    StopsTheGroup,
    /// The response to an ordered source names the first returned record.
    ReportsTheFirst,
    /// A failure that reaches the maximum of failed attempts is permanent.
    FailsTheExhausted,
    /// A handler that is dropped at the deadline keeps its lease.
    LeavesTheLease,
    /// A key whose last attempt was lost is claimed and run only by a worker without other work.
    QuarantinedRunAlone,
}
