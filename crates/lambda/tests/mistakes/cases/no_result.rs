//! A handler without a result.

use lambda_idempotency::{Call, ConfigError, Function, Idempotency, Operation, source::Sqs};

async fn place(_: String, _: Call) {}

fn function(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    idempotency.on(Sqs::new(), operation, place)
}
