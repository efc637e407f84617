//! A producer: it computes the key of an order and its deduplication id before it sends the order,
//! from the key specification that it shares with the consumer.
//!
//! Two copies of an order get one deduplication id although their text differs. For five minutes, a
//! FIFO queue delivers only the first of them; the consumer recognises later ones for the key's
//! retention.
//!
//! ```console
//! $ cargo run -p lambda-idempotency --example producer
//! ```

use lambda_idempotency::{
    Operation,
    keys::producer::{KeySpec, Producer, ProducerError},
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
    let message = producer.message(order)?; // refuses an order without a key before it is sent
    let id = message.deduplication_id();
    // sqs.send_message().queue_url(..).message_group_id(order.tenant) .message_body(message.body())
    // // this text, because the key was computed from it
    // .message_deduplication_id(&id).send().await?;
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
    // The consumer: `idempotency.on(Sqs::new(), &Operation::from(place_order()), handler)`.
    Operation::from(place_order()).check()?;
    Ok(())
}
