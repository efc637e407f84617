//! Calls that are made at the same time share requests, and nothing else.

use std::{
    cell::Cell,
    pin::{Pin, pin},
    task::{Context, Waker},
    time::{Duration, Instant},
};

use crate::support::{
    Fault, Fixture, PlainVerdict, claimed, completed, key, one, owner, plain, soon, unknown, write,
};
use futures_util::{
    StreamExt as _,
    future::{Either, join, join_all, select},
    stream,
};
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    store::{Guard, RecordVersion, Store, StoreErrorKind, Verdict, Write},
    usage::measured,
};
use lambda_idempotency_dynamodb::DynamoDbStore;
use lambda_idempotency_testkit::clock::ManualClock;
use serde_json::Value;

fn claim(n: usize) -> Write {
    write(n, Guard::Absent, Some(claimed(n as u128 + 1)))
}

fn completion(n: usize) -> Write {
    let own = n as u128 + 1;
    write(n, Guard::OwnedBy(owner(own)), Some(completed(own, "7")))
}

/// Each of these writes by a call of its own, all at once.
async fn at_once(
    store: &DynamoDbStore,
    writes: impl IntoIterator<Item = Write>,
) -> Vec<PlainVerdict> {
    let calls = writes.into_iter().map(|write| async { plain(&one(store, write).await) });
    join_all(calls).await
}

/// The keys of the writes in these requests.
fn keys(requests: &[(String, Value)]) -> Vec<String> {
    let text = serde_json::to_string(&requests.iter().map(|(_, body)| body).collect::<Vec<_>>());
    let text = text.unwrap();
    let parts = text.split("op#").skip(1);
    parts.map(|part| format!("op#{}", part.split('"').next().unwrap())).collect()
}

/// Waits until the table has this item, and then lets so much time pass.
async fn pass_after(fixture: &Fixture, clock: &ManualClock, item: &str, time: Duration) {
    while fixture.item(item).is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    clock.advance(time);
}

