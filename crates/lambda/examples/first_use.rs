//! The smallest function that can be deployed: it places each order from an SQS queue once.
//!
//! **In AWS**: set `ReportBatchItemFailures` on the event source, or failed messages are deleted;
//! create a DynamoDB table with the partition key `id` (a string) and TTL on `expiration`; set its
//! name in `IDEMPOTENCY_TABLE`; give the function access to it. `docs/templates/minimal.yaml` does all
//! of this.
//!
//! **Here**, with six messages that contain four orders:
//!
//! ```console
//! $ cargo run --bin lambda-idempotency -- invoke events/sqs-duplicates.json \
//!     --example first_use
//! ```

use std::time::Duration;

use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation, source::Sqs};
use lambda_runtime::{Error, tracing};
use serde::Deserialize;

#[derive(Deserialize)]
struct Order {
    quantity: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber(); // the library logs what fails, and each batch
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?); // IDEMPOTENCY_TABLE
    let place = Operation::new("place-order")
        .key("orderId") // JMESPath on the message's body
        .retention(Duration::from_hours(24 * 18)); // as long as the queues can keep a message
    lambda_runtime::run(idempotency.on(Sqs::new(), &place, place_order)?).await
}

/// Runs once per order id. If it fails, the message returns to the queue, and the next delivery
/// calls it again.
async fn place_order(order: Order, call: Call) -> Result<(), Failure> {
    if order.quantity == 0 {
        // A retry would not help: the failure is recorded, and duplicates get it as their answer.
        return Err(Failure::permanent("an order needs a quantity of at least 1"));
    }
    // Do the work here.
    tracing::info!(key = call.key_hash(), "placed");
    Ok(())
}
