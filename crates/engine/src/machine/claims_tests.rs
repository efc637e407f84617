use super::super::{
    calls::CallIds,
    record::testing::{START, after, claim, deadline, held},
};
use super::*;

fn wanted(at: usize, begins: Begins) -> WantedKey {
    WantedKey {
        is_optimistic: false,
        at,
        key: Key::from_text(format!("op#{at}")),
        claim: claim(at, 60_000),
        begins,
        losses: 0,
        until: after(5_000),
        last: after(8_000),
    }
}

fn claims(begins: impl IntoIterator<Item = Begins>) -> Claims {
    let mut claims = Claims::default();
    for (at, begins) in begins.into_iter().enumerate() {
        claims.add(wanted(at, begins));
    }
    claims
}

/// The next request.
fn send(claims: &mut Claims, number: &mut CallIds, now: Timestamp) -> (CallId, Action, Timestamp) {
    let (call, mut answers) = (number.next(), Vec::new());
    let request =
        claims.send(call, now, (after(60_000), after(10_000)), false, &mut answers).unwrap();
    assert!(answers.is_empty());
    number.sent();
    let deadline = deadline(&request);
    (call, request, deadline)
}

#[test]
fn the_first_call_ends_early_unless_it_writes_for_the_only_record_of_the_batch() {
    let first = |begins, is_only| {
        let mut claims = claims([begins]);
        let ends = (after(60_000), after(10_000));
        let sent = claims.send(CallIds::default().next(), START, ends, is_only, &mut vec![]);
        deadline(&sent.unwrap())
    };
    assert_eq!(first(Begins::Write(None), false), after(1_000));
    assert_eq!(first(Begins::Write(None), true), after(5_000), "the time for claims");
    assert_eq!(first(Begins::Look, true), after(1_000), "writes may succeed where reads fail");
}

/// The writes of a request, which come back with their answer.
fn writes(request: Action) -> Vec<Write> {
    match request {
        Action::Write { writes, .. } => writes,
        _ => panic!("a write"),
    }
}

/// A thousand calls of `run` at once have a thousand claims on their way.
#[test]
fn a_claim_on_its_way_keeps_no_copy_of_what_it_writes() {
    let size = size_of::<PendingClaim>();
    assert!(size <= 608, "{size} bytes; 1,056 with the claim and its record once more");
}

fn keys(request: Action) -> (&'static str, Vec<String>) {
    let text = |key: Key| key.as_str().to_owned();
    match request {
        Action::Read { keys, .. } => ("read", keys.into_iter().map(text).collect()),
        Action::Write { writes, .. } => {
            ("write", writes.into_iter().map(|w| text(w.key)).collect())
        }
        _ => panic!("a read or a write"),
    }
}

/// The error of the only answer.
fn error(answers: Option<Vec<ClaimAnswer>>) -> StoreError {
    let mut answers = answers.unwrap();
    match answers.pop().map(|answer| answer.claimed) {
        Some(Claimed::Unavailable(error)) if answers.is_empty() => error,
        _ => panic!("there is one answer, which is an error"),
    }
}

fn lost_answer() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the answer was lost").with_doubt(true)
}

fn throttled() -> StoreError {
    StoreError::new(StoreErrorKind::Throttled, "throttled")
}

/// A claim that is in doubt since its answer was lost at once.
fn in_doubt(number: &mut CallIds) -> Claims {
    let mut claims = claims([Begins::Write(None)]);
    let (call, sent, _) = send(&mut claims, number, START);
    let verdicts = [Verdict::Unknown(lost_answer())].into_iter();
    let answers = claims.written(call, writes(sent), verdicts, START);
    assert!(answers.unwrap().is_empty(), "it is undone before its record has an outcome");
    claims
}

#[test]
fn looks_and_writes_share_a_call_with_their_like() {
    let begins = [Begins::Write(None), Begins::Look, Begins::Write(None), Begins::Look];
    let (mut claims, mut number) = (claims(begins), CallIds::default());
    let (_, writes, _) = send(&mut claims, &mut number, START);
    assert_eq!(keys(writes), ("write", vec!["op#0".to_owned(), "op#2".to_owned()]));
    let (_, reads, _) = send(&mut claims, &mut number, START);
    assert_eq!(keys(reads), ("read", vec!["op#1".to_owned(), "op#3".to_owned()]));
    assert_eq!(claims.open(), 4);
}

