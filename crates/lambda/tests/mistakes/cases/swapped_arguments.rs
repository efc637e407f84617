//! A handler with its arguments in the other order.

use lambda_idempotency::{Call, ConfigError, Failure, Function, Idempotency, Operation, source::Sqs};

async fn place(_: Call, _: String) -> Result<(), Failure> {
    Ok(())
}

fn function(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    idempotency.on(Sqs::new(), operation, place)
}
