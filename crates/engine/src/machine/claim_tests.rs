use lambda_idempotency_core::policy::Policy;
use lambda_idempotency_keys::Key;

use super::super::{
    budget::TimeBudget,
    io::Setting,
    lease::Terms,
    record::{
        BatchRecord, NewRecord,
        testing::{START, after, call, claim, deadline, held},
    },
};
use super::*;

/// A key whose claim is given up after 5 s, or after 8 s if only other calls are in the way.
fn claiming(at: usize, step: ClaimStep) -> Claiming {
    Claiming {
        at,
        key: Key::from_text(format!("op#{at}")),
        claim: claim(at, 60_000),
        step,
        losses: 0,
        until: after(5_000),
        last: after(8_000),
        rounds: 0,
        is_slow: false,
        doubt: None,
    }
}

fn claims(steps: impl IntoIterator<Item = ClaimStep>) -> Claims {
    let mut claims = Claims::default();
    let all = steps.into_iter().enumerate().map(|(at, step)| claiming(at, step));
    claims.waiting.extend(all);
    claims
}

/// A record whose claims hold until `lease`, in an invocation whose handlers are stopped after 9 s.
fn with_view<T>(now: Timestamp, lease: u64, then: impl FnOnce(&RecordView<'_, '_>) -> T) -> T {
    let mut policy = Policy::default();
    policy.lease_grace = Duration::ZERO;
    let setting = Setting {
        operation: "op",
        application: None,
        policy: &policy,
        deadline: None,
        work_end: None,
        time_after: Duration::ZERO,
        is_redelivered: true,
    };
    then(&RecordView {
        at: 0,
        record: &BatchRecord::new(NewRecord::keyed(Key::from_text("op#0"))),
        now,
        setting: &setting,
        budget: TimeBudget::new(START, after(9_750), Duration::ZERO),
        terms: Terms::new(&policy, after(lease)),
        is_closed: false,
        has_turn: false,
        is_beside_others: false,
    })
}

/// The next call of these claims, which get a lease until `lease`.
fn send(claims: &mut Claims, now: Timestamp, lease: u64) -> Option<Action> {
    claims.send(call(), now, (after(lease), after(10_000)), false)
}

/// The only write of the next call, with a lease of a minute.
fn write(claims: &mut Claims, now: Timestamp) -> Write {
    let Some(Action::Write { mut writes, .. }) = send(claims, now, 60_000) else {
        panic!("it is sent")
    };
    assert_eq!(writes.len(), 1);
    writes.remove(0)
}

/// The only call was answered: what follows, if claiming does not go on.
fn answer(
    claims: &mut Claims,
    write: Write,
    verdict: Verdict,
    now: Timestamp,
    lease: u64,
) -> Option<Decision> {
    let mut answered = claims.answered(call(), now).unwrap();
    let cut_short = answered.cut_short;
    let written = Written { record: write.record, verdict, cut_short };
    let claiming = answered.members.remove(0);
    let decision = with_view(now, lease, |view| claimed(view, claiming, written));
    match decision.next {
        Next::Claim(claiming) => claims.waiting.push(claiming),
        _ => return Some(decision),
    }
    None
}

/// Claims the key once, with a lease of a minute.
fn try_once(
    claims: &mut Claims,
    sent: Timestamp,
    verdict: Verdict,
    now: Timestamp,
) -> Option<Decision> {
    let write = write(claims, sent);
    answer(claims, write, verdict, now, 60_000)
}

/// The error of a claim that has ended.
fn error(ended: Option<Decision>) -> StoreError {
    match ended.map(|decision| decision.next) {
        Some(Next::End(Outcome::Unavailable(error))) => error,
        other => panic!("no error: {other:?}"),
    }
}

fn fresh() -> ClaimStep {
    ClaimStep::Write(None)
}

fn lost_answer() -> Verdict {
    StoreError::new(StoreErrorKind::Unavailable, "the answer was lost").with_doubt(true).into()
}

fn crowded() -> Verdict {
    StoreError::new(StoreErrorKind::Contended, "all in use").into()
}

