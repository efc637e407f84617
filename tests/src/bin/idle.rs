//! A function whose handler makes no requests, so that all requests are the library's.

use std::io;

use lambda_idempotency::{Call, DynamoDbStore, Idempotency, Operation};
use serde::Deserialize;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let work = Operation::new("work").key("orderId");
    lambda_runtime::run(idempotency.sqs(work, handle)?).await
}

#[derive(Deserialize)]
struct Task {
    /// The message of the handler's error.
    error: Option<String>,
}

async fn handle(task: Task, _: Call) -> Result<(), io::Error> {
    task.error.map_or(Ok(()), |error| Err(io::Error::other(error)))
}
