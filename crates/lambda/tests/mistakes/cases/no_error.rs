//! An error type that is not an error.

use lambda_idempotency::{Call, ConfigError, Function, Idempotency, Operation, source::Sqs};

struct OutOfStock;

async fn place(_: String, _: Call) -> Result<(), OutOfStock> {
    Err(OutOfStock)
}

fn function(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    idempotency.on(Sqs::new(), operation, place)
}