/// Lets time pass, a millisecond at a time, until `is_over`, and says whether that was within `most`.
async fn pass_until(clock: &ManualClock, most: Duration, is_over: impl Fn() -> bool) -> bool {
    let ends = clock.now().plus(most);
    while !is_over() && clock.now() < ends {
        clock.advance(Duration::from_millis(1));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    is_over()
}

/// Polls a call once.
fn start(call: &mut BoxFuture<'_, Vec<Verdict>>) {
    let polled = Pin::new(call).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
}

/// So many calls claim a key each, all at once, do their work, and complete it. The requests are counted.
async fn claim_and_complete(calls: usize, work: Duration, response: Duration) {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    if !response.is_zero() {
        fixture.wire.fault((0..calls).map(|_| Fault::Slow(response)));
    }
    let calls_at_once = (0..calls).map(|n| {
        let store = &store;
        async move {
            assert_eq!(plain(&one(store, claim(n)).await), PlainVerdict::Written);
            if !work.is_zero() {
                tokio::time::sleep(work).await;
            }
            assert_eq!(plain(&one(store, completion(n)).await), PlainVerdict::Written);
        }
    });
    join_all(calls_at_once).await;
    let (requests, at_once) = (fixture.wire.operations().len(), fixture.wire.most_at_once());
    let setting = format!("{calls} calls with {work:?} of work, responses in {response:?}");
    // In groups of 25 they are 0.08 for each call.
    assert!(requests <= calls / 10, "{setting}: {requests} requests");
    assert!(at_once <= 16, "{setting}: {at_once} requests at once");
    for n in [0, 1, calls / 2, calls - 1] {
        assert_eq!(fixture.item(key(n).as_str()).unwrap()["status"]["S"], "COMPLETED");
    }
}

const DELAYS: [Duration; 3] = [Duration::ZERO, Duration::from_millis(5), Duration::from_millis(50)];
const WORK: [Duration; 2] = [Duration::ZERO, Duration::from_millis(20)];

#[tokio::test]
async fn hundreds_of_calls_need_a_tenth_of_a_request_each() {
    for response in DELAYS {
        for work in WORK {
            claim_and_complete(400, work, response).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_calls_need_a_tenth_of_a_request_each_on_several_threads() {
    for response in DELAYS {
        claim_and_complete(400, WORK[1], response).await;
    }
}

#[tokio::test]
async fn a_thousand_calls_need_a_tenth_of_a_request_each() {
    claim_and_complete(1000, WORK[0], DELAYS[1]).await;
}

#[tokio::test]
async fn five_thousand_calls_need_a_tenth_of_a_request_each() {
    claim_and_complete(5000, WORK[1], DELAYS[1]).await;
}

/// Metrics say what each operation consumes, although its writes share requests with those of others.
#[tokio::test]
async fn each_call_is_charged_for_its_own_writes() {
    let fixture = Fixture::start().await;
    let store = &fixture.store();
    let writes: Vec<Write> = (0..12).map(claim).collect();
    // No other call is on its way yet, so this one has a request of its own.
    let alone = measured(store.write(&writes[..1], soon()));
    let unmeasured = store.write(&writes[1..4], soon());
    let first = measured(store.write(&writes[4..6], soon()));
    let second = measured(store.write(&writes[6..], soon()));
    let ((alone, _), (first, second)) = join(join(alone, unmeasured), join(first, second)).await;
    let usages = [alone.1, first.1, second.1];
    assert_eq!(usages.map(|usage| usage.capacity_units), [1.0, 2.0, 6.0], "a unit for each write");
    let requests: u32 = usages.iter().map(|usage| usage.requests).sum();
    assert_eq!((requests, fixture.wire.operations().len()), (2, 2), "{usages:?}");
}

/// In an outage, too: no call has the answer to its request.
#[tokio::test]
async fn a_request_without_an_answer_is_charged_once() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let store = &fixture.builder().clock(clock.clone()).build().unwrap();
    fixture.wire.fault([Fault::Hang, Fault::Hang]);
    let writes: Vec<Write> = (0..4).map(claim).collect();
    let limit = Duration::from_millis(300);
    let deadline = clock.now().plus(limit);
    let calls = writes.chunks(1).map(|write| measured(store.write(write, deadline)));
    let calls = async {
        let answers = join_all(calls).await;
        answers.into_iter().map(|(_, usage)| usage.requests).sum::<u32>()
    };
    let time = async {
        pass_after(&fixture, &clock, "op#0", Duration::ZERO).await;
        pass_after(&fixture, &clock, "op#3", limit).await;
        // How long an answer that came in time may take to be read.
        pass_until(&clock, limit, || false).await
    };
    let requests = match select(pin!(calls), pin!(time)).await {
        Either::Left((requests, _)) => requests,
        Either::Right(_) => panic!("the time was over"),
    };
    assert_eq!((requests, fixture.wire.operations().len()), (2, 2));
}

/// A request that is cut off has to be sent again, which makes a slow table slower.
#[tokio::test]
async fn a_request_may_take_twice_as_long_as_the_last_one() {
    let fixture = Fixture::start().await;
    let store = fixture.builder().attempt_timeout(Duration::from_secs(2)).build().unwrap();
    fixture.wire.fault([1_500, 2_100].map(|took| Fault::Slow(Duration::from_millis(took))));
    for n in 0..2 {
        assert_eq!(plain(&one(&store, claim(n)).await), PlainVerdict::Written);
    }
    assert_eq!(fixture.wire.operations(), ["PutItem"; 2]);
}

/// The one before may have been slow because this process was frozen.
#[tokio::test]
async fn after_a_slow_request_one_that_hangs_leaves_time_for_another() {
    let fixture = Fixture::start().await;
    let store = fixture.builder().attempt_timeout(Duration::from_secs(3)).build().unwrap();
    fixture.wire.fault([Fault::Slow(Duration::from_millis(1_800)), Fault::Hang]);
    assert_eq!(plain(&one(&store, claim(0)).await), PlainVerdict::Written);
    let due = SystemClock.now().plus(Duration::from_millis(3_500));
    assert_eq!(plain(&store.write(&[claim(1)], due).await.remove(0)), PlainVerdict::Written);
    assert_eq!(fixture.wire.operations(), ["PutItem"; 3]);
}

#[tokio::test]
async fn requests_of_their_own_are_bounded_too() {
    let fixture = Fixture::start().await;
    // In half a second in which no request ends, as on a busy machine, one more would be sent.
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let store = fixture.builder().clock(clock).without_partiql().build().unwrap();
    let verdicts = at_once(&store, (0..100).map(claim)).await;
    assert_eq!(verdicts, vec![PlainVerdict::Written; 100]);
    assert_eq!(fixture.wire.operations(), vec!["PutItem"; 100]);
    assert_eq!(fixture.wire.most_at_once(), 10);
}

#[tokio::test]
async fn a_call_beside_no_other_is_not_shared() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    for n in 0..3 {
        one(&store, claim(n)).await;
    }
    assert_eq!(fixture.wire.operations(), ["PutItem"; 3]);
}

#[tokio::test]
async fn each_call_gets_its_own_verdict() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    at_once(&store, (0..10).step_by(2).map(claim)).await;
    let again = |n: usize| write(n, Guard::Absent, Some(claimed(100 + n as u128)));
    let verdicts = at_once(&store, (0..10).map(again)).await;
    for (n, verdict) in verdicts.iter().enumerate() {
        let found = matches!(verdict, PlainVerdict::Found(Some(record)) if record.owner == Some(owner(n as u128 + 1)));
        assert_eq!(found, n % 2 == 0, "{n}: {verdict:?}");
        assert_eq!(*verdict == PlainVerdict::Written, n % 2 == 1, "{n}: {verdict:?}");
    }
}

#[tokio::test]
async fn calls_for_one_key_do_not_share_a_request() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    let rivals = (1..=9).map(|n| write(0, Guard::Absent, Some(claimed(n))));
    let verdicts = at_once(&store, rivals).await;
    let winners = verdicts.iter().filter(|verdict| **verdict == PlainVerdict::Written).count();
    assert_eq!(winners, 1);
    for (operation, body) in fixture.wire.take() {
        assert!(operation == "PutItem" || operation == "GetItem", "{operation}: {body}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_writes_along() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    let (first, dropped, kept) = ([claim(0)], [claim(1)], [claim(2)]);
    let mut first = store.write(&first, soon());
    let mut dropped = store.write(&dropped, soon());
    let mut kept = store.write(&kept, soon());
    start(&mut first);
    start(&mut dropped);
    start(&mut kept);
    drop(dropped);
    let (first, kept) = join(first, kept).await;
    assert_eq!([plain(&first[0]), plain(&kept[0])], [PlainVerdict::Written, PlainVerdict::Written]);
    assert_eq!(keys(&fixture.wire.take()), ["op#0", "op#2"]);
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_the_request_to_the_others() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    let (first, leader, other) = ([claim(0)], [claim(1)], [claim(2)]);
    let mut first = store.write(&first, soon());
    let mut leader = store.write(&leader, soon());
    let mut other = store.write(&other, soon());
    // The second poll of `leader` sends the request.
    for call in [&mut first, &mut leader, &mut other] {
        start(call);
    }
    start(&mut leader);
    drop(leader);
    let (_, other) = join(first, other).await;
    assert_eq!(plain(&other[0]), PlainVerdict::Written);
}

#[tokio::test]
async fn each_call_recognises_its_own_write_after_a_lost_answer() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    fixture.wire.fault([Fault::Pass, Fault::LoseAnswer]);
    let verdicts = at_once(&store, (0..10).map(claim)).await;
    assert_eq!(verdicts, vec![PlainVerdict::Written; 10]);
}

#[tokio::test]
async fn a_throttled_member_delays_no_other_call() {
    let fixture = Fixture::start().await;
    let pause = Duration::from_secs(3);
    let store = fixture.builder().backoff(pause, pause).build().unwrap();
    fixture.wire.fault([Fault::Pass, Fault::Refuse(vec![0], "ThrottlingError")]);
    let began = Instant::now();
    let calls = (0..4).map(|n| {
        let store = &store;
        async move {
            assert_eq!(plain(&one(store, claim(n)).await), PlainVerdict::Written);
            began.elapsed()
        }
    });
    let took = join_all(calls).await;
    let late: Vec<bool> = took.iter().map(|took| *took >= pause / 2).collect();
    assert_eq!(late, [false, true, false, false], "{took:?}");
}

#[tokio::test]
async fn each_call_keeps_its_own_deadline() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let limit = Duration::from_millis(1_200);
    let store = fixture.builder().clock(clock.clone()).attempt_timeout(limit).build().unwrap();
    fixture.wire.fault([Fault::Pass, Fault::Hang]);
    let due = Duration::from_millis(300);
    let (hasty, patient) = hasty_and_patient(&fixture, &store, &clock, due, due).await;
    let error = unknown(hasty);
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.may_have_applied(), "the request was on its way");
    assert_eq!(plain(&patient), PlainVerdict::Written);
}

