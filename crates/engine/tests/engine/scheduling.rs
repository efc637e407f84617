//! Waits that must not happen: a completion does not wait for other handlers, a claim not for a throttled
//! one, a result not for a wrong clock.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join;
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    policy::{Lease, OnConflict},
    record::Status,
    store::{Guard, StoreErrorKind, Write},
};
use lambda_idempotency_engine::batch::Engine;
use lambda_idempotency_testkit::{clock::ManualClock, crashing::drop_after, faults::Fault};

use crate::{
    steps::step,
    support::{ROUND_TRIP, Rec, START, World, failing, key, labels, ok, rec, slow, throttled},
};

const SECOND: Duration = Duration::from_secs(1);

/// How many completions were written before each handler began.
type Seen = Arc<Mutex<Vec<usize>>>;

/// A record whose handler occupies the processor for this long, and then awaits for this long, if at
/// all.
fn busy(label: &'static str, takes: Duration, awaits: Option<Duration>, seen: &Seen) -> Rec {
    let seen = Arc::clone(seen);
    rec(label, move |world: World, _| async move {
        seen.lock().unwrap().push(world.completions());
        world.clock.advance(takes);
        if let Some(awaits) = awaits {
            world.clock.sleep(awaits).await;
        }
        Ok(())
    })
}

impl World {
    /// How many completions were written.
    fn completions(&self) -> usize {
        let completed = |write: &Write| {
            write.record.as_ref().is_some_and(|record| record.status == Status::Completed)
        };
        self.writes().iter().filter(|write| completed(write)).count()
    }
}

#[tokio::test]
async fn a_completion_is_sent_between_handlers_that_occupy_the_processor_before_they_await() {
    let mut world = World::new();
    world.policy.concurrency = 2;
    let seen = Arc::default();
    let busy = |label| busy(label, SECOND / 4, Some(SECOND), &seen);
    // The first two end at the same time, and the others begin then.
    let records = vec![slow("a", SECOND), slow("b", SECOND), busy("c"), busy("d")];
    assert_eq!(world.deliver(records).await, ["executed"; 4]);
    assert_eq!(*seen.lock().unwrap(), [0, 2], "written before `c` and before `d`");
}

/// A poll that ends a step is a poll like others: the completion of `b` does not wait for that of `a`, which is on its way.
#[tokio::test]
async fn a_completion_is_sent_between_handlers_that_occupy_the_processor_and_end_steps() {
    let world = World::yielding();
    let completes_a = Fault::delay(world.clock.clone(), 9 * SECOND)
        .for_key(&key("a"))
        .that_writes(Status::Completed);
    world.store.inject(completes_a.always());
    let seen: Seen = Arc::default();
    let stepping = |label| {
        let seen = Arc::clone(&seen);
        rec(label, move |world: World, call| async move {
            seen.lock().unwrap().push(world.completions());
            world.clock.advance(SECOND / 4);
            step(&world, &call, "one").await.map(drop)
        })
    };
    let mut records = vec![busy("a", SECOND / 4, None, &Arc::default()), ok("b")];
    records.extend(["c", "d", "e"].map(stepping));
    assert_eq!(world.deliver(records).await, ["executed"; 5]);
    assert_eq!(*seen.lock().unwrap(), [1, 2, 2], "written before `d` occupies the processor");
}

/// When a process is killed, the effects whose completions were not sent happen again.
#[tokio::test]
async fn a_kill_among_handlers_that_never_wait_doubles_at_most_two_effects() {
    for polls in 0..60 {
        let world = World::yielding();
        let batch = || {
            let seen = Arc::default();
            ["a", "b", "c", "d", "e", "f"].map(|label| busy(label, SECOND / 4, None, &seen)).into()
        };
        let ended = drop_after(polls, world.invoke(batch())).await;
        world.clock.advance(60 * SECOND);
        world.deliver(batch()).await;
        let doubled = world.ledger.total() - 6;
        assert!(doubled <= 2, "{doubled} after {polls} polls");
        if ended.is_some() {
            return;
        }
    }
    panic!("the invocation did not end within 60 polls");
}

