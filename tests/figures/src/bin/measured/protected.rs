//! The function with the library, as the README writes it.

use std::convert::Infallible;

use lambda_idempotency::{Call, DynamoDbStore, Idempotency, Operation, keep_result, source::Sqs};
use lambda_runtime::{Error, tracing};

use crate::{Order, is_set, micros};

pub(crate) async fn serve() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let place = Operation::new("place-order").key("orderId");
    if is_set("STAMP") {
        lambda_runtime::run(idempotency.on(Sqs::new(), &place, keep_result(stamp))?).await
    } else {
        lambda_runtime::run(idempotency.on(Sqs::new(), &place, nothing)?).await
    }
}

async fn nothing(_: Order, _: Call) -> Result<(), Infallible> {
    Ok(())
}

async fn stamp(_: Order, _: Call) -> Result<u64, Infallible> {
    Ok(micros())
}
