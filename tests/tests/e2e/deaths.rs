//! A process that is killed while it processes a record, by `SIGKILL`, as when a sandbox runs out of
//! memory or its host fails.
//!
//! The record returns to the queue at once. Its key stays claimed until the lease of the dead process
//! ends, and the next attempt gets the number of lost attempts.

use std::time::Duration;

use lambda_idempotency_local::{Apply, DeliveryReport, Fault, Gate, SqsConfig};
use lambda_idempotency_tests::{CLAIMS, ORDERS};

use crate::{
    costs,
    support::{TIMEOUT, World, history, orders, outcomes},
};

async fn world() -> World {
    World::outlasting_leases(orders()).await
}

fn lost_attempts(report: &DeliveryReport) -> u64 {
    report.records().last().unwrap().line.as_ref().unwrap().lost_attempts
}

#[tokio::test]
async fn an_order_whose_process_is_killed_after_the_claim_is_placed_once() {
    let world = world().await;
    let report = world.kill(|gate| Fault::hold(Apply::After, gate).table(CLAIMS)).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    assert_eq!(lost_attempts(&report), 1);
    world.assert_placed_once(["o-1"]);
    let takeover = &report.invocations[1].invocation.dynamodb;
    costs::documented_record("taken over after its process died, received again", takeover, 1.0);
}

#[tokio::test]
async fn an_order_whose_process_is_killed_before_the_effect_is_placed_once() {
    let world = world().await;
    let report = world.kill(|gate| Fault::hold(Apply::Before, gate).table(ORDERS)).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    assert_eq!(lost_attempts(&report), 1);
    world.assert_placed_once(["o-1"]);
}

/// The limit of the library. The effect is in one table and its completion in another. If a process dies
/// between the two, it is not known whether the effect happened. The handler is called again, so that no
/// record is lost, and gets `lost_attempts`, so that it can check for the effect first.
#[tokio::test]
async fn an_order_whose_process_is_killed_before_the_completion_is_placed_twice() {
    let world = world().await;
    let report = world.kill(|gate| Fault::hold(Apply::After, gate).table(ORDERS)).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    assert_eq!(lost_attempts(&report), 1);
    assert_eq!(world.placed().into_iter().collect::<Vec<_>>(), [("o-1".to_owned(), 2)]);
}

/// After the completion, a death has no effect; the next delivery does not even wait for the lease.
#[tokio::test]
async fn an_order_whose_process_is_killed_after_the_completion_is_replayed() {
    let world = world().await;
    let completion = |gate: &Gate| Fault::hold(Apply::After, gate).table(CLAIMS).skip(1);
    let report = world.kill(completion).await;
    assert_eq!(outcomes(&report), ["crashed", "replayed"]);
    world.assert_placed_once(["o-1"]);
}

/// A delivery before the lease ends is returned, and has no other effect.
#[tokio::test]
async fn deliveries_within_the_lease_find_it_busy() {
    let queue = SqsConfig {
        visibility: Some(Duration::from_millis(200)),
        max_receive_count: 1000,
        ..SqsConfig::default()
    };
    let world = World::with(orders().timeout(TIMEOUT), |local| local.sqs(queue)).await;
    let report = world.kill(|gate| Fault::hold(Apply::Before, gate).table(ORDERS)).await;
    let outcomes = outcomes(&report);
    let (first, last) = (outcomes.first().unwrap(), outcomes.last().unwrap());
    assert_eq!((*first, *last), ("crashed", "executed"));
    let between = &outcomes[1..outcomes.len() - 1];
    assert!(
        !between.is_empty() && between.iter().all(|outcome| *outcome == "busy"),
        "{outcomes:?}"
    );
    world.assert_placed_once(["o-1"]);
}