#[test]
fn a_record_that_changes_under_three_writes_of_a_claim_is_contended() {
    let (mut claims, mut number) = (claims([Begins::Write(None)]), CallIds::default());
    for _ in 0..ROUNDS {
        let (call, sent, _) = send(&mut claims, &mut number, START);
        let verdicts = [Verdict::Found(None)].into_iter();
        let answers = claims.written(call, writes(sent), verdicts, START);
        assert!(answers.unwrap().is_empty());
    }
    let mut answers = Vec::new();
    assert!(
        claims
            .send(number.next(), START, (after(60_000), after(10_000)), false, &mut answers)
            .is_none()
    );
    assert_eq!(error(Some(answers)).kind(), StoreErrorKind::Contended);
    assert_eq!(claims.open(), 0);
}

#[test]
fn a_claim_whose_call_was_cut_short_is_asked_again_while_there_is_time() {
    let mut number = CallIds::default();
    for (now, is_asked_again) in [(4_999, true), (5_000, false)] {
        let mut claims = claims([Begins::Write(None)]);
        let (call, sent, deadline) = send(&mut claims, &mut number, START);
        assert_eq!(deadline, after(1_000));
        let verdicts = [Verdict::Unknown(throttled())].into_iter();
        let answers = claims.written(call, writes(sent), verdicts, after(now));
        if is_asked_again {
            assert!(answers.unwrap().is_empty());
            let (_, _, deadline) = send(&mut claims, &mut number, after(now));
            assert_eq!(deadline, after(5_000), "all the time that is left");
        } else {
            assert_eq!(error(answers).kind(), StoreErrorKind::Throttled);
        }
    }
}

/// Only an outage ends claiming early: other calls of the process may have all connections.
#[test]
fn a_claim_that_other_calls_are_in_the_way_of_goes_on_until_no_handler_could_start() {
    let mut number = CallIds::default();
    for (now, is_asked_again) in [(5_000, true), (7_999, true), (8_000, false)] {
        let mut claims = claims([Begins::Write(None)]);
        let (call, sent, _) = send(&mut claims, &mut number, START);
        let crowded = StoreError::new(StoreErrorKind::Contended, "all in use");
        let verdicts = [Verdict::Unknown(crowded)].into_iter();
        let answers = claims.written(call, writes(sent), verdicts, after(now)).unwrap();
        assert_eq!(answers.is_empty(), is_asked_again, "{now}");
        if is_asked_again {
            let (_, _, deadline) = send(&mut claims, &mut number, after(now));
            assert_eq!(deadline, after(8_000), "all the time that is left");
        }
    }
}

#[test]
fn claims_that_were_not_sent_end_with_the_time_for_handlers() {
    let mut claims = claims([Begins::Write(None)]);
    let error = error(Some(claims.stop()));
    assert!(error.to_string().contains("before the time for handlers was over"), "{error}");
    assert_eq!(claims.open(), 0);
}

#[test]
fn a_claim_in_doubt_that_waits_for_its_next_try_is_undone_at_the_end() {
    let (mut claims, mut number) = (claims([Begins::Write(None)]), CallIds::default());
    let (call, sent, _) = send(&mut claims, &mut number, START);
    let verdicts = [Verdict::Unknown(lost_answer())].into_iter();
    let answers = claims.written(call, writes(sent), verdicts, after(1_000));
    assert!(answers.unwrap().is_empty(), "asked again");
    assert!(claims.stop().is_empty(), "its record has an outcome once it is undone");
    let (call, undo, deadline) = send(&mut claims, &mut number, after(1_000));
    let undo = writes(undo);
    assert!(matches!(&*undo, [Write { guard: Guard::OwnedBy(_), record: None, .. }]));
    assert_eq!(deadline, after(10_000));
    let error = error(claims.written(call, undo, [Verdict::Written].into_iter(), after(1_100)));
    assert!(error.to_string().contains("before the time for handlers was over"), "{error}");
}

#[test]
fn undoing_that_has_begun_keeps_its_error_at_the_end() {
    let mut number = CallIds::default();
    let mut claims = in_doubt(&mut number);
    assert!(claims.stop().is_empty());
    let (call, undo, _) = send(&mut claims, &mut number, START);
    let error = error(claims.written(call, writes(undo), [Verdict::Written].into_iter(), START));
    assert_eq!(error.to_string(), lost_answer().to_string());
}

#[test]
fn all_claims_are_given_up_sent_or_not() {
    let (mut claims, mut number) =
        (claims([Begins::Write(None), Begins::Look]), CallIds::default());
    send(&mut claims, &mut number, START);
    assert_eq!(claims.abandon(), [0, 1]);
    assert_eq!((claims.open(), claims.abandon()), (0, vec![]));
}

#[test]
fn undoing_a_takeover_keeps_the_counts_of_earlier_attempts() {
    let release = Settlement::Release { error_type: "Timeout".into() };
    let (_, released) = held(60_000).write(&release, START);
    let (mut claims, mut number) =
        (claims([Begins::Write(released.map(Box::new))]), CallIds::default());
    let (call, sent, _) = send(&mut claims, &mut number, START);
    let verdicts = [Verdict::Unknown(lost_answer())].into_iter();
    claims.written(call, writes(sent), verdicts, START);
    let (_, undo, _) = send(&mut claims, &mut number, START);
    let left = writes(undo).into_iter().next().and_then(|write| write.record);
    assert_eq!(left.map(|record| record.failed_attempts), Some(1));
}

