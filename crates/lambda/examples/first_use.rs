//! The smallest function that can be deployed: orders from an SQS queue, each of them placed once.
//!
//! **In AWS**: `ReportBatchItemFailures` on the event source, without which failed messages are deleted;
//! a DynamoDB table with the key `id` (a string) and TTL on `expiration`, its name in
//! `IDEMPOTENCY_TABLE`; the function's rights on that table. `template.yaml` at the root of the
//! repository has all of it.
//!
//! **Here**, with six messages that carry four orders:
//!
//! ```console
//! $ cargo run -p lambda-idempotency-cli -- invoke events/sqs-duplicates.json \
//!     --package lambda-idempotency --example first_use
//! ```

use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation};
use lambda_runtime::{Error, tracing};
use serde::Deserialize;

#[derive(Deserialize)]
struct Order {
    quantity: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber(); // the library writes a line for each record
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?); // IDEMPOTENCY_TABLE
    let place = Operation::new("place-order").key("orderId"); // JMESPath on the message's body
    lambda_runtime::run(idempotency.sqs(place, place_order)?).await
}

/// Runs once per order id, and again if it fails: the message goes back to the queue then.
async fn place_order(order: Order, call: Call) -> Result<(), Failure> {
    if order.quantity == 0 {
        // Trying again would not help: the failure is recorded, and duplicates get it as their answer.
        return Err(Failure::permanent("an order needs a quantity of at least 1"));
    }
    // The work is done here. This line stands for it.
    tracing::info!(key = call.key_hash(), "placed");
    Ok(())
}
