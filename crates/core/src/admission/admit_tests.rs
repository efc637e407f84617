//! Questions that neither the conformance suite nor the model asks: records of other applications and payloads, and those that have
//! expired. And which records of a key may be deleted.

use std::time::Duration;

use super::*;
use crate::record::{Fingerprint, Owner};

fn claim() -> Claim {
    Claim {
        owner: Owner::from_bits(1),
        lease_until: Timestamp::from_secs(300),
        retention: Duration::from_secs(3600),
        clock_skew: Duration::from_secs(1),
        fingerprint: Some(Fingerprint::new("f")),
        application: Some("billing".into()),
        provenance: None,
        payload: None,
    }
}

/// A record of another worker, whose lease ends at 120 and which expires at 200.
fn found(status: Status, change: fn(&mut IdempotencyRecord)) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(status, Timestamp::from_secs(200));
    record.owner = Some(Owner::from_bits(2));
    record.lease_until = Some(Timestamp::from_secs(120));
    (record.failed_attempts, record.fence) = (3, 1 << 50);
    change(&mut record);
    record
}

/// A decision in a word. Whatever is claimed has a higher fence than the record that it replaces, also if that has expired
/// or the clock has stepped back, and names the application that claims.
fn decided(claim: &Claim, found: &IdempotencyRecord, now: u64) -> &'static str {
    let now = Timestamp::from_secs(now);
    let record = match admit(claim, Some(found), now) {
        Finding::Free => claim.over(Some(found), now).1.record,
        Finding::Mine => return "mine",
        Finding::Completed(_) => return "completed",
        Finding::Unsent(_) => return "unsent",
        Finding::Failed { .. } => return "failed",
        Finding::Mismatch => return "mismatch",
        Finding::Held { .. } => return "held",
        Finding::Foreign { .. } => return "foreign",
    };
    assert_eq!(record.fence, found.fence + 1, "{found:?}");
    assert_eq!(record.application, claim.application);
    match (record.failed_attempts, record.steps) {
        (0, None) => "new",
        (3, None) => "counted",
        (3, Some(_)) => "carried on",
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_claim_is_decided_by_the_record_that_it_finds() {
    use Status::{Completed, InProgress, PermanentlyFailed};
    type Change = fn(&mut IdempotencyRecord);
    let steps: Change = |it| it.steps = Some("{\"charge\":1}".into());
    let of_another: Change = |it| it.fingerprint = Some(Fingerprint::new("g"));
    let steps_of_another: Change = |it| {
        it.fingerprint = Some(Fingerprint::new("g"));
        it.steps = Some("{\"charge\":1}".into());
    };
    let foreign: Change = |it| it.application = Some("shipping".into());
    let foreign_beyond_expiry: Change = |it| {
        it.application = Some("shipping".into());
        it.steps = Some("{}".into());
        it.lease_until = Some(Timestamp::from_secs(250));
    };
    let released: Change = |it| {
        it.application = Some("shipping".into());
        it.last_owner = it.owner.take();
        it.lease_until = Some(Timestamp::from_millis(1));
    };
    for (status, change, decisions) in [
        (Completed, (|_| {}) as Change, &[(201, "completed"), (202, "new")][..]),
        (Completed, |it| it.application = claim().application, &[(201, "completed")]),
        (Completed, of_another, &[(201, "mismatch"), (202, "new")]),
        (PermanentlyFailed, of_another, &[(201, "mismatch"), (202, "new")]),
        (Completed, |it| it.outbox = Some("[]".into()), &[(201, "unsent"), (202, "new")]),
        (InProgress, |_| {}, &[(121, "held"), (122, "counted"), (202, "counted")]),
        (InProgress, steps, &[(122, "carried on"), (201, "carried on"), (202, "counted")]),
        (InProgress, of_another, &[(122, "counted")]),
        (InProgress, steps_of_another, &[(121, "held"), (122, "mismatch"), (202, "counted")]),
        (Completed, steps, &[(202, "new")]),
        (InProgress, foreign, &[(1, "foreign"), (122, "foreign"), (201, "foreign"), (202, "new")]),
        (InProgress, foreign_beyond_expiry, &[(251, "foreign"), (252, "new")]),
        (InProgress, released, &[(1, "foreign"), (201, "foreign"), (202, "new")]),
        (Completed, foreign, &[(1, "foreign"), (201, "foreign"), (202, "new")]),
        (PermanentlyFailed, foreign, &[(1, "foreign"), (201, "foreign"), (202, "new")]),
    ] {
        let found = found(status, change);
        for (now, expected) in decisions {
            assert_eq!(decided(&claim(), &found, *now), *expected, "at {now}: {found:?}");
            if *expected == "foreign" {
                // A claim without an application cannot show that the work is the same.
                let nameless = Claim { application: None, ..claim() };
                assert_eq!(decided(&nameless, &found, *now), "foreign", "{found:?}");
            }
        }
    }
}

fn freed(found: Option<&IdempotencyRecord>, now: u64) -> Result<Option<(Guard, Freed)>, Finding> {
    free(&Claim::reading(None, Duration::from_secs(1)), found, at(now))
}

const fn at(secs: u64) -> Timestamp {
    Timestamp::from_secs(secs)
}

fn record(status: Status) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(status, at(500));
    record.owner = Some(Owner::from_bits(1));
    record
}

fn was(record: &IdempotencyRecord, now: u64) -> Freed {
    let (guard, was) = freed(Some(record), now).unwrap().unwrap();
    assert_eq!(guard, Guard::Unchanged(RecordVersion::of(record)));
    was
}

#[test]
fn what_is_final_is_deleted_as_it_was_read() {
    assert_eq!(freed(None, 1), Ok(None));
    assert_eq!(was(&record(Status::Completed), 501), Freed::Completed);
    assert_eq!(was(&record(Status::PermanentlyFailed), 1), Freed::PermanentlyFailed);
    assert_eq!(was(&record(Status::Completed), 502), Freed::WasFree);
}

#[test]
fn a_key_is_busy_up_to_the_last_instant_of_its_lease_and_for_the_clock_skew() {
    let mut held = record(Status::InProgress);
    held.lease_until = Some(at(100));
    for left_held in [false, true] {
        if left_held {
            held.last_owner = held.owner.take();
        }
        assert_eq!(freed(Some(&held), 101), Err(Finding::Held { until: at(101) }));
        assert_eq!(was(&held, 102), Freed::Unfinished);
    }
    held.lease_until = None;
    assert_eq!(freed(Some(&held), 501), Err(Finding::Held { until: at(501) }));
    assert_eq!(was(&held, 502), Freed::WasFree);
}

#[test]
fn messages_that_are_not_known_to_be_sent_are_not_lost() {
    let mut unsent = record(Status::Completed);
    unsent.outbox = Some("[]".into());
    for now in [1, 502] {
        assert_eq!(freed(Some(&unsent), now), Err(Finding::Unsent(None)));
    }
    unsent.application = Some("theirs".into());
    let ours = Claim::reading(Some("ours".into()), Duration::from_secs(1));
    let foreign = Finding::Foreign { application: "theirs".into() };
    assert_eq!(free(&ours, Some(&unsent), at(1)), Err(foreign), "theirs to send");
}