/// The next call undoes a claim of a key that was free.
fn is_undone(claims: &mut Claims, now: Timestamp, verdict: Verdict) -> StoreError {
    let undo = write(claims, now);
    assert!(matches!(undo, Write { guard: Guard::OwnedBy(_), record: None, .. }));
    error(answer(claims, undo, verdict, now, 60_000))
}

#[test]
fn the_first_call_ends_early_unless_it_writes_for_the_only_record_of_the_batch() {
    let first = |step, is_only| {
        let ends = (after(60_000), after(10_000));
        deadline(&claims([step]).send(call(), START, ends, is_only).unwrap())
    };
    assert_eq!(first(fresh(), false), after(1_000));
    assert_eq!(first(fresh(), true), after(5_000), "the time for claims");
    assert_eq!(first(ClaimStep::Look, true), after(1_000), "writes may succeed where reads fail");
}

/// A thousand calls of `run` at once have a thousand claims on their way.
#[test]
fn a_claim_on_its_way_keeps_no_copy_of_what_it_writes() {
    let size = size_of::<Claiming>();
    assert!(size <= 304, "{size} bytes; 800 with the claim and its record once more");
}

fn keys(request: Option<Action>) -> (&'static str, Vec<String>) {
    let text = |key: Key| key.as_str().to_owned();
    match request {
        Some(Action::Read { keys, .. }) => ("read", keys.into_iter().map(text).collect()),
        Some(Action::Write { writes, .. }) => {
            ("write", writes.into_iter().map(|w| text(w.key)).collect())
        }
        _ => panic!("a read or a write"),
    }
}

#[test]
fn looks_and_writes_share_a_call_with_their_like() {
    let mut claims = claims([fresh(), ClaimStep::Look, fresh(), ClaimStep::Look]);
    let mut keys = || keys(send(&mut claims, START, 60_000));
    assert_eq!(keys(), ("write", vec!["op#0".to_owned(), "op#2".to_owned()]));
    assert_eq!(keys(), ("read", vec!["op#1".to_owned(), "op#3".to_owned()]));
    assert_eq!(claims.all().count(), 4);
    assert!(send(&mut claims, START, 60_000).is_none());
}

#[test]
fn a_record_that_changes_under_three_writes_of_a_claim_is_contended() {
    let mut claims = claims([fresh()]);
    for round in 1..=ROUNDS {
        let ended = try_once(&mut claims, START, Verdict::Found(None), START);
        assert_eq!(ended.is_some(), round == ROUNDS);
        if round == ROUNDS {
            assert_eq!(error(ended).kind(), StoreErrorKind::Contended);
        }
    }
    assert!(claims.is_empty());
}

#[test]
fn a_claim_whose_call_was_cut_short_is_asked_again_while_there_is_time() {
    for (now, is_asked_again) in [(4_999, true), (5_000, false)] {
        let mut claims = claims([fresh()]);
        let throttled = StoreError::new(StoreErrorKind::Throttled, "throttled");
        let ended = try_once(&mut claims, START, throttled.into(), after(now));
        if is_asked_again {
            assert!(ended.is_none());
            let again = send(&mut claims, after(now), 60_000).unwrap();
            assert_eq!(deadline(&again), after(5_000), "all the time that is left");
        } else {
            assert_eq!(error(ended).kind(), StoreErrorKind::Throttled);
        }
    }
}

/// Only an outage ends claiming early: other calls of the process may have all connections.
#[test]
fn a_claim_that_other_calls_are_in_the_way_of_goes_on_until_no_handler_could_start() {
    for (now, is_asked_again) in [(5_000, true), (7_999, true), (8_000, false)] {
        let mut claims = claims([fresh()]);
        let ended = try_once(&mut claims, START, crowded(), after(now));
        assert_eq!(ended.is_none(), is_asked_again, "{now}");
        if is_asked_again {
            let again = send(&mut claims, after(now), 60_000).unwrap();
            assert_eq!(deadline(&again), after(8_000), "all the time that is left");
        }
    }
}

#[test]
fn a_claim_in_doubt_is_undone_and_keeps_its_error() {
    let mut claims = claims([fresh()]);
    assert!(try_once(&mut claims, START, lost_answer(), START).is_none(), "it is undone before");
    let error = is_undone(&mut claims, START, Verdict::Written);
    assert!(error.to_string().contains("the answer was lost"), "{error}");
}

