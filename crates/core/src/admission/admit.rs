//! Decides what a stored record means for a claim, and what the claim writes over it.

use std::sync::Arc;

use super::{
    claim::Claim,
    held::{Held, held_until},
};
use crate::{
    clock::Timestamp,
    record::{IdempotencyRecord, Json, Status},
    store::{Guard, RecordVersion},
};

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

#[cfg(test)]
#[path = "admit_tests.rs"]
mod tests;