/// What a kill would double, of 100 handlers that never wait and take less than 10 ms each.
#[tokio::test]
async fn what_is_not_sent_returned_within_a_round_trip_and_ten_milliseconds_of_polling() {
    let labels: Vec<&'static str> = (0..100).map(|n| &*format!("{n}").leak()).collect();
    let round_trip = Duration::from_millis(5);
    for takes in [1, 3, 9].map(Duration::from_millis) {
        let mut world = World::without_latency();
        // Its answers arrive while the invocation gives way, as over a network.
        world.store = world.store.yielding().taking(world.clock.clone(), round_trip);
        world.policy.concurrency = 100;
        let seen = Arc::default();
        let records = labels.iter().map(|label| busy(label, takes, None, &seen)).collect();
        assert_eq!(world.deliver(records).await, ["executed"; 100]);
        let seen = seen.lock().unwrap();
        let unsent = seen.iter().enumerate().map(|(before, sent)| before - sent).max().unwrap();
        let window = round_trip + Duration::from_millis(10) + takes;
        assert!(takes * u32::try_from(unsent).unwrap() <= window, "{unsent} of {takes:?}");
    }
}

#[tokio::test]
async fn records_claimed_with_a_throttled_one_start_soon() {
    let hot = |write: &Write| write.guard == Guard::Absent && write.key == key("hot");
    for (lease, latest) in
        [(Lease::Invocation, 1_100), (Lease::Renewed { length: 4 * SECOND }, 800)]
    {
        let mut world = World::new();
        world.policy.lease = lease;
        let late = Duration::from_millis(latest);
        let begins = |label| {
            rec(label, move |world: World, _| async move {
                assert!(world.clock.now() <= START.plus(late), "{:?}", world.clock.now());
                Ok(())
            })
        };
        let records = vec![ok("hot"), begins("b"), begins("c"), begins("d")];
        let store = throttled(&world, hot);
        let outcomes = world.clock.drive(world.invoke_on(store, records)).await;
        assert_eq!(labels(&outcomes), ["unavailable", "executed", "executed", "executed"]);
    }
}

/// Claiming is given up after five seconds, or when the lease that was asked for first would have ended:
/// its owner could not have used it.
#[tokio::test]
async fn a_slow_claim_is_not_asked_for_again_after_the_end_of_its_lease() {
    let hot = |write: &Write| write.guard == Guard::Absent;
    for (lease, given_up) in [
        (Lease::Invocation, 5 * SECOND),
        (Lease::Renewed { length: 4 * SECOND }, 4 * SECOND),
        (Lease::Renewed { length: 8 * SECOND }, 5 * SECOND),
    ] {
        let mut world = World::new();
        world.policy.lease = lease;
        let store = throttled(&world, hot);
        let outcomes = world.clock.drive(world.invoke_on(store, vec![ok("a")])).await;
        assert_eq!(labels(&outcomes), ["unavailable"]);
        let took = world.clock.now().since(START);
        assert!(took >= given_up && took <= given_up + SECOND / 5, "{took:?} of {given_up:?}");
    }
}

/// The answer of the first call is late; a short invocation has time for a second one.
#[tokio::test]
async fn one_slow_answer_does_not_fail_a_short_invocation() {
    let mut world = World::new();
    world.timeout = Some(2 * SECOND);
    world.store.inject(Fault::delay_answer(world.clock.clone(), 5 * SECOND));
    assert_eq!(world.deliver(vec![ok("a"), ok("b")]).await, ["executed"; 2]);
    world.ledger.assert_each_once(["a", "b"]);
}

#[tokio::test]
async fn a_refused_completion_is_tried_for_half_a_minute_or_until_the_response_is_due() {
    for kind in [StoreErrorKind::Denied, StoreErrorKind::Refused, StoreErrorKind::Misconfigured] {
        let world = World::new();
        world.store.inject(Fault::refuse(kind).that_writes(Status::Completed).times(3));
        assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"], "{kind:?}");
        for (timeout, least, most) in [(20, 17, 20), (600, 27, 31)] {
            let world = World { timeout: Some(timeout * SECOND), ..World::new() };
            world.store.inject(Fault::refuse(kind).that_writes(Status::Completed).always());
            assert_eq!(world.deliver(vec![ok("a")]).await, ["completion_lost"], "{kind:?}");
            let ended = world.clock.now().since(START);
            assert!(least * SECOND < ended && ended <= most * SECOND, "{ended:?}");
        }
    }
}