/// A request may go on for longer for the sake of another call.
#[tokio::test]
async fn each_call_keeps_its_own_limit_for_an_attempt() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let limit = Duration::from_secs(2);
    let store = fixture.builder().clock(clock.clone()).attempt_timeout(limit).build().unwrap();
    // After this answer a request may take three seconds, but not more than half of the time of its call.
    let time = clock.clone();
    let slow = move |_: &_| time.advance(Duration::from_millis(1_500));
    fixture.wire.fault([Fault::Before(Box::new(slow)), Fault::Pass, Fault::Hang]);
    assert_eq!(plain(&one_by(&store, &clock, claim(9)).await), PlainVerdict::Written);
    let due = Duration::from_millis(2_900);
    let (hasty, patient) = hasty_and_patient(&fixture, &store, &clock, due, limit).await;
    assert_eq!(plain(&hasty), PlainVerdict::Written, "it was sent again");
    assert_eq!(plain(&patient), PlainVerdict::Written);
}

/// The request was given three seconds. That another was answered at once meanwhile does not shorten them.
#[tokio::test]
async fn a_call_waits_as_long_as_was_right_when_its_request_began() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let limit = Duration::from_secs(2);
    let store = fixture.builder().clock(clock.clone()).attempt_timeout(limit).build().unwrap();
    let time = clock.clone();
    let slow = move |_: &_| time.advance(Duration::from_millis(1_500));
    fixture.wire.fault([Fault::Before(Box::new(slow)), Fault::Pass, Fault::Hang]);
    assert_eq!(plain(&one_by(&store, &clock, claim(9)).await), PlainVerdict::Written);
    let (first, late) = ([claim(0)], clock.now().plus(Duration::from_secs(20)));
    let mut first = started(&fixture, store.write(&first, late)).await;
    let is_over = Cell::new(false);
    let calls = async {
        let verdicts =
            join(one_by(&store, &clock, claim(1)), one_by(&store, &clock, claim(2))).await;
        is_over.set(true);
        verdicts
    };
    let time = async {
        pass_after(&fixture, &clock, "op#2", Duration::ZERO).await;
        assert_eq!(plain(&(&mut first).await[0]), PlainVerdict::Written);
        let before = fixture.wire.signed().len();
        clock.advance(limit);
        let soon = Duration::from_millis(500);
        let has_left = pass_until(&clock, soon, || fixture.wire.signed().len() > before).await;
        assert!(!has_left, "it was sent again");
        assert!(pass_until(&clock, limit, || is_over.get()).await);
    };
    let ((one, other), ()) = join(calls, time).await;
    assert_eq!((plain(&one), plain(&other)), (PlainVerdict::Written, PlainVerdict::Written));
}

