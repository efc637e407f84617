//! A source that comes after the function is built.

use lambda_idempotency::{Call, ConfigError, Failure, Function, Idempotency, Operation, source::Sqs};

async fn place(_: String, _: Call) -> Result<(), Failure> {
    Ok(())
}

fn function(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    idempotency.on(Sqs::new().queue("a"), operation, place)?.on(Sqs::new(), operation, place)
}
