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
    assert_eq!(admit(&claim(), Some(&found), at(100)), Admission::Mismatch);
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
    assert_eq!(admit(&claim(), Some(&found), at(121)), Admission::Busy { until: at(121) });
    for now in [at(122), at(4001)] {
        assert_eq!(admit(&claim(), Some(&found), now), Admission::Mismatch);
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
    let settled =
        [Status::Completed, Status::PermanentlyFailed].map(|s| IdempotencyRecord::new(s, at(4000)));
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
    let error_type = Some("Declined".into());
    let permanent = Admission::PermanentlyFailed { result: None, error_type, failed_attempts: 3 };
    assert_eq!(admit(&claim(), Some(&found), at(100)), permanent);
}
