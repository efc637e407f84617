//! An operation that is given away.

use lambda_idempotency::{Call, ConfigError, Failure, Function, Idempotency, Operation, source::Sqs};

async fn place(_: String, _: Call) -> Result<(), Failure> {
    Ok(())
}

fn function(idempotency: &Idempotency, operation: Operation) -> Result<Function, ConfigError> {
    idempotency.on(Sqs::new(), operation, place)
}
