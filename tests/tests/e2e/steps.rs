//! Orders that are placed in one step and mailed in another, by a process that is killed between them.

use lambda_idempotency_local::{Apply, DeliveryReport, Fault, FunctionConfig, Gate};
use lambda_idempotency_tests::{
    CLAIMS, ORDERS,
    events::{batch_of, order, order_with},
};
use serde_json::json;

use crate::support::{World, history, outcomes, quick_queue, scripted_orders};

const BOTH: [&str; 2] = ["o-1", "mail o-1"];

fn function() -> FunctionConfig {
    scripted_orders().env("SCRIPTED_STEPS", "1")
}

/// Delivers an order, and kills its process with `SIGKILL` when this fault holds a request. The order is
/// delivered again after the lease has ended.
async fn kill(hold: impl FnOnce(&Gate) -> Fault) -> (World, DeliveryReport) {
    let world = World::outlasting_leases(function()).await;
    let report = world.kill(hold).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    (world, report)
}

#[tokio::test]
async fn steps_are_kept_until_the_completion_and_cost_a_write_each() {
    let world = World::with(function(), |local| local.sqs(quick_queue())).await;
    let before = world.dynamodb().usage();
    assert_eq!(outcomes(&world.send(&batch_of([order("o-1")])).await), ["executed"]);
    world.assert_placed_once(BOTH);
    assert!(world.claims()[0].get("steps").is_none(), "its completion dropped them");
    // The claim, two effects, two steps, the completion.
    let used = world.dynamodb().usage().since(&before).write_units;
    assert!((used - 6.0).abs() < f64::EPSILON, "{used}");
}

#[tokio::test]
async fn a_process_that_is_killed_between_two_steps_repeats_neither() {
    let (world, report) = kill(|gate| Fault::hold(Apply::Before, gate).table(ORDERS).skip(1)).await;
    world.assert_placed_once(BOTH);
    let line = report.records().last().unwrap().line.as_ref().unwrap();
    assert_eq!(line.lost_attempts, 1);
}

#[tokio::test]
async fn a_process_that_is_killed_once_a_step_is_recorded_does_not_repeat_it() {
    let (world, _) = kill(|gate| Fault::hold(Apply::After, gate).table(CLAIMS).skip(1)).await;
    world.assert_placed_once(BOTH);
}

/// The limit: nobody knows that the step was done. Here the step's key would have told the other system.
#[tokio::test]
async fn a_process_that_is_killed_between_a_step_and_its_record_runs_it_again() {
    let (world, _) = kill(|gate| Fault::hold(Apply::Before, gate).table(CLAIMS).skip(1)).await;
    let placed: Vec<_> = world.placed().into_iter().collect();
    assert_eq!(placed, [("mail o-1".to_owned(), 1), ("o-1".to_owned(), 2)]);
}

#[tokio::test]
async fn a_process_that_dies_after_its_steps_repeats_none() {
    let world = World::outlasting_leases(function()).await;
    let event = batch_of([order_with("o-1", json!({ "dieLateTimes": 1 }))]);
    assert_eq!(outcomes(&world.send(&event).await), ["crashed", "executed"]);
    world.assert_placed_once(BOTH);
}