/// A clock that is 20 s slow, and correct after 5 s.
#[derive(Clone)]
struct PutRight(ManualClock);

impl Clock for PutRight {
    fn now(&self) -> Timestamp {
        let now = self.0.now();
        if now < START.plus(5 * SECOND) { now.minus(20 * SECOND) } else { now }
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(duration)
    }
}

#[tokio::test]
async fn a_corrected_clock_moves_the_handler_deadline() {
    let world = World::without_latency();
    // Its calls are not checked, since their deadlines are of another clock than the world's.
    let engine = Engine::new(world.store.clone()).with_clock(PutRight(world.clock.clone()));
    let outcomes = world.clock.drive(world.invoke_by(&engine, vec![slow("a", 600 * SECOND)])).await;
    assert_eq!(labels(&outcomes), ["timed_out"]);
    assert!(world.clock.now() <= START.plus(30 * SECOND), "{:?}", world.clock.now());
}

/// The handlers' last await ends at the instant of the handler deadline.
#[tokio::test]
async fn results_that_are_ready_at_the_handler_deadline_count() {
    let world = World::new();
    let labels: Vec<&'static str> = vec!["a", "b", "c", "d"];
    let until_the_stop = 29_250 * SECOND / 1000 - ROUND_TRIP;
    let records = labels.iter().map(|label| slow(label, until_the_stop)).collect();
    assert_eq!(world.deliver(records).await, ["executed"; 4]);
    world.ledger.assert_each_once(labels);
}

/// Fast records come first, so that the observed durations do not predict that of the waiting one.
/// What failed has an item under its key, so that its claim takes longer than those of fresh records.
#[tokio::test]
async fn a_failed_record_is_not_starved_by_fresh_ones() {
    let mut world = World::yielding();
    world.policy.concurrency = 1;
    world.timeout = Some(10 * SECOND);
    assert_eq!(world.deliver(vec![failing("a")]).await, ["failed"]);
    let busy = |label, receives| slow(label, 4 * SECOND).receives(receives);
    world.clock.advance(30 * SECOND);
    world.deliver(vec![busy("b", 1), busy("c", 1), busy("a", 2)]).await;
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn a_completion_is_tried_again_soon_although_the_clock_has_stepped_back() {
    let world = World::new();
    world.store.inject(Fault::refuse(StoreErrorKind::Throttled).that_writes(Status::Completed));
    let steps = async {
        world.clock.sleep(Duration::from_millis(50)).await;
        world.clock.step_back(20 * SECOND);
    };
    let (outcomes, ()) = world.clock.drive(join(world.invoke(vec![ok("a")]), steps)).await;
    assert_eq!(labels(&outcomes), ["executed"]);
    let took = world.clock.now().plus(20 * SECOND).since(START);
    assert!(took <= Duration::from_millis(200), "{took:?}");
}

/// It looks once more after a tenth of a second.
#[tokio::test]
async fn a_record_that_waits_looks_again_soon_although_the_clock_has_stepped_back() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let other = slow("a", Duration::from_millis(50));
    let steps = async {
        world.clock.sleep(Duration::from_millis(20)).await;
        world.clock.step_back(20 * SECOND);
    };
    let later = async {
        world.clock.sleep(Duration::from_millis(10)).await;
        let outcomes = world.invoke(vec![ok("a")]).await;
        (labels(&outcomes), world.clock.now().plus(20 * SECOND).since(START))
    };
    let all = async { tokio::join!(world.invoke(vec![other]), later, steps) };
    let (first, (second, took), ()) = world.clock.drive(all).await;
    assert_eq!((labels(&first), second), (vec!["executed"], vec!["replayed"]));
    assert!(took <= Duration::from_millis(300), "{took:?}");
}