/// Polls a call until its request is on the wire, and not any more.
async fn started<'c>(
    fixture: &Fixture,
    mut call: BoxFuture<'c, Vec<Verdict>>,
) -> BoxFuture<'c, Vec<Verdict>> {
    let before = fixture.wire.signed().len();
    while fixture.wire.signed().len() == before {
        start(&mut call);
        tokio::task::yield_now().await;
    }
    call
}

async fn one_by(store: &DynamoDbStore, clock: &ManualClock, write: Write) -> Verdict {
    let late = clock.now().plus(Duration::from_secs(20));
    store.write(&[write], late).await.remove(0)
}

/// Two calls whose shared request hangs, the first of which has to be over soon after `passes`, before the second.
async fn hasty_and_patient(
    fixture: &Fixture,
    store: &DynamoDbStore,
    clock: &ManualClock,
    due: Duration,
    passes: Duration,
) -> (Verdict, Verdict) {
    let (hasty_is_over, patient_is_over) = (Cell::new(false), Cell::new(false));
    let early = clock.now().plus(due);
    let hasty = async {
        let verdict = store.write(&[claim(1)], early).await.remove(0);
        hasty_is_over.set(true);
        verdict
    };
    let patient = async {
        let verdict = one_by(store, clock, claim(2)).await;
        patient_is_over.set(true);
        verdict
    };
    let time = async {
        pass_after(fixture, clock, "op#2", passes).await;
        let soon = Duration::from_millis(500);
        assert!(pass_until(clock, soon, || hasty_is_over.get()).await, "it waited for the other");
        assert!(!patient_is_over.get());
        let late = Duration::from_secs(10);
        assert!(pass_until(clock, late, || patient_is_over.get()).await);
    };
    // While another call is on its way, calls share requests. Its own is not answered, because nobody polls it.
    let (first, late) = ([claim(0)], clock.now().plus(Duration::from_secs(20)));
    let _first = started(fixture, store.write(&first, late)).await;
    let ((hasty, patient), ()) = join(join(hasty, patient), time).await;
    (hasty, patient)
}

