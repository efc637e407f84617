//! A function whose handler makes no requests, so that all requests are the library's. It keeps a result if
//! the environment variable `KEEPS_RESULTS` is set.

use std::io;

use lambda_idempotency::{
    Call, DynamoDbStore, Idempotency, Operation, handler::keep_result, source::Sqs,
};
use serde::Deserialize;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let work = Operation::new("work").key("orderId");
    let function = if std::env::var_os("KEEPS_RESULTS").is_some() {
        idempotency.on(Sqs::new(), &work, keep_result(produce))?
    } else {
        idempotency.on(Sqs::new(), &work, handle)?
    };
    lambda_runtime::run(function).await
}

#[derive(Deserialize)]
struct Task {
    /// The message of the handler's error.
    error: Option<String>,
    /// The length of the result, in bytes of JSON.
    #[serde(default)]
    bytes: usize,
}

async fn handle(task: Task, _: Call) -> Result<(), io::Error> {
    task.error.map_or(Ok(()), |error| Err(io::Error::other(error)))
}

async fn produce(task: Task, _: Call) -> Result<String, io::Error> {
    Ok("x".repeat(task.bytes.saturating_sub("\"\"".len())))
}