/// Otherwise the key would stay claimed until the lease ends, and the next claim would count a lost attempt.
#[test]
fn a_claim_that_finds_itself_and_cannot_renew_its_lease_is_undone() {
    let (mut claims, mut number) = (claims([Begins::Write(None)]), CallIds::default());
    let (call, sent, _) = send(&mut claims, &mut number, START);
    let sent = writes(sent);
    let applied = sent.iter().find_map(|write| write.record.clone());
    claims.written(call, sent, [Verdict::Unknown(lost_answer())].into_iter(), after(1_000));
    let crowded = StoreError::new(StoreErrorKind::Contended, "all in use");
    for verdict in [Verdict::Found(applied), Verdict::Unknown(crowded)] {
        let (call, ends) = (number.next(), (after(180_000), after(10_000)));
        let request =
            claims.send(call, after(4_000), ends, false, &mut vec![]).expect("it is sent again");
        number.sent();
        let answers = claims.written(call, writes(request), [verdict].into_iter(), after(8_000));
        assert!(answers.unwrap().is_empty());
    }
    let (call, undo, _) = send(&mut claims, &mut number, after(8_000));
    let undo = writes(undo);
    assert!(matches!(&*undo, [Write { guard: Guard::OwnedBy(_), record: None, .. }]));
    let error = error(claims.written(call, undo, [Verdict::Written].into_iter(), after(8_100)));
    assert_eq!(error.kind(), StoreErrorKind::Contended);
}

/// The process was suspended, or its handlers occupied the processor.
#[test]
fn a_claim_that_finds_itself_after_the_time_for_handlers_is_undone() {
    for lost in [true, false] {
        let (mut claims, mut number) = (claims([Begins::Write(None)]), CallIds::default());
        let (mut call, mut sent, _) = send(&mut claims, &mut number, START);
        let mut again = writes(sent);
        let applied = again.iter().find_map(|write| write.record.clone());
        // Otherwise the store has sent it again by itself, and says nothing of the lost answer.
        if lost {
            claims.written(
                call,
                again,
                [Verdict::Unknown(lost_answer())].into_iter(),
                after(1_000),
            );
            (call, sent, _) = send(&mut claims, &mut number, after(1_000));
            again = writes(sent);
        }
        claims.written(call, again, [Verdict::Found(applied)].into_iter(), after(9_000));
        assert!(claims.stop().is_empty(), "its key would stay claimed until the lease ends");
        let (call, undo, _) = send(&mut claims, &mut number, after(9_000));
        let undo = writes(undo);
        assert!(matches!(&*undo, [Write { guard: Guard::OwnedBy(_), record: None, .. }]));
        error(claims.written(call, undo, [Verdict::Written].into_iter(), after(9_100)));
    }
}

/// The first of many calls of a busy process was answered when nobody waited for it any more.
#[test]
fn a_claim_that_finds_itself_with_little_of_its_lease_left_renews_it() {
    for (later, is_renewed) in [(62_000, false), (180_000, true)] {
        let (mut claims, mut number) = (claims([Begins::Write(None)]), CallIds::default());
        let (call, sent, _) = send(&mut claims, &mut number, START);
        let sent = writes(sent);
        let applied = sent.iter().find_map(|write| write.record.clone());
        let now = after(1_000);
        claims.written(call, sent, [Verdict::Unknown(lost_answer())].into_iter(), now);
        let mut claim_again = |verdict, answers: &mut Vec<ClaimAnswer>| {
            let (call, ends) = (number.next(), (after(later), after(10_000)));
            let request = claims.send(call, now, ends, false, answers)?;
            number.sent();
            let sent = writes(request);
            let guard = sent.first().map(|write| write.guard.clone());
            answers.extend(claims.written(call, sent, [verdict].into_iter(), now).unwrap());
            guard
        };
        let mut answers = Vec::new();
        claim_again(Verdict::Found(applied), &mut answers);
        assert!(answers.is_empty());
        let guard = claim_again(Verdict::Written, &mut answers);
        assert_eq!(matches!(guard, Some(Guard::Unchanged(_))), is_renewed, "{guard:?}");
        let Some(Claimed::Held(held)) = answers.pop().map(|answer| answer.claimed) else {
            panic!("it is held")
        };
        let expected = if is_renewed { after(later) } else { after(60_000) };
        assert_eq!(held.record.lease_until, Some(expected));
    }
}
