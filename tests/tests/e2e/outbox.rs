//! Orders that publish a message, whose process is killed between the completion and the message.

use std::collections::BTreeMap;

use lambda_idempotency_local::{Apply, DeliveryReport, Fault, FunctionConfig, Table};
use lambda_idempotency_tests::events::{batch_of, order, order_with};
use serde_json::json;

use crate::support::{World, history, outcomes, quick_queue, scripted_orders};

const PARCELS: &str = "parcels";
/// The commit of an order with its completion and its message.
const COMMIT: &str = "TransactWriteItems";
/// The request of the sender.
const SEND: &str = "UpdateItem";

fn function() -> FunctionConfig {
    scripted_orders().env("SCRIPTED_TRANSACTION", "1").env("SCRIPTED_PARCELS_TABLE", PARCELS)
}

async fn world() -> World {
    let world = World::outlasting_leases(function()).await;
    world.dynamodb().create_table(&Table::new(PARCELS, "id")).unwrap();
    world
}

/// How often each parcel arrived, by the order and by the id of the message.
fn parcels(world: &World) -> BTreeMap<(String, String), u64> {
    let items = world.dynamodb().items(PARCELS).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let row = |item: &serde_json::Value| {
        let parcel = (text(&item["parcel"]["S"]), text(&item["id"]["S"]));
        (parcel, item["arrivals"]["N"].as_str().unwrap().parse().unwrap())
    };
    items.iter().map(row).collect()
}

/// How often each parcel arrived. Fails if a parcel arrived with two ids.
fn arrivals(world: &World) -> BTreeMap<String, u64> {
    let all = parcels(world);
    let by_order: BTreeMap<_, _> =
        all.iter().map(|((order, _), arrivals)| (order.clone(), *arrivals)).collect();
    assert_eq!(by_order.len(), all.len(), "a message with two ids: {all:?}");
    by_order
}

/// Delivers an order, and kills its process while this request is on its way.
async fn kill(world: &World, request: &str, apply: Apply) -> DeliveryReport {
    world.kill(|gate| Fault::hold(apply, gate).on(request)).await
}

fn has_messages(world: &World) -> bool {
    world.claims().iter().any(|claim| claim.get("outbox").is_some())
}

#[tokio::test]
async fn messages_are_sent_after_the_commit_and_once() {
    let change = |local: lambda_idempotency_local::LocalBuilder| {
        local.sqs(quick_queue()).table(Table::new(PARCELS, "id"))
    };
    let world = World::with(function(), change).await;
    let event = batch_of(["o-1", "o-2", "o-3"].map(order));
    assert_eq!(outcomes(&world.send(&event).await), ["executed"; 3]);
    assert_eq!(outcomes(&world.send(&event).await), ["replayed"; 3]);
    world.assert_placed_once(["o-1", "o-2", "o-3"]);
    assert_eq!(arrivals(&world), ["o-1", "o-2", "o-3"].map(|id| (id.to_owned(), 1)).into());
    assert!(!has_messages(&world));
}

#[tokio::test]
async fn an_order_whose_process_dies_before_its_commit_sends_its_message_once() {
    let world = world().await;
    let event = batch_of([order_with("o-1", json!({ "dieLateTimes": 1 }))]);
    let report = world.send(&event).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "executed")]);
    assert_eq!(arrivals(&world), [("o-1".to_owned(), 1)].into());
}

/// Committed, and nothing sent.
#[tokio::test]
async fn a_kill_between_commit_and_message_leaves_the_message_to_the_next_delivery() {
    let world = world().await;
    let report = kill(&world, COMMIT, Apply::After).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "replayed")]);
    world.assert_placed_once(["o-1"]);
    assert_eq!(arrivals(&world), [("o-1".to_owned(), 1)].into());
    assert!(!has_messages(&world));
}

#[tokio::test]
async fn a_kill_before_the_message_arrives_leaves_it_to_the_next_delivery() {
    let world = world().await;
    let report = kill(&world, SEND, Apply::Before).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "replayed")]);
    world.assert_placed_once(["o-1"]);
    assert_eq!(arrivals(&world), [("o-1".to_owned(), 1)].into());
}

/// Nobody knows that it has arrived, so it is sent again, with the same id.
#[tokio::test]
async fn a_kill_after_the_message_arrived_sends_it_again_with_the_same_id() {
    let world = world().await;
    let report = kill(&world, SEND, Apply::After).await;
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "replayed")]);
    world.assert_placed_once(["o-1"]);
    assert_eq!(arrivals(&world), [("o-1".to_owned(), 2)].into());
    assert!(!has_messages(&world));
}
