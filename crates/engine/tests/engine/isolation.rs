//! A record that has lost its process several times in a row runs while nothing of another invocation
//! of the process is claimed or runs.

use std::{future::pending, pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Either, join, join_all, poll_immediate, select};
use lambda_idempotency_core::{clock::Clock, policy::OnConflict};
use lambda_idempotency_engine::batch::Engine;
use tokio::sync::Notify;

use crate::support::{Rec, World, labels, ok, rec, slow};

const SECOND: Duration = Duration::from_secs(1);

/// A world in which each of these records has lost its process so often, one after the other.
pub(crate) async fn lost(times: usize, lost: &[&'static str]) -> World {
    let world = World::yielding();
    for label in lost {
        for _ in 0..times {
            let dies = Arc::new(Notify::new());
            process(&world, &dies, vec![vec![killer(label, &dies, Duration::ZERO)]]).await;
            world.clock.advance(40 * SECOND);
        }
    }
    world
}

/// A record whose handler kills its process after this time.
pub(crate) fn killer(label: &'static str, dies: &Arc<Notify>, after: Duration) -> Rec {
    let dies = Arc::clone(dies);
    rec(label, move |world, _| async move {
        world.clock.sleep(after).await;
        dies.notify_one();
        pending().await
    })
}

/// A process with these invocations, until it ends or dies.
pub(crate) async fn process(
    world: &World,
    dies: &Notify,
    invocations: Vec<Vec<Rec>>,
) -> Option<Vec<Vec<&'static str>>> {
    let engine = world.engine();
    let all = join_all(invocations.into_iter().map(|records| world.invoke_by(&engine, records)));
    match world.clock.drive(select(Box::pin(all), pin!(dies.notified()))).await {
        Either::Left((outcomes, _)) => Some(outcomes.iter().map(|all| labels(all)).collect()),
        Either::Right(_) => None,
    }
}

/// An invocation that begins so much later than the others; its outcomes, and when it was through.
pub(crate) async fn later(
    world: &World,
    engine: &Engine,
    after: Duration,
    records: Vec<Rec>,
) -> (Vec<&'static str>, Duration) {
    let begun = world.clock.now();
    world.clock.sleep(after).await;
    let outcomes = world.invoke_by(engine, records).await;
    (labels(&outcomes), world.clock.now().since(begun))
}

#[tokio::test]
async fn others_claim_nothing_while_one_is_isolated_and_go_on_then() {
    let world = lost(2, &["x"]).await;
    let (engine, begun) = (world.engine(), world.clock.now());
    let first = later(&world, &engine, Duration::ZERO, vec![slow("x", 2 * SECOND)]);
    let second = later(&world, &engine, SECOND, vec![ok("b")]);
    let looks = async {
        world.clock.sleep(2 * SECOND - Duration::from_millis(1)).await;
        assert_eq!(world.stored("b").await, None, "claimed beside it");
    };
    let (first, (second, ())) = world.clock.drive(join(first, join(second, looks))).await;
    assert_eq!((first, second), ((vec!["executed"], 2 * SECOND), (vec!["executed"], 2 * SECOND)));
    assert_eq!(world.clock.now(), begun.plus(2 * SECOND));
}

#[tokio::test]
async fn one_that_was_lost_once_runs_beside_others() {
    let world = lost(1, &["x"]).await;
    let engine = world.engine();
    let first = later(&world, &engine, Duration::ZERO, vec![slow("x", 2 * SECOND)]);
    let second = later(&world, &engine, SECOND, vec![ok("b")]);
    let (first, second) = world.clock.drive(join(first, second)).await;
    assert_eq!((first, second), ((vec!["executed"], 2 * SECOND), (vec!["executed"], SECOND)));
}

#[tokio::test]
async fn isolation_waits_for_what_runs_and_later_ones_wait_for_it() {
    let world = lost(2, &["x"]).await;
    let engine = world.engine();
    let runs = later(&world, &engine, Duration::ZERO, vec![slow("a", 3 * SECOND)]);
    let isolated = later(&world, &engine, SECOND, vec![slow("x", SECOND)]);
    let last = later(&world, &engine, 2 * SECOND, vec![slow("b", SECOND)]);
    let (runs, (isolated, last)) = world.clock.drive(join(runs, join(isolated, last))).await;
    assert_eq!([runs.1, isolated.1, last.1], [3 * SECOND, 4 * SECOND, 5 * SECOND]);
    world.ledger.assert_each_once(["a", "x", "b"]);
}

