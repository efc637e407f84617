//! How long an invocation waits until a suspect can run without the other invocations of its process,
//! and what its other records do meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::future::join;
use lambda_idempotency_core::{
    clock::Clock as _,
    store::{Guard, Write},
};
use lambda_idempotency_testkit::{deadlines::BrokenRule, faults::Fault};
use tokio::sync::Notify;

use crate::{
    isolation::{killer, later, lost, process},
    support::{World, ok, rec, slow},
};

const SECOND: Duration = Duration::from_secs(1);

/// One process after the other, in each of which a record that kills runs beside a new record of another
/// invocation. It is received in vain so often before its first attempt, and between two attempts. How many of
/// the others were begun in vain.
async fn harmed(before: u32, between: u32) -> u32 {
    let world = World::yielding();
    let (mut harmed, mut receives) = (0, before);
    for round in 0..8 {
        receives += 1;
        let dies = Arc::new(Notify::new());
        let begun = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&begun);
        let label: &'static str = format!("a{round}").leak();
        let innocent = rec(label, move |world: World, _| async move {
            noted.store(true, Ordering::Relaxed);
            world.clock.sleep(3 * SECOND).await;
            Ok(())
        });
        let kills = killer("x", &dies, SECOND).receives(receives);
        process(&world, &dies, vec![vec![kills], vec![innocent.receives(1)]]).await;
        let was_begun = begun.load(Ordering::Relaxed);
        harmed += u32::from(was_begun && world.ledger.executed(label) == 0);
        world.clock.advance(40 * SECOND);
        receives += between;
    }
    harmed
}

/// Throttled invocations raise the receive count although nothing was tried.
#[tokio::test]
async fn receives_in_vain_before_its_first_attempt_do_not_hide_a_record_that_kills() {
    for before in 0..=6 {
        assert_eq!(harmed(before, 0).await, 2, "{before} receives in vain");
    }
}

/// After each of them it is suspected less. The third time needs two in a row, the fourth one four.
#[tokio::test]
async fn a_record_that_kills_harms_others_more_than_twice_only_if_it_is_received_in_vain_between() {
    for between in 0..=6 {
        assert_eq!(harmed(1, between).await, 2 + between / 2, "{between} receives in vain");
    }
}

/// The same record comes with it each time.
#[tokio::test]
async fn a_record_that_kills_is_isolated_although_a_receive_in_vain_comes_before_each_death() {
    let world = World::yielding();
    let most = Arc::new(AtomicU32::new(0));
    for round in 0..10 {
        let receives = 1 + 2 * round;
        let dies = Arc::new(Notify::new());
        let lost_attempts = Arc::clone(&most);
        let innocent = rec("a", move |world: World, call| async move {
            lost_attempts.fetch_max(call.lost_attempts(), Ordering::Relaxed);
            world.clock.sleep(3 * SECOND).await;
            Ok(())
        });
        let kills = killer("x", &dies, SECOND).receives(receives);
        let innocent = innocent.receives(receives);
        process(&world, &dies, vec![vec![kills], vec![innocent]]).await;
        world.clock.advance(40 * SECOND);
    }
    assert!(most.load(Ordering::Relaxed) <= 2, "{most:?}");
    world.ledger.assert_once("a");
}

/// Two messages have one key. The one that was received less often is claimed, and the claim undone because
/// its answer was lost.
#[tokio::test]
async fn a_copy_whose_claim_is_undone_does_not_hide_a_record_that_kills() {
    let world = World::yielding();
    for receives in [8, 9] {
        let dies = Arc::new(Notify::new());
        let kills = killer("x", &dies, SECOND).receives(receives);
        assert_eq!(process(&world, &dies, vec![vec![kills]]).await, None);
        world.clock.advance(40 * SECOND);
    }
    let claims = |write: &Write| matches!(write.guard, Guard::Unchanged(_));
    world.store.inject(Fault::lose_answer().for_writes(claims));
    assert_eq!(world.deliver(vec![ok("x").receives(1)]).await, ["unavailable"]);
    let stored = world.stored("x").await.unwrap();
    assert!(stored.is_given_up() && stored.consecutive_losses == 2, "{stored:?}");
    assert_eq!(stored.last_receive, 9, "that of its last attempt");
    let engine = world.engine();
    let isolated = later(&world, &engine, Duration::ZERO, vec![slow("x", SECOND).receives(10)]);
    let beside = later(&world, &engine, SECOND / 2, vec![ok("b").receives(1)]);
    let (_, beside) = world.clock.drive(join(isolated, beside)).await;
    assert_eq!(beside, (vec!["executed"], SECOND), "nothing runs beside it");
}

