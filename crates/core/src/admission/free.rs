//! Decides whether the record of a key may be deleted, so that its next delivery is new work.

use super::{
    admit::{Finding, admit},
    claim::Claim,
};
use crate::{
    clock::Timestamp,
    record::IdempotencyRecord,
    store::{Guard, RecordVersion},
};

/// The state of a key before it was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Freed {
    /// It had no record, or one that had expired.
    WasFree,
    /// Its work was done.
    Completed,
    /// Its work had failed permanently.
    PermanentlyFailed,
    /// An attempt had failed, or was lost. Its effects may have happened, and the next attempt is not told of it: the
    /// counts of attempts and the steps that had finished are forgotten.
    Unfinished,
}

/// Decides whether the record of a key may be deleted. Returns the guard of the deletion and what the key was, or `None` if
/// there is no record. The guard names everything that was read: if it fails, a worker has changed the record meanwhile, so
/// read it again and decide again.
///
/// # Errors
/// A worker holds the key or has left it held, the record has messages that are not known to be sent and would be lost, or the
/// key belongs to another application than that of `claim`.
pub fn free(
    claim: &Claim,
    found: Option<&IdempotencyRecord>,
    now: Timestamp,
) -> Result<Option<(Guard, Freed)>, Finding> {
    let Some(found) = found else { return Ok(None) };
    let was = match admit(claim, Some(found), now) {
        foreign @ Finding::Foreign { .. } => return Err(foreign),
        _ if found.outbox.is_some() => return Err(Finding::Unsent(found.result.clone())),
        Finding::Free if now <= found.expires_at.plus(claim.clock_skew) => Freed::Unfinished,
        Finding::Free => Freed::WasFree,
        Finding::Completed(_) => Freed::Completed,
        Finding::Failed { .. } => Freed::PermanentlyFailed,
        finding => return Err(finding),
    };
    Ok(Some((Guard::Unchanged(RecordVersion::of(found)), was)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::{Owner, Status};

    fn freed(
        found: Option<&IdempotencyRecord>,
        now: u64,
    ) -> Result<Option<(Guard, Freed)>, Finding> {
        free(&Claim::reading(None, Duration::from_secs(1)), found, at(now))
    }

    const fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn record(status: Status) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(status, at(500));
        record.owner = Some(Owner::from_bits(1));
        record
    }

    fn was(record: &IdempotencyRecord, now: u64) -> Freed {
        let (guard, was) = freed(Some(record), now).unwrap().unwrap();
        assert_eq!(guard, Guard::Unchanged(RecordVersion::of(record)));
        was
    }

    #[test]
    fn what_is_final_is_deleted_as_it_was_read() {
        assert_eq!(freed(None, 1), Ok(None));
        assert_eq!(was(&record(Status::Completed), 501), Freed::Completed);
        assert_eq!(was(&record(Status::PermanentlyFailed), 1), Freed::PermanentlyFailed);
        assert_eq!(was(&record(Status::Completed), 502), Freed::WasFree);
    }

    #[test]
    fn a_key_is_busy_up_to_the_last_instant_of_its_lease_and_for_the_clock_skew() {
        let mut held = record(Status::InProgress);
        held.lease_until = Some(at(100));
        for left_held in [false, true] {
            if left_held {
                held.last_owner = held.owner.take();
            }
            assert_eq!(freed(Some(&held), 101), Err(Finding::Held { until: at(101) }));
            assert_eq!(was(&held, 102), Freed::Unfinished);
        }
        held.lease_until = None;
        assert_eq!(freed(Some(&held), 501), Err(Finding::Held { until: at(501) }));
        assert_eq!(was(&held, 502), Freed::WasFree);
    }

    #[test]
    fn messages_that_are_not_known_to_be_sent_are_not_lost() {
        let mut unsent = record(Status::Completed);
        unsent.outbox = Some("[]".into());
        for now in [1, 502] {
            assert_eq!(freed(Some(&unsent), now), Err(Finding::Unsent(None)));
        }
        unsent.application = Some("theirs".into());
        let ours = Claim::reading(Some("ours".into()), Duration::from_secs(1));
        let foreign = Finding::Foreign { application: "theirs".into() };
        assert_eq!(free(&ours, Some(&unsent), at(1)), Err(foreign), "theirs to send");
    }
}
