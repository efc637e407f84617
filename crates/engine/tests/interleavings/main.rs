//! The races that the protocol resolves, one at a time and step by step.
//!
//! The model checker (`tests/model`) covers all of these and many more. Here each race has a name, so
//! that a failing test names the race.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a panic here is a failing test")]

mod table;

use std::time::Duration;

use lambda_idempotency_core::{
    admission::{Admission, Overtaken, Settled, Settlement, admit},
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, RecordVersion, Write},
};
use lambda_idempotency_keys::Key;
use table::{LEASE, RETENTION, Table, at, claim, complete, release, settling, takeover, write};

#[test]
fn a_late_completion_after_a_takeover_is_fenced() {
    let table = Table::default();
    let late = table.hold(1, 0);
    let successor = table.hold(2, 32);
    assert_eq!(
        table.settle(&late, &complete(), 33),
        Settled::Overtaken(Overtaken::InProgress { until: at(32 + LEASE + 1) })
    );
    assert_eq!(table.read(), Some(successor.record.clone()));
    assert_eq!(table.settle(&successor, &complete(), 34), Settled::Done);
    let result = Some("1".into());
    let overtaken = Settled::Overtaken(Overtaken::Completed(result));
    assert_eq!(table.settle(&late, &complete(), 35), overtaken);
}

#[test]
fn a_late_failure_does_not_delete_the_successors_record() {
    let table = Table::default();
    let late = table.hold(1, 0);
    let successor = table.hold(2, 32);
    for settlement in [release(), Settlement::Undo] {
        let settled = table.settle(&late, &settlement, 33);
        assert!(matches!(settled, Settled::Overtaken(Overtaken::InProgress { .. })));
        assert_eq!(table.read(), Some(successor.record.clone()));
    }
}

#[test]
fn a_claim_whose_answer_was_lost_meets_its_own_token() {
    let table = Table::default();
    let first = table.hold(1, 0);
    // The answer was lost, so the worker sends the same claim again.
    assert_eq!(table.claim(&claim(1, 0), 2), Admission::Won(first));
}

#[test]
fn a_takeover_whose_answer_was_lost_meets_its_own_token() {
    let table = Table::default();
    table.hold(1, 0);
    let write = takeover(&table, &claim(2, 32), 32);
    table.applies(&write);
    let found = table.refuses(&write);
    assert!(matches!(admit(&claim(2, 32), found.as_ref(), at(33)), Admission::Won(_)));
}

#[test]
fn a_release_whose_answer_was_lost_meets_its_last_owner() {
    let table = Table::default();
    let held = table.hold(1, 0);
    assert_eq!(table.settle(&held, &release(), 5), Settled::Done);
    assert_eq!(table.settle(&held, &release(), 6), Settled::Done);
    assert_eq!(table.read().map(|record| record.failed_attempts), Some(1));
}

#[test]
fn a_completion_that_finds_no_record_is_written_if_there_still_is_none() {
    let table = Table::default();
    let mut claim = claim(1, 0);
    claim.retention = Duration::ZERO;
    let Admission::Won(held) = table.claim(&claim, 0) else { panic!("free") };
    table.0.sweep(at(32));
    let Settled::Again { guard, record } = table.settle(&held, &complete(), 33) else {
        panic!("no record refuses it");
    };
    assert_eq!(guard, Guard::Absent);
    let again = Write::new(Key::from_text("k"), guard, Some(record));
    table.applies(&again);
    // Its answer is lost, so the worker sends it again.
    assert_eq!(table.settle(&held, &complete(), 34), Settled::Done);
}

#[test]
fn a_completion_that_finds_no_record_yields_to_a_later_claim() {
    let table = Table::default();
    let mut claim = claim(1, 0);
    claim.retention = Duration::ZERO;
    let Admission::Won(held) = table.claim(&claim, 0) else { panic!("free") };
    table.0.sweep(at(32));
    let Settled::Again { guard, record } = table.settle(&held, &complete(), 33) else {
        panic!("no record refuses it");
    };
    let successor = table.hold(2, 33);
    let again = Write::new(Key::from_text("k"), guard, Some(record));
    assert_eq!(table.refuses(&again), Some(successor.record));
}

/// Found by the model checker: the completion took its own claim for a successor's.
#[test]
fn a_completion_that_finds_a_late_copy_of_its_own_claim_settles_that() {
    let table = Table::default();
    let mut claim = claim(1, 0);
    claim.retention = Duration::ZERO;
    let Admission::Try { guard, held } = admit(&claim, None, at(0)) else { panic!("free") };
    let copy = write(guard, &held);
    table.applies(&copy);
    table.0.sweep(at(32));
    let Settled::Again { guard, record } = table.settle(&held, &complete(), 33) else {
        panic!("no record refuses it");
    };
    table.applies(&copy);
    let again = Write::new(Key::from_text("k"), guard, Some(record));
    let found = table.refuses(&again);
    let settled = held.settled(&complete(), found.as_ref(), at(33));
    let Settled::Again { guard, record } = settled else { panic!("the claim is its own") };
    table.applies(&Write::new(Key::from_text("k"), guard, Some(record)));
    assert_eq!(table.read().map(|record| record.status), Some(Status::Completed));
}

