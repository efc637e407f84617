use std::time::Duration;

use super::super::testing::{START, after};
use super::*;

/// Admission to an invocation of 30 s, for two handlers at once.
fn starts() -> Starts {
    Starts::new(Budget::new(START, after(30_000)), 2, 0)
}

fn to_look(starts: &mut Starts, at: usize) {
    starts.moved(at, Stage::Queued, Stage::ToLook, false);
}

fn to_claim(starts: &mut Starts, at: usize) {
    starts.moved(at, Stage::Queued, Stage::ToClaim, false);
}

fn ready(starts: &mut Starts, at: usize) {
    starts.moved(at, Stage::Claiming, Stage::Ready, false);
}

/// These records leave their queue.
fn taken(starts: &mut Starts, from: Stage, records: Vec<usize>) -> Vec<usize> {
    records.iter().for_each(|at| starts.moved(*at, from, Stage::Claiming, false));
    records
}

fn start(starts: &mut Starts) {
    starts.moved(9, Stage::Ready, Stage::Running, false);
}

const PACE: Duration = Duration::from_secs(1);

/// An instant at which a handler that takes a second would not end in time.
fn late() -> Timestamp {
    after(29_000)
}

#[test]
fn the_first_reason_to_start_nothing_counts() {
    let mut starts = starts();
    assert!(starts.close(NotStarted::Deadline));
    assert!(!starts.close(NotStarted::Order));
    assert_eq!(starts.closed(), Some(NotStarted::Deadline));
}

#[test]
fn what_is_held_back_until_the_opening_counts_as_idle() {
    let queued: [fn(&mut Starts); 2] = [|starts| to_claim(starts, 0), |starts| ready(starts, 0)];
    for queue in queued {
        let mut starts = starts();
        queue(&mut starts);
        assert!(starts.is_idle());
        starts.open(|_| 0);
        assert!(!starts.is_idle());
    }
    let mut starts = starts();
    to_look(&mut starts, 0);
    assert!(!starts.is_idle() && starts.has_looks(), "a look is not held back");
    let looks = starts.next_looks(0);
    assert_eq!(taken(&mut starts, Stage::ToLook, looks), [0]);
    assert!(starts.is_idle() && !starts.has_looks());
    start(&mut starts);
    assert!(!starts.is_idle());
}

#[test]
fn a_hundred_records_may_wait_for_a_look() {
    let mut starts = starts();
    (0..CLAIM_AHEAD - 1).for_each(|at| to_look(&mut starts, at));
    assert!(starts.has_room_for_looks());
    to_look(&mut starts, CLAIM_AHEAD - 1);
    assert!(!starts.has_room_for_looks());
    assert_eq!(starts.next_looks(CLAIM_AHEAD - 3), [0, 1, 2], "as many as there is room for");
}

#[test]
fn records_that_cannot_end_in_time_are_taken_unless_they_have_waited() {
    let mut starts = starts();
    (0..3).for_each(|at| to_claim(&mut starts, at));
    let waited = |at| at == 1;
    assert!(starts.late(waited, late(), PACE).is_empty(), "the first one always starts");
    start(&mut starts);
    assert!(starts.late(waited, START, PACE).is_empty(), "there is time");
    let late = starts.late(waited, late(), PACE);
    assert_eq!(taken(&mut starts, Stage::ToClaim, late), [0, 2]);
    assert_eq!(starts.next_claims(0), [1]);
}

#[test]
fn the_first_record_starts_late_unless_it_has_waited() {
    let mut starts = starts();
    let returned = Turn::Return(NotStarted::Deadline);
    assert_eq!(starts.turn(false, late(), PACE), Turn::Start);
    assert_eq!(starts.turn(true, late(), PACE), returned);
    start(&mut starts);
    assert_eq!(starts.turn(false, late(), PACE), returned);
    assert_eq!(starts.turn(false, START, PACE), Turn::Start);
    starts.moved(9, Stage::Running, Stage::Settling, false);
    assert_eq!(starts.turn(false, late(), PACE), Turn::Start, "the handler was not called");
}

#[test]
fn claims_are_sent_many_together_as_room_comes_free() {
    let mut starts = starts();
    assert!(starts.next_claims(0).is_empty());
    (0..3 * CLAIM_AHEAD).for_each(|at| to_claim(&mut starts, at));
    let half = CLAIM_AHEAD / 2;
    let claims = starts.next_claims(0);
    assert_eq!(taken(&mut starts, Stage::ToClaim, claims).len(), CLAIM_AHEAD);
    assert!(starts.next_claims(half + 1).is_empty(), "room for less than half");
    let claims = starts.next_claims(half);
    assert_eq!(taken(&mut starts, Stage::ToClaim, claims).len(), half);
    (0..half - 10).for_each(|at| ready(&mut starts, at));
    assert!(starts.next_claims(11).is_empty(), "those that wait for their handler count as well");
    assert_eq!(starts.next_claims(10).len(), half);
}

#[test]
fn a_few_records_are_claimed_if_there_is_room_for_all_of_them() {
    let mut starts = starts();
    (0..3).for_each(|at| to_claim(&mut starts, at));
    assert!(starts.next_claims(CLAIM_AHEAD - 2).is_empty());
    assert_eq!(starts.next_claims(CLAIM_AHEAD - 3), [0, 1, 2]);
}
