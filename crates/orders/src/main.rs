//! The example function that `template.yaml` deploys: places an order per record, from a queue, a
//! topic and an event bus.
//!
//! An order is placed by adding to a row of a second table, so that placing it twice would show.

mod ledger;
mod orders;
mod rehearsal;

use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation};
use lambda_runtime::Error;

use crate::{
    orders::{Order, Orders},
    rehearsal::Rehearsal,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let rehearsal = Rehearsal::from_env()?;
    let idempotency = match rehearsal.clock() {
        None => Idempotency::new(DynamoDbStore::from_env().await?),
        Some(clock) => {
            let store = DynamoDbStore::builder_from_env().await?.clock(clock).build()?;
            Idempotency::new(store).with_clock(clock)
        }
    };
    let orders = Orders::from_env().await?;

    // One handler for three sources. Each is an operation of its own, with its own keys.
    let by_order = |name, variable| {
        rehearsal.operation(Operation::new(name).key("orderId").key_from_env(variable))
    };
    let rehearsed = rehearsal.clone();
    let place = move |order: Order, call: Call| {
        let (orders, rehearsal) = (orders.clone(), rehearsed.clone());
        async move { place_order(&orders, &rehearsal, &order, &call).await }
    };
    let function = idempotency
        .function()
        .sqs(by_order("place-queued-order", "ORDERS_SQS_KEY"), place.clone())
        .sns(by_order("place-announced-order", "ORDERS_SNS_KEY"), place.clone())
        .event_bridge(by_order("place-requested-order", "ORDERS_EVENTBRIDGE_KEY"), place)
        .build()?;
    // One event at a time, but on Managed Instances many, as `AWS_LAMBDA_MAX_CONCURRENCY` says there.
    lambda_runtime::run_concurrent(function).await
}

/// Runs once per order id.
async fn place_order(
    orders: &Orders,
    rehearsal: &Rehearsal,
    order: &Order,
    call: &Call,
) -> Result<(), Failure> {
    if order.quantity == 0 {
        // Trying again would not help: remembered, and answered to every duplicate.
        return Err(Failure::remember("an order of nothing"));
    }
    rehearsal.before(order, call).await?;
    if !rehearsal.place(order, call)? {
        orders.place(order).await?;
    }
    rehearsal.after(order, call).await;
    Ok(())
}
