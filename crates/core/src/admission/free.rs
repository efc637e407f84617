//! Decides whether the record of a key may be deleted, so that its next delivery is new work.

use std::time::Duration;

use super::held_until;
use crate::{
    clock::Timestamp,
    record::{IdempotencyRecord, Status},
    store::{Guard, RecordVersion},
};

/// The decision of [`free`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Freeing {
    /// The key has no record.
    Nothing,
    /// Delete the record under this guard, which names everything that was read. If it is not the record any more, a
    /// worker has changed it: decide again.
    Delete {
        /// The condition.
        guard: Guard,
        /// The state of the key before.
        was: Freed,
    },
    /// A worker holds the key, or has left it held.
    Busy {
        /// Up to and including this instant.
        until: Timestamp,
    },
    /// The work is done, and its record still has messages that are not known to be sent. They would be lost.
    Unsent,
}

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
    /// An attempt had failed, or was lost. What it did may have happened, and the next attempt is not told of it: the
    /// counts of attempts and the steps that had finished are forgotten.
    Unfinished,
}

/// Decides whether the record that is stored under a key may be deleted. Whether it belongs to another application is for
/// the caller to judge.
#[must_use]
pub fn free(found: Option<&IdempotencyRecord>, clock_skew: Duration, now: Timestamp) -> Freeing {
    let Some(found) = found else { return Freeing::Nothing };
    let until = held_until(found, clock_skew);
    let has_expired = now > until.max(found.expires_at.plus(clock_skew));
    let was = match found.status {
        _ if found.outbox.is_some() => return Freeing::Unsent,
        Status::InProgress if now <= until => return Freeing::Busy { until },
        _ if has_expired => Freed::WasFree,
        Status::InProgress => Freed::Unfinished,
        Status::Completed => Freed::Completed,
        Status::PermanentlyFailed => Freed::PermanentlyFailed,
    };
    Freeing::Delete { guard: Guard::Unchanged(RecordVersion::of(found)), was }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Owner;

    const SKEW: Duration = Duration::from_secs(1);

    const fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn record(status: Status) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(status, at(500));
        record.owner = Some(Owner::from_bits(1));
        record
    }

    fn was(record: &IdempotencyRecord, now: u64) -> Freed {
        let Freeing::Delete { guard, was } = free(Some(record), SKEW, at(now)) else {
            panic!("it is refused")
        };
        assert_eq!(guard, Guard::Unchanged(RecordVersion::of(record)));
        was
    }

    #[test]
    fn what_is_final_is_deleted_as_it_was_read() {
        assert_eq!(free(None, SKEW, at(1)), Freeing::Nothing);
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
            assert_eq!(free(Some(&held), SKEW, at(101)), Freeing::Busy { until: at(101) });
            assert_eq!(was(&held, 102), Freed::Unfinished);
        }
        held.lease_until = None;
        assert_eq!(free(Some(&held), SKEW, at(501)), Freeing::Busy { until: at(501) });
        assert_eq!(was(&held, 502), Freed::WasFree);
    }

    #[test]
    fn messages_that_are_not_known_to_be_sent_are_not_lost() {
        let mut unsent = record(Status::Completed);
        unsent.outbox = Some("[]".into());
        for now in [1, 502] {
            assert_eq!(free(Some(&unsent), SKEW, at(now)), Freeing::Unsent);
        }
    }
}