/// Found by the model checker: a renewal took the one before it for a successor's.
#[test]
fn a_renewal_after_one_whose_answer_was_lost_continues_from_it() {
    let table = Table::default();
    let held = table.hold(1, 0);
    let renew = |until| Settlement::Renew { lease_until: at(until) };
    assert_eq!(table.settle(&held, &renew(40), 10), Settled::Done);
    // Its answer was lost and the worker gave up; the next renewal knows only the first lease.
    let Settled::Again { guard, record } = table.settle(&held, &renew(50), 20) else {
        panic!("the lease is its own");
    };
    table.applies(&Write::new(Key::from_text("k"), guard, Some(record)));
    assert_eq!(table.read().unwrap().lease_until, Some(at(50)));
}

#[test]
fn a_late_copy_of_a_renewal_does_not_shorten_a_newer_one() {
    let table = Table::default();
    let mut held = table.hold(1, 0);
    let first = settling(&held, &Settlement::Renew { lease_until: at(40) }, 10);
    table.applies(&first);
    held.record = table.read().unwrap();
    let renew = Settlement::Renew { lease_until: at(50) };
    assert_eq!(table.settle(&held, &renew, 20), Settled::Done);
    table.refuses(&first);
    assert_eq!(table.read().unwrap().lease_until, Some(at(50)));
}

#[test]
fn a_takeover_that_was_decided_before_a_renewal_is_refused() {
    let table = Table::default();
    let held = table.hold(1, 0);
    let takeover = takeover(&table, &claim(2, 32), 32);
    assert_eq!(table.settle(&held, &Settlement::Renew { lease_until: at(60) }, 30), Settled::Done);
    table.refuses(&takeover);
    assert_eq!(table.read().unwrap().owner, Some(Owner::from_bits(1)));
}

#[test]
fn a_late_release_after_its_own_completion_changes_nothing() {
    let table = Table::default();
    let held = table.hold(1, 0);
    assert_eq!(table.settle(&held, &complete(), 5), Settled::Done);
    let completed = table.read();
    for settlement in [release(), Settlement::Undo] {
        let settled = table.settle(&held, &settlement, 6);
        assert!(matches!(settled, Settled::Overtaken(Overtaken::Completed(_))));
        assert_eq!(table.read(), completed);
    }
}

#[test]
fn of_two_takeovers_of_one_expired_lease_one_is_applied() {
    let table = Table::default();
    table.hold(1, 0);
    let (one, other) = (claim(2, 32), claim(3, 32));
    let (first, second) = (takeover(&table, &one, 32), takeover(&table, &other, 32));
    table.applies(&first);
    let found = table.refuses(&second);
    let busy = Admission::Busy { until: at(32 + LEASE + 1) };
    assert_eq!(admit(&other, found.as_ref(), at(32)), busy);
}

#[test]
fn a_late_copy_of_a_takeover_is_refused_after_two_releases_within_one_second() {
    let table = Table::default();
    let first = table.hold(1, 0);
    assert_eq!(table.settle(&first, &release(), 5), Settled::Done);
    let copy = takeover(&table, &claim(2, 5), 5);
    // Another claim is faster, its handler fails too, and the record has the same times.
    let other = table.hold(3, 5);
    assert_eq!(table.settle(&other, &release(), 5), Settled::Done);
    table.refuses(&copy);
    assert_eq!(table.read().map(|record| record.failed_attempts), Some(2));
}

#[test]
fn a_takeover_of_a_record_without_an_owner_names_the_expiry() {
    let table = Table::default();
    let foreign = |expires| IdempotencyRecord::new(Status::Completed, at(expires));
    table.0.insert(Key::from_text("k"), foreign(10));
    let late = takeover(&table, &claim(1, 12), 12);
    // Another library claims and completes the key meanwhile; its records carry no token.
    table.0.insert(Key::from_text("k"), foreign(112));
    assert_eq!(table.refuses(&late), Some(foreign(112)));
}

#[test]
fn a_sweep_does_not_remove_a_held_record() {
    let table = Table::default();
    let mut claim = claim(1, 0);
    claim.retention = Duration::ZERO;
    let Admission::Won(held) = table.claim(&claim, 0) else { panic!("free") };
    // The server's clock is ahead by the clock skew while ours shows the end of the lease.
    table.0.sweep(at(LEASE + 1));
    assert_eq!(table.read(), Some(held.record));
}

#[test]
fn at_its_last_instant_a_record_is_still_owned() {
    let table = Table::default();
    let held = table.hold(1, 0);
    for now in [LEASE, LEASE + 1] {
        assert!(matches!(table.claim(&claim(2, now), now), Admission::Busy { .. }));
    }
    assert_eq!(table.settle(&held, &complete(), LEASE), Settled::Done);
    for now in [LEASE + RETENTION, LEASE + RETENTION + 1] {
        assert!(matches!(table.claim(&claim(2, now), now), Admission::Replay(_)));
    }
    let last = takeover(&table, &claim(2, 132), LEASE + RETENTION + 2);
    assert_eq!(last.guard, Guard::Unchanged(RecordVersion::of(&table.read().unwrap())));
}
