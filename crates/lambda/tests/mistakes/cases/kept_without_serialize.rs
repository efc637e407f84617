//! A result to keep that cannot be serialized.

use lambda_idempotency::{
    Call, ConfigError, Failure, Function, Idempotency, Operation, keep_result, source::Sqs,
};

struct Receipt;

async fn place(_: String, _: Call) -> Result<Receipt, Failure> {
    Ok(Receipt)
}

fn function(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    idempotency.on(Sqs::new(), operation, keep_result(place))
}

fn main() {}
