//! Settlements with a mistake.

use lambda_idempotency_core::{
    admission::{Held, Overtaken, Settled, Settlement},
    clock::Timestamp,
    record::{IdempotencyRecord, Status},
    store::Guard,
};

use crate::protocol::Decisions;

/// Deletes the record when the handler failed.
pub(crate) struct DeletesOnFailure;

impl Decisions for DeletesOnFailure {
    fn write(
        held: &Held,
        settlement: &Settlement,
        now: Timestamp,
    ) -> (Guard, Option<IdempotencyRecord>) {
        let (guard, record) = held.write(settlement, now);
        (guard, record.filter(|_| !matches!(settlement, Settlement::Release { .. })))
    }
}

/// Deletes the record when its claim is undone, with the counts of earlier attempts.
pub(crate) struct UndoForgets;

impl Decisions for UndoForgets {
    fn write(
        held: &Held,
        settlement: &Settlement,
        now: Timestamp,
    ) -> (Guard, Option<IdempotencyRecord>) {
        let (guard, record) = held.write(settlement, now);
        (guard, record.filter(|_| *settlement != Settlement::Undo))
    }
}

/// Counts a handler that its own worker has stopped among the losses in a row.
pub(crate) struct SuspectsTheStopped;

impl Decisions for SuspectsTheStopped {
    fn write(
        held: &Held,
        settlement: &Settlement,
        now: Timestamp,
    ) -> (Guard, Option<IdempotencyRecord>) {
        let (guard, mut record) = held.write(settlement, now);
        if let (Settlement::LeaveStanding, Some(record)) = (settlement, &mut record) {
            record.consecutive_losses = held.record.consecutive_losses + 1;
        }
        (guard, record)
    }
}

/// Renews by the token alone, so that a late copy of a renewal shortens a newer one.
pub(crate) struct RenewsByOwnerAlone;

impl Decisions for RenewsByOwnerAlone {
    fn write(
        held: &Held,
        settlement: &Settlement,
        now: Timestamp,
    ) -> (Guard, Option<IdempotencyRecord>) {
        let (guard, record) = held.write(settlement, now);
        let renews = matches!(settlement, Settlement::Renew { .. });
        (if renews { Guard::OwnedBy(held.claim.owner) } else { guard }, record)
    }
}

/// Renews the lease, but not the record's expiry.
pub(crate) struct RenewsTheLeaseAlone;

impl Decisions for RenewsTheLeaseAlone {
    fn write(
        held: &Held,
        settlement: &Settlement,
        now: Timestamp,
    ) -> (Guard, Option<IdempotencyRecord>) {
        let (guard, mut record) = held.write(settlement, now);
        if let (Settlement::Renew { .. }, Some(record)) = (settlement, &mut record) {
            record.expires_at = held.record.expires_at;
        }
        (guard, record)
    }
}

/// Does not recognise its own settlement.
pub(crate) struct IgnoresItsSettlement;

impl Decisions for IgnoresItsSettlement {
    fn settled(
        held: &Held,
        settlement: &Settlement,
        found: Option<&IdempotencyRecord>,
        now: Timestamp,
    ) -> Settled {
        match (held.settled(settlement, found, now), found) {
            (Settled::Done, Some(found)) => Settled::Overtaken(overtaken_by(found)),
            (other, _) => other,
        }
    }
}

/// Takes its own record, written by an earlier request, for a successor's.
pub(crate) struct TakesItselfForASuccessor;

impl Decisions for TakesItselfForASuccessor {
    fn settled(
        held: &Held,
        settlement: &Settlement,
        found: Option<&IdempotencyRecord>,
        now: Timestamp,
    ) -> Settled {
        match (held.settled(settlement, found, now), found) {
            (Settled::Again { .. }, Some(found)) => Settled::Overtaken(overtaken_by(found)),
            (other, _) => other,
        }
    }
}

/// Treats a completion that finds no record as recorded.
pub(crate) struct TakesMissingForDone;

impl Decisions for TakesMissingForDone {
    fn settled(
        held: &Held,
        settlement: &Settlement,
        found: Option<&IdempotencyRecord>,
        now: Timestamp,
    ) -> Settled {
        match held.settled(settlement, found, now) {
            Settled::Again { guard: Guard::Absent, .. } => Settled::Done,
            other => other,
        }
    }
}

/// Counts work as done that a successor is still doing.
pub(crate) struct TrustsTheSuccessor;

impl Decisions for TrustsTheSuccessor {
    fn settled(
        held: &Held,
        settlement: &Settlement,
        found: Option<&IdempotencyRecord>,
        now: Timestamp,
    ) -> Settled {
        match held.settled(settlement, found, now) {
            Settled::Overtaken(Overtaken::InProgress { .. }) => Settled::Done,
            other => other,
        }
    }
}

fn overtaken_by(found: &IdempotencyRecord) -> Overtaken {
    match found.status {
        Status::InProgress => Overtaken::InProgress { until: found.expires_at },
        Status::Completed => Overtaken::Completed(found.result.clone()),
        Status::PermanentlyFailed => Overtaken::PermanentlyFailed {
            error_type: found.error_type.clone(),
            fence: found.fence,
        },
    }
}
