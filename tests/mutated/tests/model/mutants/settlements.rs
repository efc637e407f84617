//! Settlements with a mistake.

use lambda_idempotency_core::{
    admission::{Overtaken, Settled, Settlement},
    record::{IdempotencyRecord, Status},
    store::Guard,
};

use crate::protocol::{Protocol, REAL};

/// Deletes the record when the handler failed.
pub(crate) const DELETES_ON_FAILURE: Protocol = Protocol {
    write: |held, settlement, now| {
        let (guard, record) = held.write(settlement, now);
        (guard, record.filter(|_| !matches!(settlement, Settlement::Release { .. })))
    },
    ..REAL
};

/// Deletes the record when its claim is undone, with the counts of earlier attempts.
pub(crate) const UNDO_FORGETS: Protocol = Protocol {
    write: |held, settlement, now| {
        let (guard, record) = held.write(settlement, now);
        (guard, record.filter(|_| *settlement != Settlement::Undo))
    },
    ..REAL
};

/// Releases the key of a handler that was dropped.
pub(crate) const RELEASES_WHAT_WAS_DROPPED: Protocol = Protocol {
    write: |held, settlement, now| match settlement {
        Settlement::LeaveStanding => {
            held.write(&Settlement::Release { error_type: "x".into() }, now)
        }
        _ => held.write(settlement, now),
    },
    ..REAL
};

/// Counts a handler that its own worker has stopped among the losses in a row.
pub(crate) const SUSPECTS_THE_STOPPED: Protocol = Protocol {
    write: |held, settlement, now| {
        let (guard, mut record) = held.write(settlement, now);
        if let (Settlement::LeaveStanding, Some(record)) = (settlement, &mut record) {
            record.consecutive_losses = held.record.consecutive_losses + 1;
        }
        (guard, record)
    },
    ..REAL
};

/// Renews by the token alone, so that a late copy of a renewal shortens a newer one.
pub(crate) const RENEWS_BY_OWNER_ALONE: Protocol = Protocol {
    write: |held, settlement, now| {
        let (guard, record) = held.write(settlement, now);
        let renews = matches!(settlement, Settlement::Renew { .. });
        (if renews { Guard::OwnedBy(held.claim.owner) } else { guard }, record)
    },
    ..REAL
};

/// Renews the lease, but not the record's expiry.
pub(crate) const RENEWS_THE_LEASE_ALONE: Protocol = Protocol {
    write: |held, settlement, now| {
        let (guard, mut record) = held.write(settlement, now);
        if let (Settlement::Renew { .. }, Some(record)) = (settlement, &mut record) {
            record.expires_at = held.record.expires_at;
        }
        (guard, record)
    },
    ..REAL
};

/// Does not recognise its own settlement.
pub(crate) const IGNORES_ITS_SETTLEMENT: Protocol = Protocol {
    settled: |held, settlement, found, now| match (held.settled(settlement, found, now), found) {
        (Settled::Done, Some(found)) => Settled::Overtaken(overtaken_by(found)),
        (other, _) => other,
    },
    ..REAL
};

/// Takes its own record, written by an earlier request, for a successor's.
pub(crate) const TAKES_ITSELF_FOR_A_SUCCESSOR: Protocol = Protocol {
    settled: |held, settlement, found, now| match (held.settled(settlement, found, now), found) {
        (Settled::Again { .. }, Some(found)) => Settled::Overtaken(overtaken_by(found)),
        (other, _) => other,
    },
    ..REAL
};

/// Treats a completion that finds no record as recorded.
pub(crate) const TAKES_MISSING_FOR_DONE: Protocol = Protocol {
    settled: |held, settlement, found, now| match held.settled(settlement, found, now) {
        Settled::Again { guard: Guard::Absent, .. } => Settled::Done,
        other => other,
    },
    ..REAL
};

/// Counts work as done that a successor is still doing.
pub(crate) const TRUSTS_THE_SUCCESSOR: Protocol = Protocol {
    settled: |held, settlement, found, now| match held.settled(settlement, found, now) {
        Settled::Overtaken(Overtaken::InProgress { .. }) => Settled::Done,
        other => other,
    },
    ..REAL
};

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
