//! An async closure without a body that awaits.

use lambda_idempotency::{Call, ConfigError, Failure, Function, Idempotency, Operation, source::Sqs};

#[derive(Clone)]
struct Client;

impl Client {
    async fn put(&self, _: String) -> Result<(), Failure> {
        Ok(())
    }
}

fn function(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    let client = Client;
    idempotency.on(Sqs::new(), operation, async move |order: String, _: Call| client.put(order))
}
