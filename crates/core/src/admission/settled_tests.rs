use super::{super::held::tests::*, *};
use crate::{
    admission::{Admission, Claim, admit},
    record::{Fingerprint, Owner},
};

#[test]
fn a_completion_whose_answer_was_lost_is_recognised() {
    let held = held(1);
    let (_, record) = held.write(&complete(), at(110));
    assert_eq!(held.settled(&complete(), record.as_ref(), at(111)), Settled::Done);
}

#[test]
fn a_release_whose_answer_was_lost_is_recognised() {
    let held = held(1);
    let (_, record) = held.write(&release(), at(110));
    assert_eq!(held.settled(&release(), record.as_ref(), at(111)), Settled::Done);
}

#[test]
fn a_permanent_failure_whose_answer_was_lost_is_recognised() {
    let fails = Settlement::FailPermanently { result: None, error_type: "E".into() };
    let ours = held(1);
    let (_, by_us) = ours.write(&fails, at(110));
    assert_eq!(ours.settled(&fails, by_us.as_ref(), at(111)), Settled::Done);
    let (_, by_another) = held(2).write(&fails, at(110));
    let settled = ours.settled(&fails, by_another.as_ref(), at(111));
    assert!(matches!(settled, Settled::Overtaken(_)), "{settled:?}");
}

#[test]
fn a_late_release_after_a_completion_is_overtaken() {
    let held = held(1);
    let (_, record) = held.write(&complete(), at(110));
    assert!(!Guard::OwnedBy(Owner::from_bits(1)).holds(record.as_ref()));
    assert_eq!(
        held.settled(&release(), record.as_ref(), at(111)),
        Settled::Overtaken(Overtaken::Completed(Some("true".into())))
    );
}

