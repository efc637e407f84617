//! A function that is served before it is known to be one.

use lambda_idempotency::{Call, Failure, Idempotency, Operation, source::Sqs};

async fn place(_: String, _: Call) -> Result<(), Failure> {
    Ok(())
}

async fn serve(
    idempotency: &Idempotency,
    operation: &Operation,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    idempotency.on(Sqs::new(), operation, place).serve().await
}
