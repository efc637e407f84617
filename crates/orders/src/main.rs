//! The example function that `template.yaml` deploys: places each order once, whether it comes by a
//! queue, a topic, an event bus or a stream, or by several of them.
//!
//! An order is placed by adding to a row of a second table, so that placing it twice would show.

mod ledger;
mod orders;
mod rehearsal;
mod shop;

use lambda_idempotency::{Call, Operation, Sources};
use lambda_runtime::Error;

use crate::{orders::Order, shop::Shop};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let (shop, idempotency) = Shop::from_env().await?;

    // One piece of work, whichever way an order comes: one that is queued and announced too is placed
    // once. Only where each source has the order id may differ.
    let at = |variable: &'static str| {
        let shop = shop.clone();
        move |place: Operation| shop.rehearsed(place.key_from_env(variable))
    };
    let sources = Sources::new()
        .sqs(at("ORDERS_SQS_KEY"))
        .sns(at("ORDERS_SNS_KEY"))
        .event_bridge(at("ORDERS_EVENTBRIDGE_KEY"))
        .kinesis(at("ORDERS_KINESIS_KEY"));
    let place_order = move |order: Order, call: Call| {
        let shop = shop.clone();
        async move { shop.place(order, call).await }
    };
    let place = Operation::new("place-order").key("orderId");
    let function = idempotency.function().sources(place, place_order, sources).build()?;
    // One event at a time, but on Managed Instances many, as `AWS_LAMBDA_MAX_CONCURRENCY` says there.
    lambda_runtime::run_concurrent(function).await
}
