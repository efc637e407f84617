//! The orders function with orders that ask for faults: the same sources, variables, tables and
//! keys. For the chaos rig, and for tests that need a handler to fail, panic, die or run slowly.

#[path = "scripted/consumer.rs"]
mod consumer;
#[path = "scripted/recovery.rs"]
mod recovery;
mod scripted;

use lambda_idempotency::{Call, Operation, Sources};
use lambda_runtime::Error;

use crate::{
    consumer::Consumer,
    scripted::{Order, Shop},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let (shop, idempotency) = Shop::from_env().await?;
    let at = |variable: &'static str| {
        let shop = shop.clone();
        move |place: Operation| shop.operation(place.key_from_env(variable))
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
    let operation = Operation::new("place-order").key("orderId");
    let mut function = idempotency.function();
    if let Some(consumer) = Consumer::from_env() {
        let receive = move |parcel, call| consumer.clone().receive(parcel, call);
        function = function.sqs(Consumer::operation(), receive);
    }
    let function = function.sources(operation, place_order, sources).build()?;
    if recovery::is_wanted() {
        return recovery::run(function).await;
    }
    lambda_runtime::run_concurrent(function).await
}
