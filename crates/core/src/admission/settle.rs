//! The writes that settle or renew a claim, and what to do if one of them finds another record.

use std::{sync::Arc, time::Duration};

use super::admit::{Claim, Finding, Held, held_until};
use crate::{
    clock::Timestamp,
    record::{IdempotencyRecord, Json, Status},
    store::{Guard, RecordVersion},
};

/// The lease of a released record: in the past, but not 0, which some libraries read as "unknown".
const LAPSED: Timestamp = Timestamp::from_millis(1);

/// The end of a claim, or its renewal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Settlement {
    /// The handler returned. Final.
    Complete {
        /// The handler's result as JSON text, if later deliveries are to get it.
        result: Option<Json>,
        /// The messages that the handler published, to be sent after this.
        outbox: Option<Json>,
    },
    /// The handler returned, and its effects are committed in one transaction with this completion.
    /// Final. If the record is gone, nothing is applied: the worker that claims the key next runs the handler
    /// again, and only one of the two may have its effects.
    Commit {
        /// The handler's result as JSON text, if later deliveries are to get it.
        result: Option<Json>,
        /// The messages that the handler published, to be sent after this.
        outbox: Option<Json>,
    },
    /// The messages of this completion are sent. It settles a [`Held`] whose record is the completion: the rest of it
    /// stays as it is.
    MarkSent,
    /// The handler failed permanently. Final; later deliveries are answered with the failure.
    FailPermanently {
        /// The failure as JSON text.
        result: Option<Json>,
        /// The type of the error.
        error_type: Arc<str>,
    },
    /// The handler failed and is to be called again. The key is free, and the failed attempt is
    /// counted.
    Release {
        /// The type of the error.
        error_type: Arc<str>,
    },
    /// The handler was not started. The key is free, and the counts of attempts stay as before.
    Undo,
    /// The handler returned without having done any work. The key is free, and no attempt is counted,
    /// but a row of losses ends: this attempt did not kill its process.
    Decline,
    /// The handler has ended, and nothing is kept of that: the record is deleted, with its counts. For an
    /// operation whose keys only exclude each other: see [`Mode::Mutex`](crate::policy::Mode::Mutex).
    Forget,
    /// The handler was stopped at its deadline, or its effects were not committed in time. An effect may be on
    /// its way, so the key stays held until the lease ends. The attempt counts as lost, but the record says
    /// that it did not kill its process.
    LeaveStanding,
    /// The handler needs more time.
    Renew {
        /// The new end of the lease.
        lease_until: Timestamp,
    },
}

impl Settlement {
    /// Whether the claim is given up without a final record, so that the key can be claimed again.
    #[must_use]
    pub const fn gives_up(&self) -> bool {
        match self {
            Self::Release { .. }
            | Self::Undo
            | Self::Decline
            | Self::Forget
            | Self::LeaveStanding => true,
            Self::Complete { .. }
            | Self::Commit { .. }
            | Self::MarkSent
            | Self::FailPermanently { .. }
            | Self::Renew { .. } => false,
        }
    }
}

impl Held {
    /// The number of earlier failed attempts for this key.
    #[must_use]
    pub const fn failed_attempts(&self) -> u32 {
        self.record.failed_attempts
    }

    /// The number of earlier lost attempts for this key.
    #[must_use]
    pub const fn lost_attempts(&self) -> u32 {
        self.record.lost_attempts
    }

    /// The number of attempts that were lost one after the other, up to the last one. Above 0, one of
    /// them may have killed its process.
    #[must_use]
    pub const fn consecutive_losses(&self) -> u32 {
        self.record.consecutive_losses
    }

    /// The same claim, with this record, which is stored now: the completion of the key, for
    /// [`Settlement::MarkSent`].
    #[must_use]
    pub fn with_record(&self, record: IdempotencyRecord) -> Self {
        Self { record, ..self.clone() }
    }

    /// The same claim, whose completion answers for this long.
    #[must_use]
    pub fn retained_for(&self, retention: Duration) -> Self {
        let claim = Claim { retention, ..self.claim.clone() };
        Self { claim, record: self.record.clone() }
    }

