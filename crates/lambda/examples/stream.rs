//! Orders from a Kinesis stream, and changes from a DynamoDB stream: those of one partition key or
//! item in order, the others concurrently.
//!
//! The response names the failed records. Lambda delivers again from the first of these, and
//! records behind it that were completed are answered from the store.
//!
//! **In AWS**: set `ReportBatchItemFailures`, or one failure repeats the whole batch;
//! limits of retries and age, and an on-failure destination, as `docs/templates/stream.yaml` does.
//!
//! **Here**, with four records that contain three orders:
//!
//! ```console
//! $ cargo run --bin lambda-idempotency -- invoke events/kinesis.json \
//!     --example stream
//! ```

use std::time::Duration;

use lambda_idempotency::{
    Call, DynamoDbStore, Idempotency, Operation,
    source::{DynamoDbStream, Kinesis},
};
use lambda_runtime::{Error, tracing};
use serde::Deserialize;

#[derive(Deserialize)]
struct Order {
    sku: String,
}

/// Why an order is not indexed. Logs show this type, and not its message.
#[derive(Debug, thiserror::Error)]
enum IndexError {
    #[error("an order names no article")]
    NoArticle,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let index = Operation::new("index")
        .key("orderId") // without it, each record of the stream would be separate work
        .retention(Duration::from_hours(48)) // Kinesis keeps records for 24 hours by default
        .max_failed_attempts(3); // the third failure is permanent: the handler is not called again
    let announce = Operation::new("announce"); // without a key, each change is work of its own
    let orders = idempotency.function().on(Kinesis::new(), &index, index_order);
    orders.on(DynamoDbStream::new(), &announce, announce_change).build()?.serve().await
}

async fn index_order(order: Order, call: Call) -> Result<(), IndexError> {
    if order.sku.is_empty() {
        return Err(IndexError::NoArticle); // returned to the stream, for three attempts in total
    }
    tracing::info!(key = call.key_hash(), attempt = call.failed_attempts() + 1, "indexed");
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Change {
    event_name: String, // INSERT, MODIFY, REMOVE; the items are in `newImage` and `oldImage`
}

async fn announce_change(change: Change, call: Call) -> Result<(), IndexError> {
    tracing::info!(key = call.key_hash(), kind = change.event_name, "announced");
    Ok(())
}
