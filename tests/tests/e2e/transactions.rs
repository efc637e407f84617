//! Orders that are placed in the transaction that completes their keys: whatever fails, each is placed once. `deaths` kills
//! their processes.

use lambda_idempotency_local::{Apply, Fault, FunctionConfig, Local, Table};
use lambda_idempotency_tests::events::{batch_of, order};

use crate::support::{TIMEOUT, World, history, outcomes, quick_queue, returned, scripted_orders};

const TRANSACTION: &str = "TransactWriteItems";
const PARCELS: &str = "parcels";

fn function() -> FunctionConfig {
    scripted_orders().env("SCRIPTED_TRANSACTION", "1")
}

fn optimistic() -> FunctionConfig {
    function().env("SCRIPTED_OPTIMISTIC", "1")
}

/// Messages are sent after the commit, each once.
#[tokio::test]
async fn orders_are_placed_with_their_completion() {
    for publishes in [false, true] {
        let function = match publishes {
            true => function().env("SCRIPTED_PARCELS_TABLE", PARCELS),
            false => function(),
        };
        let world = World::with(function, |local| local.table(Table::new(PARCELS, "id"))).await;
        let before = world.dynamodb().usage();
        let event = batch_of(["o-1", "o-2", "o-3"].map(order));
        assert_eq!(outcomes(&world.send(&event).await), ["executed"; 3]);
        assert_eq!(outcomes(&world.send(&event).await), ["replayed"; 3]);
        world.assert_placed_once(["o-1", "o-2", "o-3"]);
        let (usage, sent) =
            (world.dynamodb().usage().since(&before), if publishes { 3 } else { 0 });
        assert_eq!((usage.count(TRANSACTION), usage.count("UpdateItem")), (3, sent), "{usage:?}");
        let parcels = world.dynamodb().items(PARCELS).unwrap();
        let once = parcels.iter().filter(|parcel| parcel["arrivals"]["N"] == "1");
        assert_eq!((parcels.len() as u64, once.count() as u64), (sent, sent), "{parcels:?}");
        assert!(!world.claims().iter().any(|claim| claim.get("outbox").is_some()));
    }
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
    let world = World::outlasting_leases(function()).await;
    world.dynamodb().faults().add(Fault::internal_error(Apply::After).on(TRANSACTION));
    let report = world.send(&batch_of([order("o-1")])).await;
    assert_eq!(history(&report), [("m-o-1", 1, "executed")]);
    world.assert_placed_once(["o-1"]);
    assert_eq!(world.claims()[0]["status"]["S"], "COMPLETED");
}
