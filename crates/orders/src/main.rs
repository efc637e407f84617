//! The example function that `template.yaml` deploys: places an order per record, from a queue, a
//! topic, an event bus and a stream.
//!
//! An order is placed by adding to a row of a second table, so that placing it twice would show.

mod ledger;
mod orders;
mod rehearsal;
mod shop;

use lambda_idempotency::{Call, Operation};
use lambda_runtime::Error;

use crate::{orders::Order, shop::Shop};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let (shop, idempotency) = Shop::from_env().await?;

    // One handler for four sources. Each is an operation of its own, with its own keys.
    let by_order = |name, variable: &str| {
        shop.rehearsed(Operation::new(name).key("orderId").key_from_env(variable))
    };
    let [queued, announced, requested, streamed] = [
        by_order("place-queued-order", "ORDERS_SQS_KEY"),
        by_order("place-announced-order", "ORDERS_SNS_KEY"),
        by_order("place-requested-order", "ORDERS_EVENTBRIDGE_KEY"),
        by_order("place-streamed-order", "ORDERS_KINESIS_KEY"),
    ];
    let place = move |order: Order, call: Call| {
        let shop = shop.clone();
        async move { shop.place(order, call).await }
    };
    let function = idempotency
        .function()
        .sqs(queued, place.clone())
        .sns(announced, place.clone())
        .event_bridge(requested, place.clone())
        .kinesis(streamed, place)
        .build()?;
    // One event at a time, but on Managed Instances many, as `AWS_LAMBDA_MAX_CONCURRENCY` says there.
    lambda_runtime::run_concurrent(function).await
}