#[test]
fn a_completion_that_finds_nothing_is_written_under_absent() {
    match held(1).settled(&complete(), None, at(110)) {
        Settled::Again { guard: Guard::Absent, record } => {
            assert_eq!(record.status, Status::Completed);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(held(1).settled(&release(), None, at(110)), Settled::Overtaken(Overtaken::Gone));
}

#[test]
fn effects_are_not_committed_where_the_record_is_gone() {
    let commit = Settlement::Commit { result: None, outbox: None };
    let (ours, gone) = (held(1), Settled::Overtaken(Overtaken::Gone));
    assert_eq!(ours.settled(&commit, None, at(110)), gone);
    let (guard, record) = ours.write(&commit, at(110));
    assert_eq!(guard, Guard::OwnedBy(Owner::from_bits(1)));
    assert_eq!(ours.settled(&commit, record.as_ref(), at(111)), Settled::Done);
    assert_eq!(record, ours.write(&Settlement::Complete { result: None, outbox: None }, at(110)).1);
}

#[test]
fn what_is_forgotten_is_deleted_by_its_owner_and_nothing_else_matters() {
    let mut ours = held(1);
    (ours.record.failed_attempts, ours.record.lost_attempts) = (1, 2);
    let (guard, record) = ours.write(&Settlement::Forget, at(110));
    assert_eq!((guard, record), (Guard::OwnedBy(Owner::from_bits(1)), None));
    let successor = held(2);
    let (_, completed) = successor.write(&complete(), at(111));
    for found in [None, Some(&successor.record), completed.as_ref()] {
        assert_eq!(ours.settled(&Settlement::Forget, found, at(112)), Settled::Done);
    }
    assert!(Settlement::Forget.gives_up());
}

#[test]
fn a_successors_record_is_not_overwritten() {
    let successor = held(2);
    let found = Some(&successor.record);
    assert_eq!(
        held(1).settled(&complete(), found, at(110)),
        Settled::Overtaken(Overtaken::InProgress { until: at(131) })
    );
    let (_, done) = successor.write(&complete(), at(111));
    assert_eq!(
        held(1).settled(&complete(), done.as_ref(), at(112)),
        Settled::Overtaken(Overtaken::Completed(Some("true".into())))
    );
}

#[test]
fn a_successor_with_another_payload_is_a_mismatch() {
    let with =
        |owner, payload| Claim { fingerprint: Some(Fingerprint::new(payload)), ..claim(owner) };
    let held = |claim: Claim| match admit(&claim, None, at(100)) {
        Admission::Try { held, .. } => held,
        other => panic!("{other:?}"),
    };
    let (ours, theirs) = (held(with(1, "a")), held(with(2, "b")));
    for settlement in
        [complete(), Settlement::FailPermanently { result: None, error_type: "E".into() }]
    {
        let (_, found) = theirs.write(&settlement, at(111));
        for mine in [complete(), release(), Settlement::Renew { lease_until: at(9000) }] {
            assert_eq!(
                ours.settled(&mine, found.as_ref(), at(112)),
                Settled::Overtaken(Overtaken::Mismatch)
            );
        }
        assert!(!matches!(
            held(with(3, "b")).settled(&release(), found.as_ref(), at(112)),
            Settled::Overtaken(Overtaken::Mismatch)
        ));
    }
}

#[test]
fn another_applications_record_is_not_our_result() {
    let of = |owner, name: &str| Claim { application: Some(name.into()), ..claim(owner) };
    let held = |claim: Claim| match admit(&claim, None, at(100)) {
        Admission::Try { held, .. } => held,
        other => panic!("{other:?}"),
    };
    let (ours, theirs) = (held(of(1, "billing")), held(of(2, "shipping")));
    let foreign = Overtaken::Foreign { application: "shipping".into() };
    for settlement in [complete(), release(), Settlement::Renew { lease_until: at(9000) }] {
        let (_, found) = theirs.write(&settlement, at(111));
        for mine in [complete(), release(), Settlement::Renew { lease_until: at(9000) }] {
            let settled = ours.settled(&mine, found.as_ref(), at(112));
            assert_eq!(settled, Settled::Overtaken(foreign.clone()));
        }
    }
    let (_, found) = held(of(3, "billing")).write(&complete(), at(111));
    assert_eq!(
        ours.settled(&release(), found.as_ref(), at(112)),
        Settled::Overtaken(Overtaken::Completed(Some("true".into())))
    );
}

#[test]
fn a_renewal_names_the_lease_it_extends() {
    let held = held(1);
    let renew = Settlement::Renew { lease_until: at(9000) };
    let (guard, record) = held.write(&renew, at(110));
    let record = record.unwrap();
    assert!(guard.holds(Some(&held.record)));
    assert!(!guard.holds(Some(&record)), "a late duplicate must be refused");
    assert!(record.expires_at >= at(9001));
    assert_eq!(held.settled(&renew, Some(&record), at(111)), Settled::Done);
}

#[test]
fn a_renewal_extends_an_earlier_one_that_was_applied_late() {
    let held = held(1);
    let renew = |secs| Settlement::Renew { lease_until: at(secs) };
    let (_, found) = held.write(&renew(200), at(110));
    let Settled::Again { guard, record } = held.settled(&renew(210), found.as_ref(), at(111))
    else {
        panic!("the owner still has the key");
    };
    assert!(guard.holds(found.as_ref()));
    assert_eq!(record.lease_until, Some(at(210)));
    assert_eq!(held.settled(&renew(190), found.as_ref(), at(111)), Settled::Done);
}

#[test]
fn a_renewal_is_not_done_while_a_step_is_missing() {
    let mut ours = held(1);
    ours.record.steps = Some("{\"charge\":1}".into());
    let renew = Settlement::Renew { lease_until: at(200) };
    let (_, one) = ours.write(&renew, at(110));
    assert_eq!(ours.settled(&renew, one.as_ref(), at(111)), Settled::Done);
    ours.record.steps = Some("{\"charge\":1,\"ship\":2}".into());
    let Settled::Again { guard, record } = ours.settled(&renew, one.as_ref(), at(111)) else {
        panic!("the second step is not stored");
    };
    assert_eq!(record.steps, ours.record.steps);
    assert!(guard.holds(one.as_ref()) && !guard.holds(Some(&record)));
}

#[test]
fn a_completion_settles_its_own_claim_that_was_applied_late() {
    let held = held(1);
    assert!(matches!(held.settled(&complete(), None, at(140)), Settled::Again { .. }));
    let Settled::Again { guard, record } = held.settled(&complete(), Some(&held.record), at(140))
    else {
        panic!("the owner has the key");
    };
    assert!(guard.holds(Some(&held.record)));
    assert_eq!(record.status, Status::Completed);
}
