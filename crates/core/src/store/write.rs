//! A conditional write: the key, what must be there, and what replaces it.

use crate::{
    clock::Timestamp,
    effects::Effects,
    key::Key,
    record::{IdempotencyRecord, Owner, Status},
};

/// One conditional write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    /// The key to write.
    pub key: Key,
    /// What must be there now.
    pub guard: Guard,
    /// The record to store, which replaces every field; `None` deletes the record.
    pub record: Option<IdempotencyRecord>,
    /// What is to be applied together with the record, in one transaction. Only beside a record: a store
    /// refuses a deletion with effects. It may send them again, and applies them at most once.
    pub effects: Option<Effects>,
}

/// The condition of a [`Write`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// The key has no record, not even an expired one.
    Absent,
    /// The record is exactly the one that was read.
    Unchanged(RecordVersion),
    /// The record is in progress and carries this token.
    ///
    /// If what is written has a provenance, that is the provenance of the claim with this token, which is stored: a store
    /// need not write it again.
    OwnedBy(Owner),
}

/// All that was read of a record and that a later write could have changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordVersion {
    /// The status read.
    pub status: Status,
    /// The owner read.
    pub owner: Option<Owner>,
    /// The last owner read. Two releases within the same second differ only in this field.
    pub last_owner: Option<Owner>,
    /// The lease read.
    pub lease_until: Option<Timestamp>,
    /// The expiry read.
    pub expires_at: Timestamp,
}

impl RecordVersion {
    /// The version of this record.
    #[must_use]
    pub const fn of(record: &IdempotencyRecord) -> Self {
        Self {
            status: record.status,
            owner: record.owner,
            last_owner: record.last_owner,
            lease_until: record.lease_until,
            expires_at: record.expires_at,
        }
    }
}

impl Guard {
    /// Whether the guard holds for the record that is stored.
    #[must_use]
    pub fn holds(&self, found: Option<&IdempotencyRecord>) -> bool {
        match (self, found) {
            (Self::Absent, found) => found.is_none(),
            (Self::Unchanged(seen), Some(record)) => *seen == RecordVersion::of(record),
            (Self::OwnedBy(owner), Some(record)) => {
                record.status == Status::InProgress && record.owner == Some(*owner)
            }
            (Self::Unchanged(_) | Self::OwnedBy(_), None) => false,
        }
    }
}

impl Write {
    /// A write without effects.
    #[must_use]
    pub const fn new(key: Key, guard: Guard, record: Option<IdempotencyRecord>) -> Self {
        Self { key, guard, record, effects: None }
    }

    /// The same write, with these effects.
    #[must_use]
    pub fn with_effects(mut self, effects: Option<Effects>) -> Self {
        self.effects = effects;
        self
    }

    /// Whether this takes a key, or tries to: it leaves a record in progress with another owner than its guard names.
    ///
    /// Any other write ends, renews or releases a claim, or keeps the result of a step with it. A store that lets writes
    /// wait for each other, or that has little room left, must not let those wait for claims: a lease ends meanwhile.
    #[must_use]
    pub fn is_claim(&self) -> bool {
        let Some(IdempotencyRecord { status: Status::InProgress, owner: Some(owner), .. }) =
            &self.record
        else {
            return false;
        };
        let found = match &self.guard {
            Guard::Absent => None,
            Guard::Unchanged(found) => found.owner,
            Guard::OwnedBy(owner) => Some(*owner),
        };
        found != Some(*owner)
    }

    /// Whether the write succeeds on the stored record: its guard holds, or it deletes a record
    /// that is already gone.
    #[must_use]
    pub fn applies(&self, found: Option<&IdempotencyRecord>) -> bool {
        self.guard.holds(found) || (self.record.is_none() && found.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn released(by: u128) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
        record.last_owner = Some(Owner::from_bits(by));
        record.lease_until = Some(Timestamp::from_millis(1));
        record
    }

    #[test]
    fn two_releases_within_a_second_are_told_apart() {
        let guard = Guard::Unchanged(RecordVersion::of(&released(1)));
        assert!(guard.holds(Some(&released(1))));
        assert!(!guard.holds(Some(&released(2))));
    }

    #[test]
    fn only_a_new_owner_makes_a_claim() {
        let held = |owner| {
            let mut record = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
            record.owner = Some(Owner::from_bits(owner));
            record
        };
        let unchanged = |record: &IdempotencyRecord| Guard::Unchanged(RecordVersion::of(record));
        let completed = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
        let is_claim = |guard, record| Write::new(Key::from_text("a#1"), guard, record).is_claim();
        assert!(is_claim(Guard::Absent, Some(held(1))));
        assert!(is_claim(unchanged(&held(1)), Some(held(2))), "a key is taken over");
        assert!(is_claim(unchanged(&released(1)), Some(held(2))));
        assert!(is_claim(unchanged(&completed), Some(held(2))), "an expired one");
        assert!(!is_claim(unchanged(&held(1)), Some(held(1))), "a renewal, or a step");
        assert!(!is_claim(Guard::OwnedBy(Owner::from_bits(1)), Some(held(1))));
        assert!(!is_claim(unchanged(&held(1)), Some(released(1))));
        assert!(!is_claim(unchanged(&completed), Some(completed.clone())), "its messages are sent");
        assert!(!is_claim(Guard::OwnedBy(Owner::from_bits(1)), Some(completed.clone())));
        assert!(!is_claim(Guard::Absent, Some(completed)), "without claims");
        assert!(!is_claim(Guard::OwnedBy(Owner::from_bits(1)), None));
    }

    #[test]
    fn owned_by_needs_a_record_in_progress() {
        let mut record = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
        record.owner = Some(Owner::from_bits(7));
        let guard = Guard::OwnedBy(Owner::from_bits(7));
        assert!(guard.holds(Some(&record)));
        record.status = Status::Completed;
        assert!(!guard.holds(Some(&record)));
        assert!(!guard.holds(None));
    }
}
