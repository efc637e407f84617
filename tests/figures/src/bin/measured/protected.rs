//! The function with the library, as the README writes it.

use std::convert::Infallible;

use futures_util::future::join_all;
use lambda_idempotency::{Call, DynamoDbStore, Idempotency, Operation, keep_result};
use lambda_runtime::{Error, LambdaEvent, service_fn, tracing};
use serde_json::{Value, json};

use crate::{Order, Orders, is_set, micros};

pub(crate) async fn serve() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let place = Operation::new("place-order").key("orderId");
    if is_set("STAMP") {
        lambda_runtime::run(idempotency.sqs(place, keep_result(stamp))?).await
    } else {
        lambda_runtime::run(idempotency.sqs(place, nothing)?).await
    }
}

/// Each order by a call of its own, all at once.
pub(crate) async fn serve_runs() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = &Idempotency::new(DynamoDbStore::from_env().await?);
    let place = &Operation::new("place-order").key("orderId");
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Orders>| {
        let context = &event.context;
        let orders = event.payload.orders.iter().map(async |order| {
            let payload = json!({ "orderId": order });
            let run = idempotency
                .run(place, &payload, context, async |_: Call| Ok::<_, Infallible>(micros()));
            run.await.inspect_err(|error| println!("{error}")).is_ok()
        });
        let done = join_all(orders).await.into_iter().filter(|done| *done).count();
        Ok::<Value, Error>(json!({ "done": done }))
    }))
    .await
}

async fn nothing(_: Order, _: Call) -> Result<(), Infallible> {
    Ok(())
}

async fn stamp(_: Order, _: Call) -> Result<u64, Infallible> {
    Ok(micros())
}
