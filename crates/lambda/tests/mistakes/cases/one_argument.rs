//! A handler without its call.

use lambda_idempotency::{ConfigError, Failure, Function, Idempotency, Operation, source::Sqs};

async fn place(_: String) -> Result<(), Failure> {
    Ok(())
}

fn function(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    idempotency.on(Sqs::new(), operation, place)
}