    /// The conditional write that settles the claim; `None` deletes.
    #[must_use]
    pub fn write(
        &self,
        settlement: &Settlement,
        now: Timestamp,
    ) -> (Guard, Option<IdempotencyRecord>) {
        let guard = match settlement {
            // The guard names the lease that is extended, so that a write that arrives late cannot
            // shorten a newer lease; or the completion, so that it cannot change a later one.
            Settlement::Renew { .. } | Settlement::MarkSent => {
                Guard::Unchanged(RecordVersion::of(&self.record))
            }
            _ => Guard::OwnedBy(self.claim.owner),
        };
        (guard, self.left_behind(settlement, now))
    }

    /// The record after `settlement`.
    fn left_behind(&self, settlement: &Settlement, now: Timestamp) -> Option<IdempotencyRecord> {
        match settlement {
            Settlement::MarkSent => {
                return Some(IdempotencyRecord { outbox: None, ..self.record.clone() });
            }
            Settlement::Forget => return None,
            _ => {}
        }
        let expires_at = now.plus(self.claim.retention);
        let mut record = IdempotencyRecord::new(Status::InProgress, expires_at);
        record.owner = Some(self.claim.owner);
        record.failed_attempts = self.record.failed_attempts;
        record.lost_attempts = self.record.lost_attempts;
        record.fence = self.record.fence;
        record.fingerprint.clone_from(&self.claim.fingerprint);
        record.application.clone_from(&self.claim.application);
        record.provenance.clone_from(&self.claim.provenance);
        match settlement {
            Settlement::Complete { result, outbox } | Settlement::Commit { result, outbox } => {
                record.status = Status::Completed;
                record.lease_until = Some(now.ceil_to_second());
                record.result.clone_from(result);
                record.outbox.clone_from(outbox);
            }
            Settlement::FailPermanently { result, error_type } => {
                record.status = Status::PermanentlyFailed;
                record.lease_until = Some(now.ceil_to_second());
                record.failed_attempts = record.failed_attempts.saturating_add(1);
                record.result.clone_from(result);
                record.error_type = Some(error_type.clone());
            }
            Settlement::Release { error_type } => {
                give_up(&mut record, LAPSED);
                record.failed_attempts = record.failed_attempts.saturating_add(1);
                record.error_type = Some(error_type.clone());
            }
            Settlement::Undo | Settlement::Decline
                if record.failed_attempts == 0
                    && record.lost_attempts == 0
                    && self.record.steps.is_none() =>
            {
                return None;
            }
            Settlement::Undo | Settlement::Decline => {
                give_up(&mut record, LAPSED);
                if matches!(settlement, Settlement::Undo) {
                    record.consecutive_losses = self.record.consecutive_losses;
                }
                record.error_type.clone_from(&self.record.error_type);
            }
            Settlement::LeaveStanding => {
                let lease_until = self.record.lease_until.unwrap_or(self.claim.lease_until);
                give_up(&mut record, lease_until);
                record.lost_attempts = record.lost_attempts.saturating_add(1);
                record.expires_at = self.expiry(expires_at, lease_until);
            }
            Settlement::Renew { lease_until } => {
                record.lease_until = Some(*lease_until);
                record.consecutive_losses = self.record.consecutive_losses;
                record.error_type.clone_from(&self.record.error_type);
                record.expires_at = self.later(self.expiry(expires_at, *lease_until));
            }
            Settlement::MarkSent | Settlement::Forget => {}
        }
        // Also after a permanent failure: an operator can have the key tried again.
        if record.status != Status::Completed {
            record.steps.clone_from(&self.record.steps);
        }
        if record.status == Status::InProgress {
            record.payload.clone_from(&self.record.payload);
        }
        Some(record)
    }

    /// The expiry of a record that is renewed. With steps, each is later than the one before: guards do not
    /// name steps, so an earlier write that is applied late has to be refused by the expiry that it names. The
    /// lease may not be later, since it ends with the invocation.
    fn later(&self, expires_at: Timestamp) -> Timestamp {
        match self.record.steps {
            Some(_) => expires_at.max(self.record.expires_at.plus(Duration::from_secs(1))),
            None => expires_at,
        }
    }

    /// When a record in progress expires: not before its lease, by any clock.
    fn expiry(&self, expires_at: Timestamp, lease_until: Timestamp) -> Timestamp {
        expires_at.max(lease_until.plus(self.claim.clock_skew)).ceil_to_second()
    }
}