#[tokio::test]
async fn several_suspects_share_the_time_for_which_one_may_wait() {
    let world = lost(3, &["x", "y", "v", "w"]).await;
    let engine = world.engine();
    let runs = later(&world, &engine, Duration::ZERO, vec![slow("a", 28 * SECOND)]);
    let suspects = ["x", "y", "v", "w"].map(|label| ok(label).receives(5));
    let batch = suspects.into_iter().chain([ok("b").receives(1)]).collect();
    let waits = later(&world, &engine, Duration::ZERO, batch);
    let (_, waits) = world.clock.drive(join(runs, waits)).await;
    assert!(waits.0[4] == "executed" && waits.1 < 15 * SECOND, "{waits:?}");
}

/// Half of the time would be over before the others have ended.
#[tokio::test]
async fn a_suspect_that_is_alone_in_its_batch_waits_as_long_as_it_could_start() {
    let world = lost(2, &["x"]).await;
    let engine = world.engine();
    let runs = |label| later(&world, &engine, Duration::ZERO, vec![slow(label, 20 * SECOND)]);
    let waits = later(&world, &engine, SECOND, vec![ok("x").receives(3)]);
    let (_, waits) = world.clock.drive(join(join(runs("a"), runs("b")), waits)).await;
    assert_eq!(waits, (vec!["executed"], 20 * SECOND));
    // In vain: handlers have 29.25 s, and nothing starts in the last 3 s of an invocation.
    let world = lost(2, &["x"]).await;
    let engine = world.engine();
    let runs = later(&world, &engine, Duration::ZERO, vec![slow("a", 29 * SECOND)]);
    let waits = later(&world, &engine, Duration::ZERO, vec![ok("x").receives(3)]);
    let (_, waits) = world.clock.drive(join(runs, waits)).await;
    assert_eq!(waits, (vec!["returned"], Duration::from_millis(26_250)));
}

#[tokio::test]
async fn copies_of_a_suspect_share_the_time_for_which_one_may_wait() {
    let world = lost(3, &["x"]).await;
    let engine = world.engine();
    let runs = later(&world, &engine, Duration::ZERO, vec![slow("a", 28 * SECOND)]);
    let batch = (0..4).map(|_| ok("x").receives(5)).chain([ok("b").receives(1)]).collect();
    let waits = later(&world, &engine, Duration::ZERO, batch);
    let (_, waits) = world.clock.drive(join(runs, waits)).await;
    assert!(waits.0[4] == "executed" && waits.1 < 15 * SECOND, "{waits:?}");
}

/// The handlers of the operation take more than half of an invocation, as the engine has learned.
#[tokio::test]
async fn a_suspect_that_waits_leaves_slow_records_the_time_to_start() {
    let world = lost(3, &["x"]).await;
    let slow_one = vec![slow("pace", 16 * SECOND)];
    world.clock.drive(later(&world, &world.engine(), Duration::ZERO, slow_one)).await;
    let engine = world.engine();
    let runs = later(&world, &engine, Duration::ZERO, vec![slow("a", 28 * SECOND)]);
    let batch = vec![ok("x").receives(5), ok("b").receives(1), ok("c").receives(1)];
    let waits = later(&world, &engine, Duration::ZERO, batch);
    let (_, waits) = world.clock.drive(join(runs, waits)).await;
    assert_eq!(waits.0[1..], ["executed"; 2], "{waits:?}");
}

/// As on a process that is frozen between two invocations.
#[tokio::test]
async fn an_invocation_that_waits_ends_although_its_process_was_suspended_beyond_its_deadline() {
    let mut world = lost(3, &["x"]).await;
    // The completion of `a` is sent all the same.
    world.tolerates = &[BrokenRule::CalledTooLate];
    let engine = world.engine();
    let suspended = rec("a", |world: World, _| async move {
        world.clock.sleep(SECOND).await;
        world.clock.advance(40 * SECOND);
        Ok(())
    });
    let runs = later(&world, &engine, Duration::ZERO, vec![suspended]);
    let waits = later(&world, &engine, Duration::ZERO, vec![ok("x").receives(5)]);
    let (_, waits) = world.clock.drive(join(runs, waits)).await;
    assert_eq!(waits.0, ["returned"]);
}