#[tokio::test]
async fn a_wait_for_isolation_ends_at_half_of_the_time_and_the_others_go_on() {
    let world = lost(2, &["x"]).await;
    let before = world.stored("x").await;
    let engine = world.engine();
    let runs = later(&world, &engine, Duration::ZERO, vec![slow("a", 25 * SECOND)]);
    let waits = later(&world, &engine, SECOND, vec![ok("x"), ok("b"), ok("c")]);
    let (_, waits) = world.clock.drive(join(runs, waits)).await;
    // They have 29.25 seconds.
    assert_eq!(waits, (vec!["returned", "executed", "executed"], Duration::from_millis(14_125)));
    assert_eq!(world.stored("x").await, before, "it was claimed");
}

#[tokio::test]
async fn who_cannot_start_any_more_is_returned_unclaimed() {
    let world = lost(2, &["x"]).await;
    let engine = world.engine();
    let isolated = later(&world, &engine, Duration::ZERO, vec![slow("x", 20 * SECOND)]);
    let short = World { timeout: Some(10 * SECOND), ..world.clone() };
    let waits = later(&short, &engine, SECOND, vec![ok("a"), ok("b").unprotected()]);
    let (_, waits) = world.clock.drive(join(isolated, waits)).await;
    // Handlers have 9.25 seconds, and nothing starts in the last one of those.
    assert_eq!(waits, (vec!["returned", "returned"], Duration::from_millis(9_250)));
    assert_eq!(world.stored("a").await, None);
    world.ledger.assert_once("x");
}

#[tokio::test]
async fn without_a_deadline_nobody_waits_for_ever() {
    let world = lost(2, &["x"]).await;
    let endless = World { timeout: None, ..world.clone() };
    let engine = world.engine();
    let runs = later(&endless, &engine, Duration::ZERO, vec![slow("a", 50 * SECOND)]);
    let waits = later(&endless, &engine, SECOND, vec![ok("x")]);
    let (runs, waits) = world.clock.drive(join(runs, waits)).await;
    assert_eq!(runs.0, ["executed"]);
    assert_eq!(waits, (vec!["returned"], 31 * SECOND));
}

#[tokio::test]
async fn a_follower_and_isolation_do_not_wait_for_each_other() {
    let mut world = lost(2, &["x"]).await;
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let engine = world.engine();
    // It leads `y` and wants isolation after that, ...
    let leads = vec![slow("y", 3 * SECOND), slow("x", SECOND)];
    let leads = later(&world, &engine, Duration::ZERO, leads);
    // ... while these follow it, one of them beside a handler that runs on.
    let follows = later(&world, &engine, SECOND, vec![ok("y")]);
    let busy = later(&world, &engine, SECOND, vec![ok("y"), slow("z", 4 * SECOND)]);
    let (leads, (follows, busy)) = world.clock.drive(join(leads, join(follows, busy))).await;
    assert_eq!(follows, (vec!["replayed"], 3 * SECOND));
    assert_eq!(busy, (vec!["replayed", "executed"], 5 * SECOND));
    assert_eq!(leads, (vec!["executed", "executed"], 6 * SECOND));
}

#[tokio::test]
async fn a_key_that_two_want_in_isolation_is_worked_on_once() {
    let mut world = lost(2, &["x"]).await;
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let engine = world.engine();
    let all = [(); 3].map(|()| later(&world, &engine, Duration::ZERO, vec![slow("x", SECOND)]));
    let ended = world.clock.drive(join_all(all)).await;
    assert!(ended.iter().all(|(_, took)| *took == SECOND), "{ended:?}");
    world.ledger.assert_once("x");
}

#[tokio::test]
async fn a_handler_that_calls_the_engine_does_not_wait_for_itself() {
    let world = lost(2, &["x"]).await;
    let engine = world.engine();
    let inner = engine.clone();
    let calls = rec("x", move |world: World, _| async move {
        let outcomes = world.invoke_by(&inner, vec![slow("inner", SECOND)]).await;
        assert_eq!(labels(&outcomes), ["executed"]);
        Ok(())
    });
    let outer = later(&world, &engine, Duration::ZERO, vec![calls]);
    let beside = later(&world, &engine, Duration::ZERO, vec![slow("a", SECOND)]);
    let (beside, outer) = world.clock.drive(join(beside, outer)).await;
    assert_eq!(outer, (vec!["executed"], 2 * SECOND));
    assert_eq!(beside, (vec!["executed"], SECOND));
}

#[tokio::test]
async fn a_dropped_invocation_gives_its_place_up() {
    let world = lost(2, &["x"]).await;
    let engine = world.engine();
    let forever = rec("x", |_, _| pending());
    let isolated = Box::pin(world.invoke_by(&engine, vec![forever]));
    let cancelled = select(isolated, Box::pin(world.clock.sleep(2 * SECOND)));
    let waits = later(&world, &engine, SECOND, vec![ok("a")]);
    let cancelled = async { drop(cancelled.await) };
    let ((), waits) = world.clock.drive(join(cancelled, waits)).await;
    assert_eq!(waits, (vec!["executed"], 2 * SECOND));
}

