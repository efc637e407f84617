//! A handler that holds what cannot be cloned.

use lambda_idempotency::{Call, ConfigError, Failure, Function, Idempotency, Operation, source::Sqs};

struct Client;

async fn place(_: &Client, _: String, _: Call) -> Result<(), Failure> {
    Ok(())
}

fn function(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    let client = Client;
    let handler = async move |order, call| place(&client, order, call).await;
    idempotency.on(Sqs::new(), operation, handler)
}
