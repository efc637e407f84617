//! A handler and a sink that hold what cannot be cloned, or cannot move to another thread.

use std::rc::Rc;

use lambda_idempotency::{
    Call, ConfigError, Failure, Function, Idempotency, Operation,
    source::{DivertedRecord, Sqs},
};

struct Client;

async fn place(_: &Client, _: String, _: Call) -> Result<(), Failure> {
    Ok(())
}

async fn to_review(_: &Client, _: DivertedRecord) -> Result<(), Failure> {
    Ok(())
}

fn function(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    let client = Client;
    let handler = async move |order, call| place(&client, order, call).await;
    idempotency.on(Sqs::new(), operation, handler)
}

fn source() -> Sqs {
    let client = Client;
    let sink = async move |record| to_review(&client, record).await;
    Sqs::new().divert(sink)
}

fn of_one_thread(idempotency: &Idempotency, operation: &Operation) -> Result<Function, ConfigError> {
    let client = Rc::new(Client);
    let handler = async move |order, call| place(&client, order, call).await;
    idempotency.on(Sqs::new(), operation, handler)
}