/// The claim is given up; the key can be claimed after `lease_until`.
fn give_up(record: &mut IdempotencyRecord, lease_until: Timestamp) {
    record.last_owner = record.owner.take();
    record.lease_until = Some(lease_until);
}

/// The next step of a settlement whose write did not find our claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "looked at once and dropped, never kept in bulk")]
pub enum Settled {
    /// An earlier write of the same settlement was applied, or nothing is left to do.
    Done,
    /// Write this instead: the record is gone, so no other worker holds the key; or the record is
    /// ours, because an earlier write of ours was applied late.
    Again {
        /// The condition.
        guard: Guard,
        /// The record.
        record: IdempotencyRecord,
    },
    /// The lease was lost: this is what is there now. [`Finding::Free`] if the record is gone, and the settlement would have
    /// deleted it anyway or has effects, which only the worker that holds the key commits.
    Overtaken(Finding),
}

impl Held {
    /// Decides what to do after the write of `settlement` found `found` instead of our claim.
    #[must_use]
    pub fn settled(
        &self,
        settlement: &Settlement,
        found: Option<&IdempotencyRecord>,
        now: Timestamp,
    ) -> Settled {
        // Another worker may have sent and marked them, too; or the record has expired since. And of what is to
        // be forgotten nothing is left: our record was deleted, or another claim has replaced it.
        if matches!(settlement, Settlement::MarkSent | Settlement::Forget) {
            return Settled::Done;
        }
        let Some(found) = found else {
            return match (settlement, self.left_behind(settlement, now)) {
                (
                    Settlement::Complete { .. } | Settlement::FailPermanently { .. },
                    Some(record),
                ) => Settled::Again { guard: Guard::Absent, record },
                _ => Settled::Overtaken(Finding::Free),
            };
        };
        if self.is_own_work(settlement, found) {
            return Settled::Done;
        }
        // A write of ours that had no response was applied later: an earlier renewal, which this one extends, or, after
        // a TTL deletion, a copy of the claim.
        if Guard::OwnedBy(self.claim.owner).holds(Some(found)) {
            let held = match settlement {
                Settlement::Renew { .. } => &self.with_record(self.on_top_of(found)),
                _ => self,
            };
            if let (guard, Some(record)) = held.write(settlement, now) {
                return Settled::Again { guard, record };
            }
        }
        if let Some(theirs) = self.claim.stranger_of(found) {
            return Settled::Overtaken(Finding::Foreign { application: Arc::clone(theirs) });
        }
        Settled::Overtaken(match found.status {
            Status::Completed | Status::PermanentlyFailed if self.claim.disagrees_with(found) => {
                Finding::Mismatch
            }
            Status::Completed | Status::PermanentlyFailed => Finding::of_final(found),
            Status::InProgress => Finding::Held { until: held_until(found, self.claim.clock_skew) },
        })
    }

    /// The record that another write of this claim has stored, with all steps that are known here.
    #[must_use]
    pub fn on_top_of(&self, found: &IdempotencyRecord) -> IdempotencyRecord {
        IdempotencyRecord { steps: self.record.steps.clone(), ..found.clone() }
    }

    /// Whether `found` was written by this settlement, whose response was lost.
    fn is_own_work(&self, settlement: &Settlement, found: &IdempotencyRecord) -> bool {
        let mine = Some(self.claim.owner);
        match settlement {
            Settlement::Complete { .. } | Settlement::Commit { .. } => {
                found.status == Status::Completed && found.owner == mine
            }
            Settlement::FailPermanently { .. } => {
                found.status == Status::PermanentlyFailed && found.owner == mine
            }
            Settlement::Release { .. }
            | Settlement::Undo
            | Settlement::Decline
            | Settlement::LeaveStanding => found.is_given_up() && found.last_owner == mine,
            // Or by an earlier renewal with a later end, if the clock has stepped back since. It has to have
            // all steps.
            Settlement::Renew { lease_until } => {
                found.status == Status::InProgress
                    && found.owner == mine
                    && found.lease_until >= Some(*lease_until)
                    && found.steps == self.record.steps
            }
            Settlement::MarkSent => found.outbox.is_none(),
            Settlement::Forget => false,
        }
    }
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
