//! The records that settlements leave behind, and who may claim the key afterwards.

use super::*;
use crate::{
    admission::{Finding, Settled, admit},
    record::{Owner, Provenance},
};

fn at(secs: u64) -> Timestamp {
    Timestamp::from_secs(secs)
}

fn taken(owner: u128, found: Option<&IdempotencyRecord>, now: u64) -> Held {
    let claim = Claim {
        owner: Owner::from_bits(owner),
        lease_until: at(now + 30),
        retention: Duration::from_secs(3600),
        clock_skew: Duration::from_secs(1),
        fingerprint: None,
        application: None,
        provenance: Some(Provenance::new(at(now), Arc::default())),
        payload: Some("{}".into()),
    };
    assert_eq!(admit(&claim, found, at(now)), Finding::Free);
    claim.over(found, at(now)).1
}

/// The attempt began after two that were lost, with a payload and a step.
#[test]
fn a_settlement_leaves_counts_steps_payload_and_provenance() {
    let second = taken(2, Some(&taken(1, None, 100).record), 132);
    let mut third = taken(3, Some(&second.record), 164);
    third.record.steps = Some("{\"charge\":1}".into());
    third.record.error_type = Some("before".into());
    let completes = Settlement::Complete { result: None, outbox: None };
    let commits = Settlement::Commit { result: None, outbox: None };
    let fails = Settlement::FailPermanently { result: None, error_type: "E".into() };
    let releases = Settlement::Release { error_type: "E".into() };
    let renews = Settlement::Renew { lease_until: at(9000) };
    // Losses in all and in a row, steps, payload.
    for (settlement, expected) in [
        (completes, ((2, 0), false, false)),
        (commits, ((2, 0), false, false)),
        // An operator can have the key tried again.
        (fails, ((2, 0), true, false)),
        (releases, ((2, 0), true, true)),
        (Settlement::Decline, ((2, 0), true, true)),
        (Settlement::Undo, ((2, 2), true, true)),
        (Settlement::LeaveStanding, ((3, 0), true, true)),
        (renews, ((2, 2), true, true)),
    ] {
        let left = third.write(&settlement, at(170)).1.unwrap();
        if matches!(settlement, Settlement::Renew { .. }) {
            assert_eq!(left.error_type.as_deref(), Some("before"), "a renewal leaves it");
        }
        let losses = (left.lost_attempts, left.consecutive_losses);
        let kept = (losses, left.steps.is_some(), left.payload.is_some());
        assert_eq!(kept, expected, "{settlement:?}");
        assert_eq!(left.provenance, third.record.provenance, "{settlement:?}");
        assert_eq!(left.is_given_up(), settlement.gives_up(), "{settlement:?}");
        if matches!(settlement, Settlement::Undo) {
            let next = taken(4, Some(&left), 171);
            assert_eq!((next.lost_attempts(), next.consecutive_losses()), (2, 2), "not lost again");
        }
    }
    let forgets = &Settlement::Forget;
    assert!(third.write(forgets, at(170)).1.is_none() && forgets.gives_up());
}

#[test]
fn a_first_claim_that_is_undone_or_declined_leaves_nothing() {
    for settlement in [Settlement::Undo, Settlement::Decline] {
        assert_eq!(taken(1, None, 100).write(&settlement, at(101)).1, None, "{settlement:?}");
    }
}

/// Otherwise its key would be free, and its loss forgotten, while its effect may still be on its way.
#[test]
fn a_stopped_attempt_is_remembered_beyond_its_lease_where_the_retention_is_shorter() {
    let mut held = taken(1, None, 100);
    held.claim.retention = Duration::from_secs(5);
    let stopped = held.write(&Settlement::LeaveStanding, at(110)).1.unwrap();
    assert_eq!(stopped.lease_until, Some(at(130)));
    assert!(stopped.expires_at >= at(131), "the lease and the clock skew: {stopped:?}");
}

/// The conformance suite cannot bring all of them about.
#[test]
fn a_settlement_knows_the_records_of_its_claim() {
    let ours = taken(1, None, 100);
    let renew = Settlement::Renew { lease_until: at(190) };
    let longer = ours.write(&Settlement::Renew { lease_until: at(200) }, at(110)).1;
    let settled = ours.settled(&renew, longer.as_ref(), at(111));
    assert_eq!(settled, Settled::Done, "the clock has stepped back since");
    let mut stepped = ours.clone();
    stepped.record.steps = Some("{\"charge\":1}".into());
    let settled = stepped.settled(&renew, longer.as_ref(), at(111));
    let has_steps = |again: &IdempotencyRecord| again.steps == stepped.record.steps;
    let is_again = matches!(&settled, Settled::Again { record, .. } if has_steps(record));
    assert!(is_again, "the step is not stored: {settled:?}");
    let completes = Settlement::Complete { result: None, outbox: None };
    let settled = ours.settled(&completes, Some(&ours.record), at(111));
    let completes = |again: &IdempotencyRecord| again.status == Status::Completed;
    let is_again = matches!(&settled, Settled::Again { record, .. } if completes(record));
    assert!(is_again, "its claim was applied late: {settled:?}");
    let fails = Settlement::FailPermanently { result: None, error_type: "E".into() };
    let theirs = taken(2, None, 100).write(&fails, at(110)).1;
    let settled = ours.settled(&fails, theirs.as_ref(), at(111));
    assert!(matches!(settled, Settled::Overtaken(_)), "another worker's failure: {settled:?}");
}
