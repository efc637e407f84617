//! A function whose handler makes no requests, so that all requests are the library's.

use lambda_idempotency::{Call, DynamoDbStore, Idempotency, Operation, source::Sqs};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let handler = async |_: Value, _: Call| Ok::<_, std::io::Error>(());
    idempotency.on(Sqs::new(), &Operation::new("work").key("orderId"), handler)?.serve().await
}
