//! Orders that are placed in the transaction that completes their keys. `deaths` kills their processes.

use lambda_idempotency_local::{FunctionConfig, Local, Table};
use lambda_idempotency_tests::events::{batch_of, order};

use crate::support::{TIMEOUT, World, outcomes, returned, scripted_orders};

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

#[tokio::test]
async fn without_a_claim_orders_are_placed_with_their_completion_and_once() {
    let world = World::of(optimistic().timeout(TIMEOUT)).await;
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
