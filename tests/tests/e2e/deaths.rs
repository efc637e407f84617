//! A process that dies in the middle of a record, by `SIGKILL`, as a sandbox does that runs out of
//! memory or whose host fails.
//!
//! The record comes back to the queue at once; its key stays held until the lease of the dead one is
//! over, and the next delivery is told of the lost attempt.

use std::time::Duration;

use lambda_idempotency_local::{Apply, DeliveryReport, Fault, Gate, SqsConfig};
use lambda_idempotency_tests::{
    CLAIMS, ORDERS,
    events::{batch_of, order},
};

use crate::support::{World, history, orders, outcomes};

const TIMEOUT: Duration = Duration::from_secs(3);
/// The timeout, a second of lease grace, a second for clocks that differ, and some more: the second
/// delivery finds the lease over.
const AFTER_THE_LEASE: Duration = Duration::from_millis(6500);

/// A world in which what is returned comes back when the lease of its first delivery is over.
async fn world() -> World {
    let queue = SqsConfig { visibility: Some(AFTER_THE_LEASE), ..SqsConfig::default() };
    World::with(orders().timeout(TIMEOUT), |local| local.sqs(queue)).await
}

/// Delivers an order, and kills its process when this fault holds a request.
async fn kill(world: &World, hold: impl FnOnce(&Gate) -> Fault) -> DeliveryReport {
    let gate = Gate::new(); // never opened: what is held before it is applied, never is
    world.dynamodb().faults().add(hold(&gate).times(1));
    let killer = async {
        gate.reached().await;
        assert_eq!(world.kill_in_flight(), 1);
    };
    let event = batch_of([order("o-1")]);
    let (report, ()) = tokio::join!(world.send(&event), killer);
    report
}

fn lost_attempts(report: &DeliveryReport) -> u64 {
    report.records().last().unwrap().told.as_ref().unwrap().lost_attempts
}

#[tokio::test]
async fn killed_with_its_claim_it_is_placed_once() {
    let world = world().await;
    let report = kill(&world, |gate| Fault::hold(Apply::After, gate).table(CLAIMS)).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    assert_eq!(lost_attempts(&report), 1);
    world.assert_placed_once(["o-1"]);
}

#[tokio::test]
async fn killed_before_the_effect_it_is_placed_once() {
    let world = world().await;
    let report = kill(&world, |gate| Fault::hold(Apply::Before, gate).table(ORDERS)).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    assert_eq!(lost_attempts(&report), 1);
    world.assert_placed_once(["o-1"]);
}

/// The honest limit. The effect is in one table and its completion in another; nobody can tell,
/// afterwards, whether a process that died between the two had come to the first. Nothing is lost,
/// so it is done again, and the handler is told: `lost_attempts` is its chance to look first.
#[tokio::test]
async fn killed_between_effect_and_completion_it_is_placed_twice_and_told_so() {
    let world = world().await;
    let report = kill(&world, |gate| Fault::hold(Apply::After, gate).table(ORDERS)).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    assert_eq!(lost_attempts(&report), 1);
    assert_eq!(world.placed().into_iter().collect::<Vec<_>>(), [("o-1".to_owned(), 2)]);
}

/// Once it is completed, a death costs nothing: not even the wait for the lease.
#[tokio::test]
async fn killed_after_its_completion_it_is_replayed() {
    let world = world().await;
    let completion = |gate: &Gate| Fault::hold(Apply::After, gate).table(CLAIMS).skip(1);
    let report = kill(&world, completion).await;
    assert_eq!(outcomes(&report), ["crashed", "replayed"]);
    world.assert_placed_once(["o-1"]);
}

/// What is delivered again while the lease stands goes back, and is not harmed by that.
#[tokio::test]
async fn deliveries_within_the_lease_find_it_busy() {
    let queue = SqsConfig {
        visibility: Some(Duration::from_millis(200)),
        max_receive_count: 1000,
        ..SqsConfig::default()
    };
    let world = World::with(orders().timeout(TIMEOUT), |local| local.sqs(queue)).await;
    let report = kill(&world, |gate| Fault::hold(Apply::Before, gate).table(ORDERS)).await;
    let told = outcomes(&report);
    let (first, last) = (told.first().unwrap(), told.last().unwrap());
    assert_eq!((*first, *last), ("crashed", "executed"));
    let between = &told[1..told.len() - 1];
    assert!(!between.is_empty() && between.iter().all(|outcome| *outcome == "busy"), "{told:?}");
    world.assert_placed_once(["o-1"]);
}
