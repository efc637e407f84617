//! Orders that are placed in the transaction that completes their keys: whatever fails, each is placed once.

use std::time::Duration;

use lambda_idempotency_local::{Apply, DeliveryReport, Fault, FunctionConfig, Gate, SqsConfig};
use lambda_idempotency_tests::events::{batch_of, order, order_with};
use serde_json::json;

use crate::support::{World, history, outcomes, quick_queue, scripted_orders};

const TRANSACTION: &str = "TransactWriteItems";
const TIMEOUT: Duration = Duration::from_secs(3);
/// The timeout, a second of lease grace, a second of clock skew, and a reserve: at the second delivery the
/// lease has ended.
const AFTER_THE_LEASE: Duration = Duration::from_millis(6500);

fn function() -> FunctionConfig {
    scripted_orders().env("SCRIPTED_TRANSACTION", "1")
}

/// A world in which a returned record is delivered again after the lease of its first delivery ended.
async fn world() -> World {
    let queue = SqsConfig { visibility: Some(AFTER_THE_LEASE), ..SqsConfig::default() };
    World::with(function().timeout(TIMEOUT), |local| local.sqs(queue)).await
}

/// Delivers an order, and kills its process while its transaction is on its way.
async fn kill(world: &World, apply: Apply) -> DeliveryReport {
    let gate = Gate::new(); // never opened: a request that is held before it is applied is never applied
    world.dynamodb().faults().add(Fault::hold(apply, &gate).on(TRANSACTION).times(1));
    let killer = async {
        gate.reached().await;
        assert_eq!(world.kill_in_flight(), 1);
    };
    let event = batch_of([order("o-1")]);
    let (report, ()) = tokio::join!(world.send(&event), killer);
    report
}

#[tokio::test]
async fn orders_are_placed_with_their_completion() {
    let world = World::with(function(), |local| local.sqs(quick_queue())).await;
    let before = world.dynamodb().usage();
    let event = batch_of(["o-1", "o-2", "o-3"].map(order));
    assert_eq!(outcomes(&world.send(&event).await), ["executed"; 3]);
    assert_eq!(outcomes(&world.send(&event).await), ["replayed"; 3]);
    world.assert_placed_once(["o-1", "o-2", "o-3"]);
    let usage = world.dynamodb().usage().since(&before);
    assert_eq!((usage.count(TRANSACTION), usage.count("UpdateItem")), (3, 0), "{usage:?}");
}

/// The figures of the guide: a claim, and two write units for each of the two items of the transaction.
#[tokio::test]
async fn a_record_with_one_effect_costs_five_write_units() {
    for (transaction, units) in [(true, 5.0), (false, 3.0)] {
        let function = if transaction { function() } else { scripted_orders() };
        let world = World::with(function, |local| local.sqs(quick_queue())).await;
        let before = world.dynamodb().usage();
        assert_eq!(outcomes(&world.send(&batch_of([order("o-1")])).await), ["executed"]);
        let used = world.dynamodb().usage().since(&before).write_units;
        assert!((used - units).abs() < f64::EPSILON, "{transaction}: {used}");
    }
    let guide = include_str!("../../../crates/lambda/src/guide/choosing_a_mode.md");
    assert!(guide.contains("| 3: claim, effect, completion | 5: claim, and two for each item"));
}

/// Between the collection of the effect and the commit: the process ends after the handler has collected.
#[tokio::test]
async fn an_order_whose_process_dies_before_its_commit_is_placed_once() {
    let world = world().await;
    let event = batch_of([order_with("o-1", json!({ "dieLateTimes": 1 }))]);
    let report = world.send(&event).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    world.assert_placed_once(["o-1"]);
}

#[tokio::test]
async fn an_order_whose_process_is_killed_while_its_commit_does_not_arrive_is_placed_once() {
    let world = world().await;
    let report = kill(&world, Apply::Before).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    world.assert_placed_once(["o-1"]);
}

/// The same death doubles the effect where it is not in the transaction:
/// `deaths::an_order_whose_process_is_killed_before_the_completion_is_placed_twice`.
#[tokio::test]
async fn an_order_whose_process_is_killed_before_the_answer_to_its_commit_is_placed_once() {
    let world = world().await;
    let report = kill(&world, Apply::After).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "replayed")]);
    world.assert_placed_once(["o-1"]);
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_sent_again_and_applied_once() {
    let lost = || Fault::hang_up(Apply::After);
    let failed = || Fault::internal_error(Apply::After);
    for fault in [lost().times(1), failed().times(2), Fault::throttled().times(2)] {
        let world = World::with(function(), |local| local.sqs(quick_queue())).await;
        world.dynamodb().faults().add(fault.on(TRANSACTION));
        let report = world.send(&batch_of(["o-1", "o-2"].map(order))).await;
        assert_eq!(outcomes(&report), ["executed"; 2]);
        world.assert_placed_once(["o-1", "o-2"]);
    }
}

/// It is not acknowledged, since a later delivery finds out: here it was applied.
#[tokio::test]
async fn a_commit_without_any_answer_is_returned_and_then_replayed() {
    let world = world().await;
    // The next delivery sends none.
    world.dynamodb().faults().add(Fault::internal_error(Apply::After).on(TRANSACTION));
    let report = world.send(&batch_of([order("o-1")])).await;
    assert_eq!(history(&report), [("m-o-1", 1, "uncommitted"), ("m-o-1", 2, "replayed")]);
    world.assert_placed_once(["o-1"]);
    assert_eq!(world.claims()[0]["status"]["S"], "COMPLETED");
}