#[test]
fn all_claims_are_given_up_sent_or_not() {
    let mut claims = claims([fresh(), ClaimStep::Look]);
    send(&mut claims, START, 60_000);
    let places: Vec<_> = claims.abandon().iter().map(|claiming| claiming.at).collect();
    assert_eq!(places, [0, 1]);
    assert!(claims.is_empty() && claims.abandon().is_empty());
}

#[test]
fn undoing_a_takeover_keeps_the_counts_of_earlier_attempts() {
    let release = Settlement::Release { error_type: "Timeout".into() };
    let (_, released) = held(60_000).write(&release, START);
    let mut claims = claims([ClaimStep::Write(released.map(Box::new))]);
    assert!(try_once(&mut claims, START, lost_answer(), START).is_none());
    let left = write(&mut claims, START).record;
    assert_eq!(left.map(|record| record.failed_attempts), Some(1));
}

/// Otherwise the key would stay claimed until the lease ends, and the next claim would count a lost attempt.
#[test]
fn a_claim_that_finds_itself_and_cannot_renew_its_lease_is_undone() {
    let mut claims = claims([fresh()]);
    let first = write(&mut claims, START);
    let applied = first.record.clone();
    assert!(answer(&mut claims, first, lost_answer(), after(1_000), 60_000).is_none());
    for verdict in [Verdict::Found(applied), crowded()] {
        let Some(Action::Write { mut writes, .. }) = send(&mut claims, after(4_000), 180_000)
        else {
            panic!("it is sent again")
        };
        let ended = answer(&mut claims, writes.remove(0), verdict, after(8_000), 180_000);
        assert!(ended.is_none());
    }
    let error = is_undone(&mut claims, after(8_000), Verdict::Written);
    assert_eq!(error.kind(), StoreErrorKind::Contended);
}

/// The process was suspended, or its handlers occupied the processor.
#[test]
fn a_claim_that_is_answered_after_the_time_for_handlers_is_given_up() {
    let mut late = claims([fresh()]);
    let ended = try_once(&mut late, START, Verdict::Found(None), after(9_000));
    let error = error(ended);
    assert!(error.to_string().contains("before the time for handlers was over"), "{error}");
    for lost in [true, false] {
        let mut claims = claims([fresh()]);
        let mut again = write(&mut claims, START);
        let applied = again.record.clone();
        // Otherwise the store has sent it again by itself, and says nothing of the lost answer.
        if lost {
            assert!(answer(&mut claims, again, lost_answer(), after(1_000), 60_000).is_none());
            again = write(&mut claims, after(1_000));
        }
        let ended = answer(&mut claims, again, Verdict::Found(applied), after(9_000), 60_000);
        assert!(ended.is_none(), "its key would stay claimed until the lease ends");
        let error = is_undone(&mut claims, after(9_000), Verdict::Written);
        assert!(error.to_string().contains("before the time for handlers was over"), "{error}");
    }
}

/// The first of many calls of a busy process was answered when nobody waited for it any more.
#[test]
fn a_claim_that_finds_itself_with_little_of_its_lease_left_renews_it() {
    for (later, is_renewed) in [(62_000, false), (180_000, true)] {
        let (mut claims, now) = (claims([fresh()]), after(1_000));
        let first = write(&mut claims, START);
        let applied = first.record.clone();
        assert!(answer(&mut claims, first, lost_answer(), now, 60_000).is_none());
        let again = write(&mut claims, now);
        let mut ended = answer(&mut claims, again, Verdict::Found(applied), now, later);
        assert_eq!(ended.is_none(), is_renewed);
        if is_renewed {
            let Some(Action::Write { mut writes, .. }) = send(&mut claims, now, later) else {
                panic!("it is renewed")
            };
            assert!(matches!(writes[0].guard, Guard::Unchanged(_)));
            ended = answer(&mut claims, writes.remove(0), Verdict::Written, now, later);
        }
        let Some(Decision { effects: [Some(Effect::Granted(held, None)), None], .. }) = ended
        else {
            panic!("it is held")
        };
        let expected = if is_renewed { after(later) } else { after(60_000) };
        assert_eq!(held.record.lease_until, Some(expected));
    }
}
