//! A function whose handler awaits nothing, so that every request it makes is the library's own.

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
    /// What the handler's error says.
    error: Option<String>,
}

async fn handle(task: Task, _: Call) -> Result<(), io::Error> {
    task.error.map_or(Ok(()), |error| Err(io::Error::other(error)))
}