#[tokio::test]
async fn one_that_is_not_polled_any_more_holds_others_up_until_its_end() {
    let world = lost(2, &["x"]).await;
    let engine = world.engine();
    let mut stuck = pin!(world.invoke_by(&engine, vec![rec("x", |_, _| pending())]));
    for _ in 0..20 {
        assert!(poll_immediate(stuck.as_mut()).await.is_none());
        tokio::task::yield_now().await;
    }
    let longer = World { timeout: Some(60 * SECOND), ..world.clone() };
    let waits = world.clock.drive(later(&longer, &engine, SECOND, vec![ok("a")])).await;
    // 30 seconds of timeout and 1 of grace.
    assert_eq!(waits, (vec!["executed"], Duration::from_millis(31_001)));
}

/// One process after the other, each with three invocations of what is left. One record kills each process in
/// which it runs, a second after it begins.
#[tokio::test]
async fn a_record_that_kills_takes_those_of_other_invocations_with_it_twice_at_most() {
    let world = World::yielding();
    let harmed = |label: &'static str| {
        rec(label, move |world: World, call| async move {
            assert!(call.lost_attempts() <= 2, "{label} was taken along once more");
            world.clock.sleep(3 * SECOND).await;
            Ok(())
        })
    };
    let innocent = ["a", "b", "c", "d"];
    for receives in 1..=6 {
        let dies = Arc::new(Notify::new());
        let left = |label: &&'static str| world.ledger.executed(label) == 0;
        let all = |labels: &[&'static str]| -> Vec<Rec> {
            labels
                .iter()
                .copied()
                .filter(|label| left(label))
                .map(|label| harmed(label).receives(receives))
                .collect()
        };
        let poison = killer("x", &dies, SECOND).receives(receives);
        let invocations = vec![vec![poison], all(&innocent[..2]), all(&innocent[2..])];
        assert_eq!(process(&world, &dies, invocations).await, None, "it kills each time");
        world.clock.advance(40 * SECOND);
    }
    world.ledger.assert_each_once(innocent);
}

#[tokio::test]
async fn an_invocation_that_only_waits_for_a_busy_key_does_not_hold_up_isolation() {
    let mut world = lost(2, &["x"]).await;
    // A worker of another process holds `a` for 20 s.
    let dies = Arc::new(Notify::new());
    world.timeout = Some(20 * SECOND);
    process(&world, &dies, vec![vec![killer("a", &dies, Duration::ZERO)]]).await;
    world.timeout = Some(60 * SECOND);
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let engine = world.engine();
    let first = later(&world, &engine, Duration::ZERO, vec![ok("a"), slow("b", SECOND)]);
    let second = later(&world, &engine, SECOND / 2, vec![ok("x")]);
    let ((first, _), (second, took)) = world.clock.drive(join(first, second)).await;
    assert_eq!((first, second), (vec!["executed"; 2], vec!["executed"]));
    assert_eq!(took, SECOND, "as soon as `b` is through");
}

#[tokio::test]
async fn an_invocation_whose_busy_key_becomes_free_waits_until_isolation_is_over() {
    let mut world = lost(2, &["x"]).await;
    // A worker of another process holds `a` for 20 s.
    let dies = Arc::new(Notify::new());
    world.timeout = Some(20 * SECOND);
    process(&world, &dies, vec![vec![killer("a", &dies, Duration::ZERO)]]).await;
    world.timeout = Some(60 * SECOND);
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let (engine, begun) = (world.engine(), world.clock.now());
    let after = rec("a", move |world: World, _| async move {
        assert!(world.clock.now() >= begun.plus(26 * SECOND), "beside `x`");
        Ok(())
    });
    let first = later(&world, &engine, Duration::ZERO, vec![after]);
    let second = later(&world, &engine, SECOND, vec![slow("x", 25 * SECOND)]);
    let (first, second) = world.clock.drive(join(first, second)).await;
    assert_eq!((first.0, second.0), (vec!["executed"], vec!["executed"]));
}

/// Two are isolated, one after the other.
#[tokio::test]
async fn without_a_deadline_a_wait_for_others_ends_thirty_seconds_after_it_began() {
    let mut world = lost(2, &["x", "y"]).await;
    (world.timeout, world.policy.fallback_lease) = (None, 60 * SECOND);
    let engine = world.engine();
    let isolated = |label| later(&world, &engine, Duration::ZERO, vec![slow(label, 20 * SECOND)]);
    let waits = later(&world, &engine, SECOND, vec![ok("a")]);
    let isolated = join(isolated("x"), isolated("y"));
    let (_, waits) = world.clock.drive(join(isolated, waits)).await;
    assert_eq!(waits, (vec!["returned"], 31 * SECOND));
}
