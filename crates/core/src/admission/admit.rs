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
        /// The fence of the record: see [`Mismatch`](Self::Mismatch).
        fence: u64,
    },
    /// The key was used with another payload: for it the work was done, failed permanently, or had a step
    /// that finished.
    Mismatch {
        /// The fence of the mismatching record. A later record of the key, after this one is
        /// deleted or has expired, has another fence.
        fence: u64,
    },
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
        return Admission::Try { guard: Guard::Absent, held: held(claim, record, 0) };
    };
    if found.status == Status::InProgress && found.owner == Some(claim.owner) {
        // What the claim replaced is not stored any more. This receive was not that of the attempt before.
        return Admission::Won(held(claim, found.clone(), claim.receives.saturating_sub(1)));
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
            Admission::Mismatch { fence: final_fence(found) }
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
            take_over(claim, found, record)
        }
        Status::Completed | Status::PermanentlyFailed if over => {
            take_over(claim, found, claim.record(Some(found), now))
        }
        Status::Completed | Status::PermanentlyFailed if claim.disagrees_with(found) => {
            Admission::Mismatch { fence: final_fence(found) }
        }
        Status::Completed if found.outbox.is_some() => {
            Admission::Unsent(held(claim, found.clone(), found.last_receive))
        }
        Status::Completed => Admission::Replay(found.result.clone()),
        Status::PermanentlyFailed => Admission::PermanentlyFailed {
            result: found.result.clone(),
            error_type: found.error_type.clone(),
            failed_attempts: found.failed_attempts,
            fence: final_fence(found),
        },
    }
}

/// Distinguishes this final record of a key from a later one. Records of other libraries have no
/// fence.
pub(super) const fn final_fence(found: &IdempotencyRecord) -> u64 {
    if found.fence > 0 { found.fence } else { found.expires_at.as_millis() }
}

fn held(claim: &Claim, record: IdempotencyRecord, receive_before: u32) -> Held {
    Held { claim: claim.clone(), record, receive_before }
}

