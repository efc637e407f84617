//! Decides about a claim.

use std::sync::Arc;

use super::{Claim, Held, held_until};
use crate::{
    clock::Timestamp,
    record::{IdempotencyRecord, Json, Status},
    store::{Guard, RecordVersion},
};

/// The decision of [`admit`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Admission {
    /// The key seems to be free. Write `held.record` under `guard`. If it is written, the key is
    /// held; if a record is found instead, call [`admit`] again with it.
    Try {
        /// The condition, which names everything that was read.
        guard: Guard,
        /// The held key, if the write succeeds.
        held: Held,
    },
    /// The record carries this claim's token: an earlier write of the claim was applied.
    Won(Held),
    /// The work was done; this is its result.
    Replay(Option<Json>),
    /// The work was done, and its record still has messages that are not known to be sent. Send them, then settle
    /// with [`Settlement::MarkSent`](super::Settlement::MarkSent), and only then answer with the record's result.
    Unsent(Held),
    /// The work failed permanently.
    PermanentlyFailed {
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
    /// Another worker holds the key, up to and including this instant.
    Busy {
        /// A takeover can be tried after this instant.
        until: Timestamp,
    },
    /// The key belongs to another application. Its record does not apply to this application's
    /// work, and is not changed.
    Foreign {
        /// The other application.
        application: Arc<str>,
    },
}

/// Decides about `claim`, given the record that is stored under its key.
#[must_use]
pub fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Admission {
    let Some(found) = found else {
        let record = claim.record(None, now);
        return Admission::Try { guard: Guard::Absent, held: held(claim, record) };
    };
    if found.status == Status::InProgress && found.owner == Some(claim.owner) {
        return Admission::Won(held(claim, found.clone()));
    }
    let until = held_until(found, claim.clock_skew);
    let over = now > until;
    // Also if its lease has ended: the counts of another application must not be carried on.
    if let Some(theirs) = claim.stranger_of(found)
        && now <= until.max(found.expires_at.plus(claim.clock_skew))
    {
        return Admission::Foreign { application: Arc::clone(theirs) };
    }
    let is_valid = now <= found.expires_at.plus(claim.clock_skew);
    match found.status {
        Status::InProgress if !over => Admission::Busy { until },
        // Expired. The counts of another application are not carried on.
        Status::InProgress if claim.stranger_of(found).is_some() => {
            take_over(claim, found, claim.record(Some(found), now))
        }
        // Its steps were taken for another payload, and their results would answer those of this one.
        Status::InProgress if found.steps.is_some() && is_valid && claim.disagrees_with(found) => {
            Admission::Mismatch
        }
        Status::InProgress => {
            // If the owner did not give the key up, its attempt was lost.
            let lost = u32::from(!found.is_given_up());
            let mut record = claim.record(Some(found), now);
            record.failed_attempts = found.failed_attempts;
            record.lost_attempts = found.lost_attempts.saturating_add(lost);
            record.consecutive_losses = found.consecutive_losses.saturating_add(lost);
            record.error_type.clone_from(&found.error_type);
            record.steps = found.steps.clone().filter(|_| is_valid);
            if record.payload == found.payload {
                // A recovery brings the payload that is there, which a store leaves as it is stored.
                record.payload.clone_from(&found.payload);
            }
            take_over(claim, found, record)
        }
        Status::Completed | Status::PermanentlyFailed if over => {
            take_over(claim, found, claim.record(Some(found), now))
        }
        Status::Completed | Status::PermanentlyFailed if claim.disagrees_with(found) => {
            Admission::Mismatch
        }
        Status::Completed if found.outbox.is_some() => {
            Admission::Unsent(held(claim, found.clone()))
        }
        Status::Completed => Admission::Replay(found.result.clone()),
        Status::PermanentlyFailed => Admission::PermanentlyFailed {
            result: found.result.clone(),
            error_type: found.error_type.clone(),
            failed_attempts: found.failed_attempts,
        },
    }
}

fn held(claim: &Claim, record: IdempotencyRecord) -> Held {
    Held { claim: claim.clone(), record }
}

fn take_over(claim: &Claim, found: &IdempotencyRecord, record: IdempotencyRecord) -> Admission {
    let held = held(claim, record);
    Admission::Try { guard: Guard::Unchanged(RecordVersion::of(found)), held }
}

#[cfg(test)]
#[path = "admit_tests.rs"]
mod tests;
