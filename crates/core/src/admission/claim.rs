//! One attempt to claim a key.

use std::{sync::Arc, time::Duration};

use crate::{
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Json, Owner, Provenance, Status},
};

/// One attempt to claim a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// A new random token; repeated writes of the same claim keep it.
    pub owner: Owner,
    /// The end of the lease: the end of the invocation plus the lease grace.
    pub lease_until: Timestamp,
    /// How long the record is valid once it is completed or permanently failed.
    pub retention: Duration,
    /// By how much two clocks may differ.
    pub clock_skew: Duration,
    /// The fingerprint, which must agree with earlier deliveries of the key.
    pub fingerprint: Option<Fingerprint>,
    /// The application that claims, if it has a name.
    pub application: Option<Arc<str>>,
    /// Where the claim comes from, for people who look at the record.
    pub provenance: Option<Provenance>,
    /// The text that the work is done from, to do it again where nothing redelivers it. It is kept until the key is
    /// completed, or has failed permanently.
    pub payload: Option<Json>,
}

impl Claim {
    /// A claim for looking at records, which is never written: no record carries its token.
    #[must_use]
    pub const fn reading(application: Option<Arc<str>>, clock_skew: Duration) -> Self {
        Self {
            owner: Owner::from_bits(0),
            lease_until: Timestamp::EPOCH,
            retention: Duration::ZERO,
            clock_skew,
            fingerprint: None,
            application,
            provenance: None,
            payload: None,
        }
    }

    /// The record of this claim, without the counts of the record that it replaces.
    pub(super) fn record(
        &self,
        found: Option<&IdempotencyRecord>,
        now: Timestamp,
    ) -> IdempotencyRecord {
        // The store deletes expired records by its own clock, which may also differ by the clock
        // skew.
        let expires_at = now.plus(self.retention).max(self.lease_until.plus(self.clock_skew));
        let mut record = IdempotencyRecord::new(Status::InProgress, expires_at);
        record.owner = Some(self.owner);
        record.lease_until = Some(self.lease_until);
        record.fingerprint.clone_from(&self.fingerprint);
        record.application.clone_from(&self.application);
        record.provenance.clone_from(&self.provenance);
        record.payload.clone_from(&self.payload);
        // Grows with each claim of an existing record. If the record is gone, the clock makes it
        // grow.
        let next = found.map_or(0, |found| found.fence.saturating_add(1));
        record.fence = next.max(now.as_millis());
        record
    }

    /// The application of the record, if it is not the one that claims.
    ///
    /// A record without an application can be claimed by any, because records of earlier versions
    /// and of other libraries have none. A claim without an application cannot take a record that
    /// has one, because it cannot show that the work is the same.
    pub(super) fn stranger_of<'r>(&self, record: &'r IdempotencyRecord) -> Option<&'r Arc<str>> {
        record.application.as_ref().filter(|theirs| self.application.as_ref() != Some(*theirs))
    }

    /// Whether both have a fingerprint and the two differ.
    pub(super) fn disagrees_with(&self, record: &IdempotencyRecord) -> bool {
        matches!((&self.fingerprint, &record.fingerprint), (Some(mine), Some(theirs)) if mine != theirs)
    }
}
