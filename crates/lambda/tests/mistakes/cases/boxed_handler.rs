//! A handler in a box.

use std::pin::Pin;

use lambda_idempotency::{Call, ConfigError, Failure, Function, Idempotency, Operation, source::Sqs};

type Placing = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;
type Place = dyn Fn(String, Call) -> Placing + Send + Sync;

fn function(
    idempotency: &Idempotency,
    operation: &Operation,
    place: Box<Place>,
) -> Result<Function, ConfigError> {
    idempotency.on(Sqs::new(), operation, place)
}