/// A lease ends meanwhile, and a handler would be stopped.
#[tokio::test]
async fn a_renewal_does_not_wait_behind_claims() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let store = fixture.builder().clock(clock.clone()).build().unwrap();
    assert_eq!(plain(&one_by(&store, &clock, claim(0)).await), PlainVerdict::Written);
    fixture.wire.fault((0..10).map(|_| Fault::Hang));
    let late = clock.now().plus(Duration::from_secs(20));
    let writes: Vec<Vec<Write>> =
        (0..11).map(|n| (0..25).map(|m| claim(100 + n * 25 + m)).collect()).collect();
    let mut held: Vec<_> = writes.iter().map(|writes| store.write(writes, late)).collect();
    held.iter_mut().for_each(start);
    let mut renewed = claimed(1);
    renewed.lease_until = Some(Timestamp::from_secs(2_000));
    // As the engine renews a lease, and records what a step returned.
    let renewal = write(0, Guard::Unchanged(RecordVersion::of(&claimed(1))), Some(renewed));
    let renewal = one_by(&store, &clock, renewal);
    // The clock stands still, so nothing is sent because it has waited for long.
    let renewal = tokio::time::timeout(Duration::from_secs(20), renewal).await;
    assert_eq!(plain(&renewal.expect("it waits")), PlainVerdict::Written);
}

#[tokio::test]
async fn what_was_never_sent_is_not_in_doubt() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    fixture.wire.fault((0..20).map(|_| Fault::Hang));
    // As many requests as may be on their way, each by a call that is not for a group.
    let full: Vec<Vec<Write>> =
        (0..10).map(|n| (0..25).map(|m| claim(100 + n * 25 + m)).collect()).collect();
    let mut held: Vec<_> = full.iter().map(|writes| store.write(writes, soon())).collect();
    held.iter_mut().for_each(start);
    let early = SystemClock.now().plus(Duration::from_millis(50));
    let verdict = store.write(&[claim(0)], early).await.remove(0);
    assert!(!unknown(verdict).may_have_applied());
    assert_eq!(fixture.item("op#0"), None);
}

