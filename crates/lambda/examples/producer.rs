//! The sending side: the key of an order before it is sent, and the deduplication id that goes with it,
//! from the specification that the consumer has too.
//!
//! Two copies of an order get one id although their text differs. A FIFO queue delivers the first of
//! them for five minutes; the consumer recognises the others for as long as it keeps the key.
//!
//! ```console
//! $ cargo run -p lambda-idempotency --example producer
//! ```

use lambda_idempotency::{
    Operation,
    producer::{KeySpec, Producer, ProducerError},
};
use serde::Serialize;

/// In a crate that producer and consumer share.
fn place_order() -> KeySpec {
    KeySpec::new("place-order", "[tenant, orderId]")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Order<'a> {
    tenant: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_id: Option<u32>,
    sent_at: u64,
}

fn send(producer: &Producer, order: &Order<'_>) -> Result<String, ProducerError> {
    let message = producer.message(order)?; // an order without a key is refused here, and not in the queue
    let id = message.deduplication_id();
    // sqs.send_message().queue_url(..).message_group_id(order.tenant)
    //     .message_body(message.body()) // this text, since the key was made from it
    //     .message_deduplication_id(&id).send().await?;
    println!("key {}, deduplication id {id}", message.key().hash());
    Ok(id)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let producer = place_order().producer()?; // once, when the program starts
    let first = send(&producer, &Order { tenant: "acme", order_id: Some(42), sent_at: 1 })?;
    let again = send(&producer, &Order { tenant: "acme", order_id: Some(42), sent_at: 2 })?;
    println!("one id for both: {}", first == again);
    if let Err(refused) = send(&producer, &Order { tenant: "acme", order_id: None, sent_at: 3 }) {
        println!("refused: {refused}");
    }
    // The consumer: `idempotency.sqs(Operation::from(place_order()), handler)`.
    Operation::from(place_order()).check()?;
    Ok(())
}
