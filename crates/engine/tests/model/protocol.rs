//! What the model checks: by default the very functions of this crate.

use lambda_idempotency_core::{
    admission::{self, Admission, Claim, Held, Settled, Settlement},
    clock::Timestamp,
    record::IdempotencyRecord,
    store::{Guard, Write},
};

/// The decisions of the protocol. Every default is the real function; a mutant replaces one, or
/// leaves out a rule that the engine keeps.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// The rule that is not kept.
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

    /// What it means when that write found something else.
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

    /// Whether a rule of the engine is kept.
    fn keeps(rule: Rule) -> bool {
        Self::WITHOUT != Some(rule)
    }
}

/// The protocol as it is.
#[derive(Debug)]
pub(crate) struct Real;

impl Protocol for Real {}

/// What the functions of `admission` leave to the engine, and the model's worker does as the
/// engine is documented to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A handler starts only while its lease lasts by its worker's clock.
    StartsInTime,
    /// A delivery whose key is busy is not acknowledged, however long it has waited.
    BusyGoesBack,
    /// A handler is stopped when its lease has run out by its worker's clock.
    StopsWithItsLease,
    /// A renewal that was refused is no renewal.
    HeedsRefusals,
    /// A renewal without an answer counts as none.
    CountsOnNoDoubt,
    /// A renewal never asks for more than the ceiling.
    KeepsTheCeiling,
    /// Only copies of a record share its outcome.
    SharesWithCopiesOnly,
    /// Copies have their outcome when the record has.
    SharesAtTheEnd,
    /// Nothing after a record that goes back is started in its group.
    StopsTheGroup,
    /// An ordered source is told the first record that goes back.
    ReportsTheFirst,
    /// A failure that is one too many is permanent.
    FailsTheExhausted,
    /// A handler that is dropped at the deadline keeps its lease.
    LeavesTheLease,
    /// A key whose last owner disappeared is claimed and run only by a worker without other work.
    QuarantinedRunAlone,
}
