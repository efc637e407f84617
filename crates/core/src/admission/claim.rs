//! One attempt to get a key.

use std::{sync::Arc, time::Duration};

use crate::{
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Owner, Status},
};

/// One attempt to get a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// A fresh token for this attempt; retries of the same attempt keep it.
    pub owner: Owner,
    /// Until when the key is wanted: the end of the invocation and the lease grace.
    pub lease_until: Timestamp,
    /// How long the record is to count once it is settled.
    pub retention: Duration,
    /// By how much two clocks may differ.
    pub clock_skew: Duration,
    /// What must agree with earlier deliveries of the key.
    pub fingerprint: Option<Fingerprint>,
    /// The application that claims, if it has a name.
    pub application: Option<Arc<str>>,
}

impl Claim {
    /// The record this claim writes over what it found, with no history carried on.
    pub(super) fn record(
        &self,
        found: Option<&IdempotencyRecord>,
        now: Timestamp,
    ) -> IdempotencyRecord {
        // A sweep is made by a clock of its own: the allowance covers that one too.
        let expires_at = now.plus(self.retention).max(self.lease_until.plus(self.clock_skew));
        let mut record = IdempotencyRecord::new(Status::InProgress, expires_at);
        record.owner = Some(self.owner);
        record.lease_until = Some(self.lease_until);
        record.fingerprint.clone_from(&self.fingerprint);
        record.application.clone_from(&self.application);
        // Rises while the record lives, and by the clock where it is gone.
        let next = found.map_or(0, |found| found.fence.saturating_add(1));
        record.fence = next.max(now.as_millis());
        record
    }

    /// The application of the record, if that is another than the one that claims.
    ///
    /// A record that names none is anybody's: those of earlier versions and of other libraries do
    /// not. A claim that names none is not: it cannot show that the work is its own.
    pub(super) fn stranger_of<'r>(&self, record: &'r IdempotencyRecord) -> Option<&'r Arc<str>> {
        record.application.as_ref().filter(|theirs| self.application.as_ref() != Some(*theirs))
    }

    /// Whether both name a payload, and not the same one.
    pub(super) fn disagrees_with(&self, record: &IdempotencyRecord) -> bool {
        matches!((&self.fingerprint, &record.fingerprint), (Some(mine), Some(theirs)) if mine != theirs)
    }
}