fn take_over(claim: &Claim, found: &IdempotencyRecord, record: IdempotencyRecord) -> Admission {
    let held = held(claim, record, found.last_receive);
    Admission::Try { guard: Guard::Unchanged(RecordVersion::of(found)), held }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        admission::Settlement,
        record::{Fingerprint, Owner},
    };

    const SKEW: Duration = Duration::from_secs(1);

    fn claim() -> Claim {
        Claim {
            owner: Owner::from_bits(1),
            lease_until: Timestamp::from_secs(130),
            retention: Duration::from_secs(3600),
            clock_skew: SKEW,
            fingerprint: Some(Fingerprint::new("f")),
            application: Some("billing".into()),
            receives: 0,
            provenance: None,
            payload: None,
        }
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn in_progress(lease_until: Option<u64>) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(Status::InProgress, at(4000));
        record.owner = Some(Owner::from_bits(2));
        record.lease_until = lease_until.map(at);
        record
    }

    fn tried(admission: Admission) -> (Guard, IdempotencyRecord) {
        match admission {
            Admission::Try { guard, held } => (guard, held.record),
            other => panic!("not a try: {other:?}"),
        }
    }

    #[test]
    fn a_key_without_a_record_is_claimed_under_absent() {
        let (guard, record) = tried(admit(&claim(), None, at(100)));
        assert_eq!(guard, Guard::Absent);
        assert_eq!(record.owner, Some(Owner::from_bits(1)));
        assert_eq!(record.expires_at, at(3700));
        assert_eq!((record.failed_attempts, record.lost_attempts), (0, 0));
    }

    #[test]
    fn a_record_in_progress_outlives_its_lease_whatever_the_retention() {
        let mut claim = claim();
        claim.retention = Duration::from_secs(1);
        let (_, record) = tried(admit(&claim, None, at(100)));
        assert!(record.expires_at >= claim.lease_until.plus(SKEW));
    }

    #[test]
    fn at_the_end_of_the_lease_and_during_the_clock_skew_a_record_is_still_owned() {
        let found = in_progress(Some(120));
        for now in [at(120), at(121)] {
            assert_eq!(admit(&claim(), Some(&found), now), Admission::Busy { until: at(121) });
        }
        let (guard, record) = tried(admit(&claim(), Some(&found), Timestamp::from_millis(121_001)));
        assert_eq!(guard, Guard::Unchanged(RecordVersion::of(&found)));
        assert_eq!(record.lost_attempts, 1);
    }

    #[test]
    fn in_progress_without_a_lease_is_locked_until_it_expires() {
        let found = in_progress(None);
        assert_eq!(admit(&claim(), Some(&found), at(3999)), Admission::Busy { until: at(4001) });
        tried(admit(&claim(), Some(&found), at(4002)));
    }

    #[test]
    fn a_released_record_is_claimed_at_once_and_counts_no_lost_attempt() {
        let mut found = in_progress(Some(0));
        found.last_owner = found.owner.take();
        found.failed_attempts = 3;
        found.lost_attempts = 1;
        let (_, record) = tried(admit(&claim(), Some(&found), at(100)));
        assert_eq!((record.failed_attempts, record.lost_attempts), (3, 1));
    }

    #[test]
    fn each_claim_has_a_higher_fence_even_if_the_clock_steps_back() {
        let (_, first) = tried(admit(&claim(), None, at(100)));
        assert_eq!(first.fence, at(100).as_millis());
        let mut lapsed = first.clone();
        lapsed.owner = Some(Owner::from_bits(2));
        lapsed.lease_until = Some(at(10));
        let (_, second) = tried(admit(&claim(), Some(&lapsed), at(50)));
        assert_eq!(second.fence, first.fence + 1);
        let mut expired = IdempotencyRecord::new(Status::Completed, at(40));
        expired.fence = second.fence;
        let (_, third) = tried(admit(&claim(), Some(&expired), at(50)));
        assert_eq!(third.fence, second.fence + 1);
    }

    #[test]
    fn a_record_with_our_token_means_that_the_claim_succeeded() {
        let mut found = in_progress(Some(120));
        found.owner = Some(Owner::from_bits(1));
        assert!(matches!(admit(&claim(), Some(&found), at(500)), Admission::Won(_)));
    }

    #[test]
    fn a_completion_is_replayed_until_it_expires_and_then_claimed_anew() {
        let mut found = IdempotencyRecord::new(Status::Completed, at(200));
        found.result = Some("1".into());
        found.failed_attempts = 2;
        for now in [at(100), at(200), at(201)] {
            assert_eq!(admit(&claim(), Some(&found), now), Admission::Replay(Some("1".into())));
        }
        let (_, record) = tried(admit(&claim(), Some(&found), at(202)));
        assert_eq!((record.failed_attempts, record.result), (0, None));
    }

    #[test]
    fn a_completion_with_messages_is_answered_after_they_were_sent() {
        let mut found = IdempotencyRecord::new(Status::Completed, at(200));
        found.owner = Some(Owner::from_bits(2));
        found.result = Some("1".into());
        found.outbox = Some("[]".into());
        let Admission::Unsent(held) = admit(&claim(), Some(&found), at(100)) else {
            panic!("its messages may not have been sent");
        };
        let (guard, sent) = held.write(&Settlement::MarkSent, at(150));
        assert_eq!(guard, Guard::Unchanged(RecordVersion::of(&found)));
        assert_eq!(sent, Some(IdempotencyRecord { outbox: None, ..found.clone() }));
        let again = admit(&claim(), sent.as_ref(), at(160));
        assert_eq!(again, Admission::Replay(Some("1".into())));
        tried(admit(&claim(), Some(&found), at(202)));
    }

    #[test]
    fn another_payload_is_a_mismatch_only_if_both_are_known() {
        let mut found = IdempotencyRecord::new(Status::Completed, at(200));
        found.fingerprint = Some(Fingerprint::new("g"));
        found.fence = 7;
        assert_eq!(admit(&claim(), Some(&found), at(100)), Admission::Mismatch { fence: 7 });
        found.fingerprint = None;
        assert_eq!(admit(&claim(), Some(&found), at(100)), Admission::Replay(None));
    }

    fn with_a_step(fingerprint: &str) -> IdempotencyRecord {
        let mut found = in_progress(Some(120));
        found.fingerprint = Some(Fingerprint::new(fingerprint));
        found.steps = Some("{\"charge\":1}".into());
        found
    }

    #[test]
    fn a_claim_carries_on_the_steps_of_the_attempt_before_until_the_record_expires() {
        let found = with_a_step("f");
        for (now, carried) in [(at(122), true), (at(4001), true), (at(4002), false)] {
            let (_, record) = tried(admit(&claim(), Some(&found), now));
            assert_eq!(record.steps, found.steps.clone().filter(|_| carried), "{now:?}");
        }
        let completed = IdempotencyRecord { status: Status::Completed, ..found };
        let (_, record) = tried(admit(&claim(), Some(&completed), at(4002)));
        assert_eq!(record.steps, None);
    }

    #[test]
    fn steps_of_another_application_are_not_carried_on() {
        let mut found = with_a_step("f");
        found.application = Some("shipping".into());
        found.lease_until = Some(at(5000));
        let (_, record) = tried(admit(&claim(), Some(&found), at(5002)));
        assert_eq!(record.steps, None);
    }

    #[test]
    fn steps_for_another_payload_are_a_mismatch_until_the_record_expires() {
        let found = with_a_step("g");
        let mismatch = Admission::Mismatch { fence: at(4000).as_millis() };
        assert_eq!(admit(&claim(), Some(&found), at(121)), Admission::Busy { until: at(121) });
        for now in [at(122), at(4001)] {
            assert_eq!(admit(&claim(), Some(&found), now), mismatch);
        }
        tried(admit(&claim(), Some(&found), at(4002)));
        tried(admit(&claim(), Some(&IdempotencyRecord { steps: None, ..found }), at(122)));
    }

    #[test]
    fn another_applications_record_is_not_claimed_until_it_expires() {
        let foreign = Admission::Foreign { application: "shipping".into() };
        let released = {
            let mut record = in_progress(Some(0));
            record.last_owner = record.owner.take();
            record
        };
        let settled = [Status::Completed, Status::PermanentlyFailed]
            .map(|s| IdempotencyRecord::new(s, at(4000)));
        for mut found in settled.into_iter().chain([in_progress(Some(120)), released]) {
            found.application = Some("shipping".into());
            for now in [at(100), at(122), at(4001)] {
                assert_eq!(admit(&claim(), Some(&found), now), foreign, "{found:?}");
            }
            found.failed_attempts = 3;
            let (_, record) = tried(admit(&claim(), Some(&found), at(4002)));
            assert_eq!(record.application, claim().application);
            assert_eq!(
                (record.failed_attempts, record.lost_attempts),
                (0, 0),
                "its counts are not kept"
            );
            // A claim without an application cannot show that the work is the same.
            let nameless = Claim { application: None, ..claim() };
            assert_eq!(admit(&nameless, Some(&found), at(100)), foreign);
        }
    }

    #[test]
    fn a_record_without_an_application_can_be_claimed_by_any() {
        let mut found = IdempotencyRecord::new(Status::Completed, at(200));
        assert_eq!(admit(&claim(), Some(&found), at(100)), Admission::Replay(None));
        found.application = claim().application;
        assert_eq!(admit(&claim(), Some(&found), at(100)), Admission::Replay(None));
        let lapsed = in_progress(Some(20));
        let (_, record) = tried(admit(&claim(), Some(&lapsed), at(100)));
        assert_eq!(record.application, claim().application, "the new claim names its application");
    }

    #[test]
    fn a_permanent_failure_is_returned() {
        let mut found = IdempotencyRecord::new(Status::PermanentlyFailed, at(200));
        found.error_type = Some("Declined".into());
        found.failed_attempts = 3;
        let permanent = |fence| {
            let error_type = Some("Declined".into());
            Admission::PermanentlyFailed { result: None, error_type, failed_attempts: 3, fence }
        };
        let of_another_library = permanent(at(200).as_millis());
        assert_eq!(admit(&claim(), Some(&found), at(100)), of_another_library);
        found.fence = 7;
        assert_eq!(admit(&claim(), Some(&found), at(100)), permanent(7));
    }
}
