//! Orders that are placed in the transaction that completes their keys: whatever fails, each is placed once.

use lambda_idempotency_local::{Apply, DeliveryReport, Fault, FunctionConfig, Local};
use lambda_idempotency_tests::events::{batch_of, order, order_with};
use serde_json::json;

use crate::support::{TIMEOUT, World, history, outcomes, quick_queue, returned, scripted_orders};

const TRANSACTION: &str = "TransactWriteItems";

fn function() -> FunctionConfig {
    scripted_orders().env("SCRIPTED_TRANSACTION", "1")
}

fn optimistic() -> FunctionConfig {
    function().env("SCRIPTED_OPTIMISTIC", "1")
}

async fn world() -> World {
    World::outlasting_leases(function()).await
}

/// Delivers an order, and kills its process while its transaction is on its way.
async fn kill(world: &World, apply: Apply) -> DeliveryReport {
    world.kill(|gate| Fault::hold(apply, gate).on(TRANSACTION)).await
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

/// The figures of the guide: two write units for each of the two items of the transaction, and one for a claim.
#[tokio::test]
async fn a_record_with_one_effect_costs_five_write_units() {
    let mutex = scripted_orders().env("SCRIPTED_MUTEX", "1");
    for (function, units, requests) in
        [(scripted_orders(), 3.0, 3), (function(), 5.0, 2), (optimistic(), 4.0, 1), (mutex, 3.0, 3)]
    {
        let world = World::with(function, |local| local.sqs(quick_queue())).await;
        let before = world.dynamodb().usage();
        assert_eq!(outcomes(&world.send(&batch_of([order("o-1")])).await), ["executed"]);
        let used = world.dynamodb().usage().since(&before);
        println!("{} write units, requests {:?}", used.write_units, used.operations);
        assert!((used.write_units - units).abs() < f64::EPSILON, "{used:?}");
        assert_eq!(used.requests(), requests, "{used:?}");
    }
    let guide = include_str!("../../../crates/lambda/src/guide/choosing_a_mode.md");
    let guide = guide.split_whitespace().collect::<Vec<_>>().join(" ");
    let units = "3 write units with claim and complete, 5 with `Transactional`, 4 with `Optimistic` and 3 with a mutex";
    assert!(guide.contains(units), "not in the guide: {units}");
}

/// Without a claim. A record that is returned can be processed at once.
async fn unclaimed() -> World {
    World::with(optimistic().timeout(TIMEOUT), |local| local.sqs(quick_queue())).await
}

#[tokio::test]
async fn without_a_claim_orders_are_placed_with_their_completion_and_once() {
    let world = unclaimed().await;
    let before = world.dynamodb().usage();
    let event = batch_of(["o-1", "o-2", "o-1"].map(order));
    assert_eq!(outcomes(&world.send(&event).await), ["executed", "executed", "coalesced"]);
    let usage = world.dynamodb().usage().since(&before);
    assert_eq!((usage.count(TRANSACTION), usage.requests()), (2, 2), "{usage:?}");
    world.assert_placed_once(["o-1", "o-2"]);
    // A process that knows nothing of it.
    let other = Local::builder(optimistic()).dynamodb(world.dynamodb().clone());
    let again = other.start().await.unwrap().invoke(&batch_of([order("o-1")])).await.unwrap();
    assert_eq!(again.records[0].outcome.as_str(), "superseded");
    assert!(returned(&again.result).is_empty());
    world.assert_placed_once(["o-1", "o-2"]);
}

#[tokio::test]
async fn without_a_claim_an_order_whose_process_is_killed_at_its_commit_is_placed_once() {
    for (apply, then) in [(Apply::Before, "executed"), (Apply::After, "replayed")] {
        let world = unclaimed().await;
        let report = kill(&world, apply).await;
        assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, then)]);
        world.assert_placed_once(["o-1"]);
    }
    let world = unclaimed().await;
    let event = batch_of([order_with("o-1", json!({ "dieLateTimes": 1 }))]);
    let report = world.send(&event).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    world.assert_placed_once(["o-1"]);
}

/// DynamoDB recognises the request by its token; without an answer at all, the next delivery reads the record.
#[tokio::test]
async fn without_a_claim_a_commit_whose_answer_is_lost_is_applied_once() {
    let lost = || Fault::hang_up(Apply::After).on(TRANSACTION);
    for (fault, expected) in [
        (lost().times(1), &[("m-o-1", 1, "executed")][..]),
        (lost(), &[("m-o-1", 1, "uncommitted"), ("m-o-1", 2, "replayed")]),
    ] {
        let world = unclaimed().await;
        world.dynamodb().faults().add(fault);
        let report = world.send(&batch_of([order("o-1")])).await;
        assert_eq!(history(&report), expected);
        world.assert_placed_once(["o-1"]);
    }
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

/// When it is given up, the write that says so finds out that it was applied.
#[tokio::test]
async fn a_commit_without_any_answer_that_was_applied_counts() {
    let world = world().await;
    world.dynamodb().faults().add(Fault::internal_error(Apply::After).on(TRANSACTION));
    let report = world.send(&batch_of([order("o-1")])).await;
    assert_eq!(history(&report), [("m-o-1", 1, "executed")]);
    world.assert_placed_once(["o-1"]);
    assert_eq!(world.claims()[0]["status"]["S"], "COMPLETED");
}
