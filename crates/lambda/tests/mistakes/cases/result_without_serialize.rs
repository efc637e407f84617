//! A result that cannot be serialized, with and without `keep_result`.

use lambda_idempotency::{
    Call, ConfigError, Failure, Function, Idempotency, Operation, handler::keep_result,
    source::{Invoke, Sqs},
};

struct Receipt;

async fn place(_: String, _: Call) -> Result<Receipt, Failure> {
    Ok(Receipt)
}

fn direct(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    idempotency.on(Invoke::new(), operation, place)
}

fn kept(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    idempotency.on(Sqs::new(), operation, keep_result(place))
}