/// Before a completion is polled a second time, a handler may compute for long.
#[tokio::test]
async fn a_completion_among_few_calls_is_sent_when_it_is_polled_first() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    for n in 0..2 {
        one(&store, claim(n)).await;
    }
    fixture.wire.take();
    let (first, second) = ([completion(0)], [completion(1)]);
    let mut first = store.write(&first, soon());
    let mut second = store.write(&second, soon());
    start(&mut first);
    start(&mut second);
    // Neither is polled again until both requests have arrived.
    let both = async {
        while fixture.wire.most_at_once() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), both).await.unwrap();
    assert_eq!(
        (plain(&first.await[0]), plain(&second.await[0])),
        (PlainVerdict::Written, PlainVerdict::Written)
    );
}

/// As `while let Some(one) = stream.next().await { store.. }` over `buffer_unordered` does: the calls of the stream are
/// not polled while the body of the loop waits.
#[tokio::test]
async fn calls_that_are_not_polled_any_more_stop_no_other() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    let writes: Vec<Vec<Write>> =
        (0..10).map(|n| (0..25).map(|m| claim(100 + n * 25 + m)).collect()).collect();
    let mut held: Vec<_> = writes.iter().map(|writes| store.write(writes, soon())).collect();
    held.iter_mut().for_each(start);
    let late = SystemClock.now().plus(Duration::from_secs(3));
    let verdict = store.write(&[claim(0)], late).await.remove(0);
    assert_eq!(plain(&verdict), PlainVerdict::Written, "the server answers everything at once");
}

/// As a function without the permissions for PartiQL, or whose table is named by an ARN, calls `run` for twenty things at
/// once, and again for each result.
#[tokio::test]
async fn a_loop_over_many_calls_can_make_others() {
    let fixture = Fixture::start().await;
    let store = fixture.builder().without_partiql().build().unwrap();
    let store = &store;
    fixture.wire.fault((0..200).map(|n| Fault::Slow(Duration::from_millis(3 + n % 5))));
    let run = |n| async move {
        assert_eq!(plain(&one(store, claim(n)).await), PlainVerdict::Written);
        assert_eq!(plain(&one(store, completion(n)).await), PlainVerdict::Written);
    };
    let mut calls = stream::iter(0..30).map(run).buffer_unordered(20);
    let mut n = 10_000;
    while let Some(()) = calls.next().await {
        n += 1;
        let late = SystemClock.now().plus(Duration::from_secs(3));
        let verdict = store.write(&[claim(n)], late).await.remove(0);
        assert_eq!(plain(&verdict), PlainVerdict::Written, "after {} calls", n - 10_000);
    }
}

/// A store that two runtimes share, as a `static` in tests is.
#[test]
fn a_runtime_that_ends_takes_no_other_call_with_it() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (main, other) = (runtime(), runtime());
    let fixture = main.block_on(Fixture::start());
    let store = fixture.builder().attempt_timeout(Duration::from_millis(300)).build().unwrap();
    fixture.wire.fault([Fault::Pass, Fault::Hang]);
    let (first, leader, kept) = ([claim(0)], [claim(1)], [claim(2)]);
    let mut first = store.write(&first, soon());
    let mut leader = store.write(&leader, soon());
    let mut kept = store.write(&kept, soon());
    main.block_on(async { start(&mut first) });
    other.block_on(async {
        start(&mut leader);
        start(&mut kept);
        // Sends the request, with the timers of this runtime.
        start(&mut leader);
    });
    drop(leader);
    drop(other);
    let verdict = main.block_on(async { kept.await.remove(0) });
    assert_eq!(plain(&verdict), PlainVerdict::Written);
}
