//! Decides what to do if a settling write did not find our claim.

use std::sync::Arc;

use super::{
    admit::Finding,
    held::{Held, Settlement, held_until},
};
use crate::{
    clock::Timestamp,
    record::{IdempotencyRecord, Status},
    store::Guard,
};

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
