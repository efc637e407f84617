//! One function for several sources: orders from a queue *and* a topic, each placed once in total,
//! and cancellations from an event bus, which are other work.
//!
//! **In AWS**: set `ReportBatchItemFailures` for the queue. SNS and EventBridge invoke
//! asynchronously, and Lambda retries twice: an on-failure destination keeps events that fail three
//! times. `template.yaml` at the root of the repository has such sources.
//!
//! **Here**: the notification and the message contain different orders, so both are placed. If you
//! deliver them again (`--repeat 2`), no handler runs for the copies.
//!
//! ```console
//! $ cargo run --bin lambda-idempotency -- invoke events/sqs.json events/sns.json \
//!     crates/lambda/examples/several_sources.json --example several_sources
//! ```

use lambda_idempotency::{
    Call, DynamoDbStore, Failure, Idempotency, Operation,
    source::{EventBridge, Sns, Sqs},
};
use lambda_runtime::{Error, tracing};
use serde::Deserialize;

#[derive(Deserialize)]
struct Order {
    quantity: u32,
}

#[derive(Deserialize)]
struct Cancellation {
    reason: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    // One operation: the same name and key mean the same work, whichever source delivers it.
    let place = Operation::new("place-order").key("orderId");
    // Another name: a cancellation never shares a key with the order that it cancels.
    let cancel = Operation::new("cancel-order").key("orderId");
    let function = idempotency
        .function()
        .on(Sqs::new(), &place, place_order)
        .on(Sns::new(), &place, place_order)
        .on(EventBridge::new().detail_type("OrderCancelled"), &cancel, cancel_order)
        .build()?;
    lambda_runtime::run(function).await
}

async fn place_order(order: Order, call: Call) -> Result<(), Failure> {
    if order.quantity == 0 {
        return Err(Failure::permanent("an order needs a quantity of at least 1"));
    }
    tracing::info!(source = call.record().source, key = call.key_hash(), "placed");
    Ok(())
}

async fn cancel_order(cancellation: Cancellation, call: Call) -> Result<(), Failure> {
    let by_customer = cancellation.reason == "customer";
    tracing::info!(by_customer, key = call.key_hash(), "cancelled");
    Ok(())
}
