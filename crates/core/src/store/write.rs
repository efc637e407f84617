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
    /// The condition on what is stored.
    pub guard: Guard,
    /// The record to store, which replaces every field that the write [changes](Self::extent); `None` deletes the record.
    pub record: Option<IdempotencyRecord>,
    /// The effects to apply together with the record, in one transaction. Only beside a record: a store
    /// refuses a deletion with effects. It may send them again, and applies them at most once.
    pub effects: Option<Effects>,
}

/// The condition of a [`Write`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Guard {
    /// The key has no record, not even an expired one.
    Absent,
    /// The record is exactly the one that was read. Some of these writes change only [a part](Write::extent) of it.
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

/// How much of the stored record a [`Write`] changes. The rest stays as it is stored, byte for byte: it may have been
/// written by another version or another library, and be encoded in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// All of it: a claim, or how one ended.
    Record,
    /// A renewal, or a step: `lease_until`, `expires_at` and, if the record has them, `steps`.
    Lease,
    /// The mark that messages are sent: `outbox`, which is gone.
    Outbox,
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

    /// A record of this version, without anything that the version does not name.
    #[must_use]
    pub fn to_record(&self) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(self.status, self.expires_at);
        record.expires_at = self.expires_at;
        (record.owner, record.last_owner) = (self.owner, self.last_owner);
        record.lease_until = self.lease_until;
        record
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

    /// How much of the stored record the write changes. Under [`Guard::Unchanged`], a record of the same status and owner
    /// is that of the claim which is there, or of its completion.
    #[must_use]
    pub fn extent(&self) -> Extent {
        let (Guard::Unchanged(seen), Some(record), None) =
            (&self.guard, &self.record, &self.effects)
        else {
            return Extent::Record;
        };
        let wanted = RecordVersion::of(record);
        let RecordVersion { lease_until, expires_at, .. } = wanted;
        match record.status {
            Status::Completed if wanted == *seen && record.outbox.is_none() => Extent::Outbox,
            Status::InProgress
                if seen.owner.is_some()
                    && wanted == (RecordVersion { lease_until, expires_at, ..seen.clone() }) =>
            {
                Extent::Lease
            }
            _ => Extent::Record,
        }
    }

    /// Whether this record is what the write leaves behind, as far as it changes the record.
    #[must_use]
    pub fn leaves(&self, found: &IdempotencyRecord) -> bool {
        let Some(record) = &self.record else { return false };
        match self.extent() {
            Extent::Record => record == found,
            Extent::Lease | Extent::Outbox => {
                RecordVersion::of(record) == RecordVersion::of(found)
                    && (&record.steps, &record.outbox) == (&found.steps, &found.outbox)
            }
        }
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
    fn a_mark_and_a_renewal_change_a_part_of_the_record() {
        type Set = fn(&mut IdempotencyRecord);
        let mut held = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
        (held.owner, held.steps) = (Some(Owner::from_bits(1)), Some("{}".into()));
        held.outbox = Some("[]".into());
        let extent = |set: Set, status, owner: u128| {
            let mut seen = held.clone();
            (seen.status, seen.owner) = (status, Some(Owner::from_bits(owner)));
            let mut wanted = IdempotencyRecord { status, ..held.clone() };
            set(&mut wanted);
            let guard = Guard::Unchanged(RecordVersion::of(&seen));
            Write::new(Key::from_text("a#1"), guard, Some(wanted)).extent()
        };
        let renews: Set = |record| record.expires_at = Timestamp::from_secs(99);
        let marks: Set = |record| record.outbox = None;
        let releases: Set = |record| record.last_owner = record.owner.take();
        assert_eq!(extent(renews, Status::InProgress, 1), Extent::Lease);
        assert_eq!(extent(renews, Status::InProgress, 2), Extent::Record, "a takeover");
        assert_eq!(extent(releases, Status::InProgress, 1), Extent::Record);
        assert_eq!(extent(marks, Status::Completed, 1), Extent::Outbox);
        assert_eq!(extent(|_| {}, Status::Completed, 1), Extent::Record, "its messages stay");
        assert_eq!(extent(renews, Status::Completed, 1), Extent::Record);
    }

    /// The rest of the record was never read, or is encoded in another way.
    #[test]
    fn a_write_of_a_part_is_recognised_by_that_part() {
        let mut held = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
        held.owner = Some(Owner::from_bits(1));
        let guard = Guard::Unchanged(RecordVersion::of(&held));
        held.lease_until = Some(Timestamp::from_secs(5));
        let renewal = Write::new(Key::from_text("a#1"), guard, Some(held.clone()));
        let other = IdempotencyRecord { error_type: Some("E".into()), ..held.clone() };
        assert!(renewal.leaves(&other));
        assert!(!renewal.leaves(&IdempotencyRecord { steps: Some("{}".into()), ..held.clone() }));
        let claim = Write { guard: Guard::Absent, ..renewal };
        assert!(claim.leaves(&held) && !claim.leaves(&other));
    }
}
