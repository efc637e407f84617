//! Guards that accept records that they should refuse.

use lambda_idempotency_core::{
    record::{IdempotencyRecord, Status},
    store::{Guard, RecordVersion, Write},
};

use crate::protocol::{Protocol, REAL};

/// A takeover names the status and the owner only.
pub(crate) const NAMES_STATUS_AND_OWNER: Protocol = Protocol {
    applies: |write, found| {
        applies_but_for(write, found, |seen, other| {
            seen.last_owner = other.last_owner;
            seen.lease_until = other.lease_until;
            seen.expires_at = other.expires_at;
        })
    },
    ..REAL
};

/// A takeover does not name the last owner.
pub(crate) const NAMES_NO_LAST_OWNER: Protocol = Protocol {
    applies: |write, found| {
        applies_but_for(write, found, |seen, other| seen.last_owner = other.last_owner)
    },
    ..REAL
};

/// A takeover does not name the lease.
pub(crate) const NAMES_NO_LEASE: Protocol = Protocol {
    applies: |write, found| {
        applies_but_for(write, found, |seen, other| seen.lease_until = other.lease_until)
    },
    ..REAL
};

/// A settlement needs a record in progress, of any owner.
pub(crate) const SETTLES_FOR_ANYONE: Protocol = Protocol {
    applies: |write, found| {
        let in_progress = found.is_some_and(|r| r.status == Status::InProgress);
        write.applies(found) || matches!(write.guard, Guard::OwnedBy(_)) && in_progress
    },
    ..REAL
};

/// A settlement needs its own token, whatever the status.
pub(crate) const SETTLES_IN_ANY_STATUS: Protocol = Protocol {
    applies: |write, found| {
        let Guard::OwnedBy(owner) = &write.guard else { return write.applies(found) };
        write.applies(found) || found.is_some_and(|record| record.owner == Some(*owner))
    },
    ..REAL
};

/// A completion that found no record overwrites whatever was written since.
pub(crate) const COMPLETES_OVER_ANYTHING: Protocol = Protocol {
    applies: |write, found| {
        let completes = write.record.as_ref().is_some_and(|r| r.status == Status::Completed);
        write.applies(found) || write.guard == Guard::Absent && completes
    },
    ..REAL
};

/// Applies a write as if its `RecordVersion` did not name the fields that `forget` copies over.
fn applies_but_for(
    write: &Write,
    found: Option<&IdempotencyRecord>,
    forget: fn(&mut RecordVersion, &RecordVersion),
) -> bool {
    let (Guard::Unchanged(seen), Some(record)) = (&write.guard, found) else {
        return write.applies(found);
    };
    let (mut seen, there) = (seen.clone(), RecordVersion::of(record));
    forget(&mut seen, &there);
    seen == there
}
