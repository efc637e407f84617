use lambda_idempotency_keys::Key;

use super::super::record::testing::{START, after, call, deadline, held};
use super::*;

/// A settlement that is due at once and is given up after 10 s.
fn settling(at: usize) -> Settling {
    Settling {
        assumed: None,
        at,
        key: Key::from_text(format!("op#{at}")),
        held: held(60_000),
        settlement: Settlement::Undo,
        effects: None,
        instead: None,
        outcome: Carried(Outcome::Declined),
        due: START,
        begun: START,
        since: START,
        until: after(10_000),
        tries: 0,
        again: 0,
        insists: true,
        in_doubt: false,
        committed: None,
    }
}

fn is_retried(insists: bool, kind: StoreErrorKind, now: Timestamp) -> bool {
    let mut settling = Settling { insists, ..settling(0) };
    settling.is_retried(&StoreError::new(kind, "no luck"), now)
}

fn places(sent: impl IntoIterator<Item = Box<Settling>>) -> Vec<usize> {
    sent.into_iter().map(|settling| settling.at).collect()
}

#[test]
fn an_error_that_may_pass_is_retried() {
    for insists in [true, false] {
        assert!(is_retried(insists, StoreErrorKind::Unavailable, START));
        assert!(is_retried(insists, StoreErrorKind::Throttled, START));
    }
}

#[test]
fn a_refusal_is_retried_where_the_outcome_depends_on_it() {
    assert!(is_retried(true, StoreErrorKind::Denied, START));
    assert!(!is_retried(false, StoreErrorKind::Denied, START));
}

#[test]
fn what_waiting_cannot_change_is_not_retried() {
    for insists in [true, false] {
        assert!(!is_retried(insists, StoreErrorKind::TooLarge, START));
        assert!(!is_retried(insists, StoreErrorKind::Corrupt, START));
    }
}

#[test]
fn a_settlement_is_retried_if_that_is_before_its_end() {
    assert!(is_retried(true, StoreErrorKind::Throttled, after(9_899)));
    assert!(!is_retried(true, StoreErrorKind::Throttled, after(9_900)));
}

#[test]
fn settlements_are_there_until_they_are_answered() {
    let mut settlements = Settlements::default();
    assert!(settlements.is_empty());
    settlements.waiting.push(Box::new(settling(0)));
    assert!(!settlements.is_empty(), "it waits");
    assert!(settlements.send(call(), false, START).is_some());
    assert!(!settlements.is_empty(), "it is on its way");
    assert_eq!(settlements.answered(call(), START).map(|call| places(call.members)), Some(vec![0]));
    assert!(settlements.is_empty());
}

#[test]
fn a_settlement_is_overdue_after_its_instant_and_not_while_a_call_may_be_back_soon() {
    let mut settlements = Settlements::default();
    settlements.waiting.push(Box::new(settling(0)));
    assert!(!settlements.is_overdue(START));
    assert!(settlements.is_overdue(after(1)));
    settlements.send(call(), false, START);
    settlements.waiting.push(Box::new(settling(1)));
    assert!(!settlements.is_overdue(after(1_000)));
    assert!(settlements.is_overdue(after(1_001)));
}

#[test]
fn what_must_leave_now_does_not_wait_for_a_call_on_its_way() {
    let mut settlements = Settlements::default();
    settlements.waiting.push(Box::new(settling(0)));
    settlements.send(call(), false, START);
    settlements.waiting.push(Box::new(settling(1)));
    assert!(settlements.send(call(), false, after(999)).is_none());
    assert!(settlements.send(call(), true, after(999)).is_some());
}

#[test]
fn what_is_due_later_is_sent_later() {
    let mut settlements = Settlements::default();
    settlements.waiting.push(Box::new(Settling { due: after(100), ..settling(0) }));
    settlements.waiting.push(Box::new(settling(1)));
    assert!(settlements.send(call(), false, START).is_some());
    assert_eq!(settlements.answered(call(), START).map(|call| places(call.members)), Some(vec![1]));
    assert!(settlements.send(call(), false, after(99)).is_none());
    assert!(settlements.send(call(), false, after(100)).is_some());
}

#[test]
fn a_call_ends_with_the_first_settlement_that_is_given_up() {
    let mut settlements = Settlements::default();
    settlements.waiting.push(Box::new(settling(0)));
    settlements.waiting.push(Box::new(Settling { until: after(3_000), ..settling(1) }));
    assert_eq!(deadline(&settlements.send(call(), false, START).unwrap()), after(3_000));
    settlements.abandon();
    settlements.waiting.push(Box::new(Settling { tries: 1, until: after(60_000), ..settling(2) }));
    assert_eq!(
        deadline(&settlements.send(call(), false, START).unwrap()),
        after(10_000),
        "twice 5 s"
    );
}

#[test]
fn all_settlements_are_given_up_sent_or_not() {
    let mut settlements = Settlements::default();
    settlements.waiting.push(Box::new(settling(0)));
    settlements.send(call(), false, START);
    settlements.waiting.push(Box::new(settling(1)));
    assert_eq!(places(settlements.abandon()), [0, 1]);
    assert!(settlements.is_empty());
}

/// Other invocations of the process answer from what is learnt.
#[test]
fn what_is_written_is_learnt_and_what_may_be_is_not() {
    let commit = |verdict| {
        let mut settling = settling(0);
        settling.settlement = Settlement::Commit { result: None, outbox: None };
        settling.effects = Some(Effects::new(()));
        Written { record: settling.write(START).record, verdict, cut_short: false }
    };
    assert!(stored(&commit(Verdict::Written)).is_some());
    let lost = StoreError::new(StoreErrorKind::Unavailable, "no answer");
    assert_eq!(stored(&commit(Verdict::Unknown(lost))), None);
}
