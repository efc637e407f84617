//! Each order is placed once, however often it is delivered, and in however many messages.

use lambda_idempotency_tests::events::{batch, batch_of, message, order, order_with};
use serde_json::json;

use crate::support::{World, history, outcomes};

#[tokio::test]
async fn messages_that_are_delivered_twice_are_processed_once() {
    let world = World::new().await;
    let event = batch_of(["o-1", "o-2", "o-3"].map(order));
    let first = world.send(&event).await;
    assert_eq!(outcomes(&first), ["executed"; 3]);
    let second = world.send(&event).await;
    assert_eq!(outcomes(&second), ["replayed"; 3]);
    assert_eq!(second.invocations.len(), 1, "a duplicate is acknowledged, not returned");
    world.assert_placed_once(["o-1", "o-2", "o-3"]);
}

#[tokio::test]
async fn duplicates_inside_a_batch_share_one_execution() {
    let world = World::new().await;
    let other_payload = order_with("o-1", json!({ "sku": "mug-red" }));
    let report = world
        .send(&batch([
            message("m-1", &order("o-1")),
            message("m-2", &order("o-2")),
            message("m-1", &order("o-1")), // delivered twice
            message("m-3", &order("o-1")), // published twice
            message("m-4", &other_payload),
        ]))
        .await;
    assert_eq!(
        history(&report),
        [
            ("m-1", 1, "executed"),
            ("m-2", 1, "executed"),
            ("m-1", 1, "coalesced"),
            ("m-3", 1, "coalesced"),
            // Not a copy: it is answered from the store, as a later delivery would be.
            ("m-4", 1, "replayed"),
        ]
    );
    assert!(report.is_complete());
    world.assert_placed_once(["o-1", "o-2"]);
}

#[tokio::test]
async fn a_new_process_answers_from_the_completions_of_an_earlier_one() {
    let first = World::new().await;
    let event = batch_of([order("o-1")]);
    first.send(&event).await;
    let dynamodb = first.dynamodb().clone();
    first.assert_placed_once(["o-1"]);
    drop(first);

    let function = crate::support::orders();
    let second = lambda_idempotency_local::Local::builder(function).dynamodb(dynamodb);
    let second = second.start().await.unwrap();
    let report = second.deliver(&event.to_string()).await.unwrap();
    assert_eq!(outcomes(&report), ["replayed"]);
}
