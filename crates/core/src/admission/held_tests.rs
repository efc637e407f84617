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
        provenance: None,
        payload: None,
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
fn a_payload_is_kept_until_the_key_is_completed_or_has_failed_permanently() {
    let keeps = Claim { payload: Some("{}".into()), ..claim(1) };
    let held = match admit(&keeps, None, at(100)) {
        Admission::Try { held, .. } => held,
        other => panic!("{other:?}"),
    };
    assert_eq!(held.record.payload, keeps.payload);
    let renews = Settlement::Renew { lease_until: at(9000) };
    for settlement in [release(), Settlement::LeaveStanding, renews] {
        let (_, record) = held.write(&settlement, at(110));
        assert_eq!(record.unwrap().payload, keeps.payload, "{settlement:?}");
    }
    let fails = Settlement::FailPermanently { result: None, error_type: "E".into() };
    for settlement in [complete(), fails] {
        assert_eq!(held.write(&settlement, at(110)).1.unwrap().payload, None, "{settlement:?}");
    }
    // Another worker, which keeps no payload, has redelivered it.
    let (_, released) = held.write(&release(), at(110));
    match admit(&claim(2), released.as_ref(), at(111)) {
        Admission::Try { held, .. } => assert_eq!(held.record.payload, None),
        other => panic!("{other:?}"),
    }
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
fn completing_is_fenced_and_restarts_the_retention() {
    let (guard, record) = held(1).write(&complete(), at(110));
    let record = record.unwrap();
    assert_eq!(guard, Guard::OwnedBy(Owner::from_bits(1)));
    assert_eq!(record.expires_at, at(3710));
    assert_eq!((record.status, record.settled_at()), (Status::Completed, Some(at(110))));
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
fn steps_are_carried_on_until_the_key_is_completed() {
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
        (fails, true),
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

/// Otherwise its key would be free, and its loss forgotten, while its effect may still be on its way.
#[test]
fn a_stopped_attempt_is_remembered_beyond_its_lease_where_the_retention_is_shorter() {
    let mut held = held(1);
    held.claim.retention = Duration::from_secs(5);
    let stopped = held.write(&Settlement::LeaveStanding, at(110)).1.unwrap();
    assert_eq!(stopped.lease_until, Some(at(130)));
    assert!(stopped.expires_at >= at(131), "the lease and the clock skew: {stopped:?}");
    assert_eq!(admit(&claim(2), Some(&stopped), at(131)), Admission::Busy { until: at(131) });
}
