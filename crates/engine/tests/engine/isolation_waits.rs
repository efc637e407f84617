//! How long an invocation waits until a suspect can run without the other invocations of its process,
//! and what its other records do meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::future::join;
use lambda_idempotency_core::clock::Clock as _;
use tokio::sync::Notify;

use crate::{
    isolation::{killer, later, lost, process},
    support::{World, ok, rec, slow},
};

const SECOND: Duration = Duration::from_secs(1);

/// Throttled invocations raise the receive count although nothing was tried, so the record is less
/// suspected after each of them.
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
    assert!(most.load(Ordering::Relaxed) <= 3, "{most:?}");
    world.ledger.assert_once("a");
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
