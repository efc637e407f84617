//! A handler can be given the whole record.

use lambda_idempotency::Operation;
use serde_json::Value;

use crate::{
    support::{World, batch, order, without},
    support_streams::{put, with_data},
};

#[tokio::test]
async fn the_handler_is_given_what_aws_delivers() {
    let world = World::new();
    let whole = Operation::new("a").whole_record();
    let function = world.idempotency().sqs(whole, world.raw_handler()).unwrap();
    let message = order("m-1", "a", "");
    assert!(world.returned(&function, &batch([message.clone()])).await.is_empty());
    world.ledger.assert_once(&message.to_string());
}

#[tokio::test]
async fn keys_see_the_whole_record_too() {
    let world = World::new();
    let whole = Operation::new("a").whole_record().key("kinesis.partitionKey");
    let function = world.idempotency().kinesis(whole, world.raw_handler()).unwrap();
    let event = batch([put(1, "k", "a", ""), put(2, "k", "b", "")]);
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!(world.ledger.total(), 1);
}

/// Bytes that are no text can be handled this way.
#[tokio::test]
async fn payloads_that_are_bytes_are_no_longer_bad() {
    let world = World::new();
    let event = batch([with_data(1, "k", [0xff, 0x00])]);
    let text = world.idempotency().kinesis(Operation::new("a"), world.raw_handler()).unwrap();
    assert_eq!(world.returned(&text, &event).await.len(), 1);
    let whole = Operation::new("b").whole_record();
    let whole = world.idempotency().kinesis(whole, world.raw_handler()).unwrap();
    assert!(world.returned(&whole, &event).await.is_empty());
    assert_eq!(world.ledger.total(), 1);
}

#[tokio::test]
async fn a_message_that_cannot_be_named_is_still_refused() {
    let world = World::new();
    let whole = Operation::new("a").whole_record().key("body");
    let function = world.idempotency().sqs(whole, world.raw_handler()).unwrap();
    let nameless: Value = batch([without(order("m-1", "a", ""), "messageId")]);
    assert!(world.invoke(&function, &nameless).await.is_err());
    assert_eq!(world.ledger.total(), 0);
}
