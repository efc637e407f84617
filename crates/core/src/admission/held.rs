//! A held key, and the writes that settle or renew its claim.

use std::{sync::Arc, time::Duration};

use super::Claim;
use crate::{
    clock::Timestamp,
    record::{IdempotencyRecord, Json, Status},
    store::{Guard, RecordVersion},
};

/// The lease of a released record: in the past, but not 0, which some libraries read as "unknown".
const LAPSED: Timestamp = Timestamp::from_millis(1);

/// A claim that was granted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// The claim that was granted.
    pub claim: Claim,
    /// The record that is stored. Its steps may be more than those that are stored: every write of the
    /// claim carries them.
    pub record: IdempotencyRecord,
    /// The receive of the attempt before this claim; 0 if it is not known, or there was none.
    pub receive_before: u32,
}

/// What a claim ends with, or is renewed by.
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
    /// The messages of this completion are sent. Of a [`Held`] whose record is the completion: the rest of it
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
    /// The handler was not started. The key is free, the counts of attempts stay as before, and so does the
    /// receive of the last attempt.
    Undo,
    /// The handler returned without having done any work. The key is free, and no attempt is counted,
    /// but a row of losses ends: this attempt did not kill its process.
    Decline,
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
    pub(super) fn left_behind(
        &self,
        settlement: &Settlement,
        now: Timestamp,
    ) -> Option<IdempotencyRecord> {
        if matches!(settlement, Settlement::MarkSent) {
            return Some(IdempotencyRecord { outbox: None, ..self.record.clone() });
        }
        let expires_at = now.plus(self.claim.retention);
        let mut record = IdempotencyRecord::new(Status::InProgress, expires_at);
        record.owner = Some(self.claim.owner);
        record.failed_attempts = self.record.failed_attempts;
        record.lost_attempts = self.record.lost_attempts;
        record.last_receive = self.record.last_receive;
        record.fence = self.record.fence;
        record.fingerprint.clone_from(&self.claim.fingerprint);
        record.application.clone_from(&self.claim.application);
        record.provenance.clone_from(&self.claim.provenance);
        match settlement {
            Settlement::Complete { result, outbox } | Settlement::Commit { result, outbox } => {
                record.status = Status::Completed;
                record.result.clone_from(result);
                record.outbox.clone_from(outbox);
            }
            Settlement::FailPermanently { result, error_type } => {
                record.status = Status::PermanentlyFailed;
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
                    record.last_receive = self.receive_before;
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
                record.expires_at = self.later(self.expiry(expires_at, *lease_until));
            }
            Settlement::MarkSent => {}
        }
        if record.status == Status::InProgress {
            record.steps.clone_from(&self.record.steps);
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{
        admission::{Admission, admit},
        record::{Owner, Provenance, Worker},
    };

    pub(in crate::admission) fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    pub(in crate::admission) fn claim(owner: u128) -> Claim {
        Claim {
            owner: Owner::from_bits(owner),
            lease_until: at(130),
            retention: Duration::from_secs(3600),
            clock_skew: Duration::from_secs(1),
            fingerprint: None,
            application: None,
            receives: 0,
            provenance: None,
        }
    }

    pub(in crate::admission) fn held(owner: u128) -> Held {
        match admit(&claim(owner), None, at(100)) {
            Admission::Try { held, .. } => held,
            other => panic!("{other:?}"),
        }
    }

    pub(in crate::admission) fn complete() -> Settlement {
        Settlement::Complete { result: Some("true".into()), outbox: None }
    }

    pub(in crate::admission) fn release() -> Settlement {
        Settlement::Release { error_type: "Declined".into() }
    }

    #[test]
    fn a_record_says_where_its_last_claim_came_from_however_it_is_settled() {
        let from = |second: u64| {
            let worker = Worker::default().with_request_id(format!("r-{second}"));
            Some(Provenance::new(at(second), worker.into()).with_record("sqs", "m-1".into()))
        };
        let claimed = |owner, found: Option<IdempotencyRecord>, now| {
            let claim = Claim { provenance: from(now), ..claim(owner) };
            match admit(&claim, found.as_ref(), at(now)) {
                Admission::Try { held, .. } => held,
                other => panic!("{other:?}"),
            }
        };
        let first = claimed(1, None, 100);
        assert_eq!(first.record.provenance, from(100));
        let second = claimed(2, Some(first.record), 132);
        let fails = Settlement::FailPermanently { result: None, error_type: "E".into() };
        let renews = Settlement::Renew { lease_until: at(9000) };
        for settlement in
            [complete(), fails, release(), Settlement::Undo, Settlement::LeaveStanding, renews]
        {
            let (_, record) = second.write(&settlement, at(135));
            assert_eq!(record.unwrap().provenance, from(132), "{settlement:?}");
        }
    }

    #[test]
    fn a_record_says_at_which_receive_its_last_attempt_was() {
        let claimed = |owner, found: Option<IdempotencyRecord>, receives| {
            let claim = Claim { receives, ..claim(owner) };
            match admit(&claim, found.as_ref(), at(200)) {
                Admission::Try { held, .. } => held,
                other => panic!("{other:?}"),
            }
        };
        let (_, failed) = claimed(1, None, 2).write(&release(), at(101));
        let held = claimed(2, failed, 5);
        assert_eq!((held.record.last_receive, held.receive_before), (5, 2));
        let renews = Settlement::Renew { lease_until: at(9000) };
        for (settlement, left) in [
            (release(), 5),
            (Settlement::Decline, 5),
            (Settlement::LeaveStanding, 5),
            (renews, 5),
            (complete(), 5),
            (Settlement::Undo, 2),
        ] {
            let (_, record) = held.write(&settlement, at(201));
            assert_eq!(record.unwrap().last_receive, left, "{settlement:?}");
        }
        let (_, undone) = held.write(&Settlement::Undo, at(201));
        assert_eq!(claimed(3, undone, 0).record.last_receive, 0, "not known any more");
    }

    #[test]
    fn completing_is_fenced_and_restarts_the_retention() {
        let (guard, record) = held(1).write(&complete(), at(110));
        let record = record.unwrap();
        assert_eq!(guard, Guard::OwnedBy(Owner::from_bits(1)));
        assert_eq!(record.expires_at, at(3710));
        assert_eq!((record.status, record.lease_until), (Status::Completed, None));
    }

    #[test]
    fn earlier_attempts_are_those_of_the_record() {
        let mut held = held(1);
        (held.record.failed_attempts, held.record.lost_attempts) = (2, 3);
        assert_eq!((held.failed_attempts(), held.lost_attempts()), (2, 3));
    }

    #[test]
    fn undoing_a_claim_keeps_the_counts() {
        assert_eq!(held(1).write(&Settlement::Undo, at(101)).1, None);
        assert_eq!(held(1).write(&Settlement::Decline, at(101)).1, None);
        let (_, released) = held(1).write(&release(), at(101));
        let Admission::Try { held, .. } = admit(&claim(2), released.as_ref(), at(102)) else {
            panic!("a released key is free");
        };
        let back = held.write(&Settlement::Undo, at(103)).1.unwrap();
        assert_eq!((back.failed_attempts, back.lost_attempts), (1, 0));
        assert!(back.is_given_up());
    }

    #[test]
    fn steps_are_carried_on_until_the_key_is_settled() {
        let mut held = held(1);
        held.record.steps = Some("{\"charge\":1}".into());
        let fails = Settlement::FailPermanently { result: None, error_type: "E".into() };
        let renews = Settlement::Renew { lease_until: at(140) };
        for (settlement, kept) in [
            (renews, true),
            (release(), true),
            (Settlement::LeaveStanding, true),
            (Settlement::Undo, true),
            (Settlement::Decline, true),
            (complete(), false),
            (fails, false),
        ] {
            let record = held.write(&settlement, at(110)).1.unwrap();
            assert_eq!(record.steps.is_some(), kept, "{settlement:?}");
        }
    }

    #[test]
    fn a_record_that_is_renewed_with_steps_expires_later_than_before() {
        let mut held = held(1);
        held.record.steps = Some("{\"charge\":1}".into());
        let same = Settlement::Renew { lease_until: at(130) };
        let (guard, record) = held.write(&same, at(100));
        let record = record.unwrap();
        assert_eq!((record.lease_until, record.expires_at), (Some(at(130)), at(3701)));
        assert!(guard.holds(Some(&held.record)) && !guard.holds(Some(&record)));
    }

    fn taken_over(owner: u128, found: Option<IdempotencyRecord>, now: Timestamp) -> Held {
        match admit(&claim(owner), found.as_ref(), now) {
            Admission::Try { held, .. } => held,
            other => panic!("{other:?}"),
        }
    }

    fn losses(record: &IdempotencyRecord) -> (u32, u32) {
        (record.lost_attempts, record.consecutive_losses)
    }

    #[test]
    fn a_stopped_attempt_keeps_its_lease_and_counts_once() {
        let (guard, stopped) = held(1).write(&Settlement::LeaveStanding, at(110));
        let stopped = stopped.unwrap();
        assert_eq!(guard, Guard::OwnedBy(Owner::from_bits(1)));
        assert_eq!(stopped.lease_until, Some(at(130)), "its effect may be on its way");
        assert!(stopped.is_given_up() && stopped.expires_at >= at(131));
        assert_eq!(losses(&stopped), (1, 0));
        let busy = admit(&claim(2), Some(&stopped), at(131));
        assert_eq!(busy, Admission::Busy { until: at(131) });
        assert_eq!(losses(&taken_over(2, Some(stopped), at(132)).record), (1, 0));
    }

    #[test]
    fn losses_in_a_row_end_with_an_attempt_that_the_worker_survived() {
        let second = taken_over(2, Some(held(1).record), at(132));
        let third = taken_over(3, Some(second.record), at(134));
        assert_eq!(losses(&third.record), (2, 2));
        for (settlement, left) in [
            (Settlement::Renew { lease_until: at(140) }, (2, 2)),
            (Settlement::Undo, (2, 2)),
            (Settlement::Decline, (2, 0)),
            (release(), (2, 0)),
            (Settlement::LeaveStanding, (3, 0)),
            (complete(), (2, 0)),
        ] {
            let (_, record) = third.write(&settlement, at(135));
            assert_eq!(losses(&record.unwrap()), left, "{settlement:?}");
        }
        let undone = third.write(&Settlement::Undo, at(135)).1;
        assert_eq!(losses(&taken_over(4, undone, at(136)).record), (2, 2), "not lost again");
    }
}
