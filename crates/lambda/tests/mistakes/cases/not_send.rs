//! A future that cannot move to another thread.

use std::rc::Rc;

use lambda_idempotency::{Call, ConfigError, Failure, Function, Idempotency, Operation, source::Sqs};

async fn place(order: String, _: Call) -> Result<(), Failure> {
    let order = Rc::new(order);
    std::future::ready(()).await;
    drop(order);
    Ok(())
}

fn function(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    idempotency.on(Sqs::new(), operation, place)
}
