//! Guards that accept records that they should refuse.

use lambda_idempotency_core::{
    record::{IdempotencyRecord, Status},
    store::{Guard, RecordVersion, Write},
};

use crate::protocol::Decisions;

/// A takeover names the status and the owner only.
pub(crate) struct NamesStatusAndOwner;

impl Decisions for NamesStatusAndOwner {
    fn applies(write: &Write, found: Option<&IdempotencyRecord>) -> bool {
        applies_but_for(write, found, |seen, other| {
            seen.last_owner = other.last_owner;
            seen.lease_until = other.lease_until;
            seen.expires_at = other.expires_at;
        })
    }
}

/// A takeover does not name the last owner.
pub(crate) struct NamesNoLastOwner;

impl Decisions for NamesNoLastOwner {
    fn applies(write: &Write, found: Option<&IdempotencyRecord>) -> bool {
        applies_but_for(write, found, |seen, other| seen.last_owner = other.last_owner)
    }
}

/// A takeover does not name the lease.
pub(crate) struct NamesNoLease;

impl Decisions for NamesNoLease {
    fn applies(write: &Write, found: Option<&IdempotencyRecord>) -> bool {
        applies_but_for(write, found, |seen, other| seen.lease_until = other.lease_until)
    }
}

/// A settlement needs a record in progress, of any owner.
pub(crate) struct SettlesForAnyone;

impl Decisions for SettlesForAnyone {
    fn applies(write: &Write, found: Option<&IdempotencyRecord>) -> bool {
        let in_progress = found.is_some_and(|r| r.status == Status::InProgress);
        write.applies(found) || matches!(write.guard, Guard::OwnedBy(_)) && in_progress
    }
}

/// A settlement needs its own token, whatever the status.
pub(crate) struct SettlesInAnyStatus;

impl Decisions for SettlesInAnyStatus {
    fn applies(write: &Write, found: Option<&IdempotencyRecord>) -> bool {
        let Guard::OwnedBy(owner) = &write.guard else { return write.applies(found) };
        write.applies(found) || found.is_some_and(|record| record.owner == Some(*owner))
    }
}

/// A completion that found no record overwrites whatever was written since.
pub(crate) struct CompletesOverAnything;

impl Decisions for CompletesOverAnything {
    fn applies(write: &Write, found: Option<&IdempotencyRecord>) -> bool {
        let completes = write.record.as_ref().is_some_and(|r| r.status == Status::Completed);
        write.applies(found) || write.guard == Guard::Absent && completes
    }
}

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
