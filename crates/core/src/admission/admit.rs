//! A claim: what a stored record means for it, and what it writes over that.

use std::{sync::Arc, time::Duration};

use crate::{
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Json, Owner, Provenance, Status},
    store::{Guard, RecordVersion},
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

/// A claim that was granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// The claim that was granted.
    pub claim: Claim,
    /// The record that is stored. Its steps may be more than those that are stored: every write of the
    /// claim carries them.
    pub record: IdempotencyRecord,
}

/// The state of a key, as a worker finds it when it claims the key or settles its claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Finding {
    /// There is no record, or it does not keep the key any more. [`Claim::over`] makes the write that claims it.
    Free,
    /// The record carries this claim's token: an earlier write of the claim was applied.
    Mine,
    /// Another worker holds the key, or has given it up until then.
    Held {
        /// Up to and including this instant. A takeover can be tried after it.
        until: Timestamp,
    },
    /// The work was done; this is its result.
    Completed(Option<Json>),
    /// The work was done, with this result, and its record still has messages that are not known to be sent. Send them, then
    /// settle with [`Settlement::MarkSent`](super::Settlement::MarkSent), and only then answer with the result.
    Unsent(Option<Json>),
    /// The work failed permanently.
    Failed {
        /// The failure, as it was recorded.
        result: Option<Json>,
        /// The type of the error.
        error_type: Option<Arc<str>>,
        /// How often a handler failed for this key.
        failed_attempts: u32,
    },
    /// The key was used with another payload: for it the work was done, failed permanently, or had a step
    /// that finished.
    Mismatch,
    /// The key belongs to another application. Its record does not apply to this application's
    /// work, and is not changed.
    Foreign {
        /// The other application.
        application: Arc<str>,
    },
}

/// Decides about `claim`, given the record that is stored under its key.
#[must_use]
pub fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Finding {
    let Some(found) = found else { return Finding::Free };
    if found.status == Status::InProgress && found.owner == Some(claim.owner) {
        return Finding::Mine;
    }
    let until = held_until(found, claim.clock_skew);
    let over = now > until;
    // Also if its lease has ended: the counts of another application must not be carried on.
    if let Some(theirs) = claim.stranger_of(found)
        && now <= until.max(found.expires_at.plus(claim.clock_skew))
    {
        return Finding::Foreign { application: Arc::clone(theirs) };
    }
    match found.status {
        Status::InProgress if !over => Finding::Held { until },
        // Its steps were taken for another payload, and their results would answer those of this one.
        Status::InProgress
            if found.steps.is_some()
                && claim.is_valid(found, now)
                && claim.stranger_of(found).is_none()
                && claim.disagrees_with(found) =>
        {
            Finding::Mismatch
        }
        Status::InProgress => Finding::Free,
        Status::Completed | Status::PermanentlyFailed if over => Finding::Free,
        Status::Completed | Status::PermanentlyFailed if claim.disagrees_with(found) => {
            Finding::Mismatch
        }
        Status::Completed | Status::PermanentlyFailed => Finding::of_final(found),
    }
}

/// The last instant at which `record` blocks other claims, including the clock skew.
pub(super) fn held_until(record: &IdempotencyRecord, clock_skew: Duration) -> Timestamp {
    let end = match (record.status, record.lease_until) {
        (Status::InProgress, Some(lease_until)) => lease_until,
        // Another library that did not know its deadline wrote no lease: the key is held until the
        // record expires.
        (Status::InProgress, None) | (Status::Completed | Status::PermanentlyFailed, _) => {
            record.expires_at
        }
    };
    end.plus(clock_skew)
}

impl Finding {
    /// The meaning of a final record that applies to the work.
    pub(super) fn of_final(found: &IdempotencyRecord) -> Self {
        match found.status {
            Status::PermanentlyFailed => Self::Failed {
                result: found.result.clone(),
                error_type: found.error_type.clone(),
                failed_attempts: found.failed_attempts,
            },
            _ if found.outbox.is_some() => Self::Unsent(found.result.clone()),
            _ => Self::Completed(found.result.clone()),
        }
    }
}

impl Claim {
    /// The claim of a key that [`admit`] found [free](Finding::Free): write the record under the guard, which names everything
    /// that was read. If it is written, the key is held; if another record is found instead, call [`admit`] with that.
    #[must_use]
    pub fn over(&self, found: Option<&IdempotencyRecord>, now: Timestamp) -> (Guard, Held) {
        let mut record = self.record(found, now);
        let Some(found) = found else { return (Guard::Absent, self.held(record)) };
        // An expired record of another application is replaced, and its counts are not carried on.
        if found.status == Status::InProgress && self.stranger_of(found).is_none() {
            // If the owner did not give the key up, its attempt was lost.
            let lost = u32::from(!found.is_given_up());
            record.failed_attempts = found.failed_attempts;
            record.lost_attempts = found.lost_attempts.saturating_add(lost);
            record.consecutive_losses = found.consecutive_losses.saturating_add(lost);
            record.error_type.clone_from(&found.error_type);
            record.steps = found.steps.clone().filter(|_| self.is_valid(found, now));
            if record.payload == found.payload {
                // A recovery brings the payload that is there, which a store leaves as it is stored.
                record.payload.clone_from(&found.payload);
            }
        }
        (Guard::Unchanged(RecordVersion::of(found)), self.held(record))
    }

    /// This claim, if it has stored this record.
    #[must_use]
    pub fn held(&self, record: IdempotencyRecord) -> Held {
        Held { claim: self.clone(), record }
    }

    /// Whether the record has not expired.
    fn is_valid(&self, found: &IdempotencyRecord, now: Timestamp) -> bool {
        now <= found.expires_at.plus(self.clock_skew)
    }
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
#[path = "admit_tests.rs"]
mod tests;
