//! SQS: FIFO queues keep the order of their groups; standard queues have none.

use lambda_idempotency::source::Sqs;
use serde_json::Value;

use crate::support::{FIFO, Noted, QUEUE, World, batch, grouped, order, place, without};

fn in_groups(queue: &str) -> Value {
    batch([
        grouped(order("m-1", "a1", ""), queue, "a"),
        grouped(order("m-2", "b1", ""), queue, "b"),
        grouped(order("m-3", "a2", "fail"), queue, "a"),
        grouped(order("m-4", "b2", ""), queue, "b"),
        grouped(order("m-5", "a3", ""), queue, "a"),
    ])
}

#[tokio::test]
async fn no_message_of_a_group_is_processed_after_a_failure() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    assert_eq!(world.returned(&function, &in_groups(FIFO)).await, ["m-3", "m-5"]);
    world.ledger.assert_each_once(["a1", "b1", "b2"]);
    world.ledger.assert_never("a3");
}

#[tokio::test]
async fn on_a_standard_queue_a_group_does_not_keep_an_order() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    assert_eq!(world.returned(&function, &in_groups(QUEUE)).await, ["m-3"]);
    world.ledger.assert_each_once(["a1", "a3", "b1", "b2"]);
}

/// A record that cannot be read stops its group, as one that fails does.
#[tokio::test]
async fn a_bad_record_stops_its_group() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    let event = batch([
        grouped(order("m-1", "a1", ""), FIFO, "a"),
        without(grouped(order("m-2", "a2", ""), FIFO, "a"), "body"),
        grouped(order("m-3", "a3", ""), FIFO, "a"),
        grouped(order("m-4", "b1", ""), FIFO, "b"),
    ]);
    assert_eq!(world.returned(&function, &event).await, ["m-2", "m-3"]);
    world.ledger.assert_each_once(["a1", "b1"]);
}

/// A message that was received most often is closest to the dead-letter queue.
#[tokio::test]
async fn a_standard_queue_starts_with_messages_that_were_received_most_often() {
    let world = World::new();
    let started = Noted::new();
    let handler = started.handler(|order: Value, _| order["id"].as_str().unwrap().to_owned());
    let function = world.with_handler(Sqs::new().concurrency(1), &place(), handler);
    let mut records = Vec::new();
    for (id, receives) in [("a", "1"), ("b", "3"), ("c", "2"), ("d", "many")] {
        let mut record = order(&format!("m-{id}"), id, "");
        record["attributes"]["ApproximateReceiveCount"] = receives.into();
        records.push(record);
    }
    assert!(world.returned(&function, &batch(records)).await.is_empty());
    assert_eq!(started.take(), ["b", "c", "a", "d"]);
}
