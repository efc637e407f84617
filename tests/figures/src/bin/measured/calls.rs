//! Functions that call `run` for each order of their event, all at once, or `run_many` for all of them.

use std::convert::Infallible;

use futures_util::future::join_all;
use lambda_idempotency::{Call, DynamoDbStore, Idempotency, Operation};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Orders {
    orders: Vec<Value>,
}

pub(crate) async fn serve(are_together: bool) -> Result<(), Error> {
    let idempotency = &Idempotency::new(DynamoDbStore::from_env().await?);
    let place = &Operation::new("place-order").key("orderId");
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Orders>| {
        let (orders, context) = (event.payload.orders, &event.context);
        let done = if are_together {
            let nothing = async |_: Value, _: Call| Ok::<_, Infallible>(());
            let runs = idempotency.run_many(place, orders, context, nothing).await;
            runs.into_iter().filter(Result::is_ok).count()
        } else {
            let nothing = async |_: Call| Ok::<_, Infallible>(());
            let runs = orders.iter().map(|order| idempotency.run(place, order, context, nothing));
            join_all(runs).await.into_iter().filter(Result::is_ok).count()
        };
        Ok::<_, Error>(json!({ "done": done }))
    }))
    .await
}
