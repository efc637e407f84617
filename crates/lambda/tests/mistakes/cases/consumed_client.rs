//! A closure that gives what it holds to its first call.

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
    idempotency.on(Sqs::new(), operation, move |order: String, _: Call| async move {
        client.put(order).await
    })
}

fn main() {}
