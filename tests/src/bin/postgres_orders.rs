//! Places orders in PostgreSQL, in the transaction that completes their keys: the row of an order and its idempotency
//! record are committed together. An order may ask for the death of the process.

use std::{process, time::Duration};

use lambda_idempotency::{
    Call, CallExt as _, Failure, Idempotency, Mode, Operation, source::Sqs,
    store::postgres::PostgresStatement,
};
use lambda_runtime::{Error, tracing};
use serde::Deserialize;

/// Adds one to the number of times that the order was placed.
const PLACE: &str = "INSERT INTO orders AS o VALUES ($1, 1) \
                     ON CONFLICT (order_id) DO UPDATE SET placed = o.placed + 1";

/// An order, and what it asks for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
    /// How long the handler takes, in milliseconds.
    #[serde(default)]
    delay_ms: u64,
    /// How often the handler ends the process, after it has collected the statement.
    #[serde(default)]
    die_late_times: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = Idempotency::from_env().await?; // IDEMPOTENCY_STORE
    let operation = Operation::new("place-order").key("orderId").mode(Mode::Transactional);
    lambda_runtime::run(idempotency.on(Sqs::new(), &operation, place)?).await
}

async fn place(order: Order, call: Call) -> Result<(), Failure> {
    tokio::time::sleep(Duration::from_millis(order.delay_ms)).await;
    call.execute(PostgresStatement::new(PLACE).bind(order.order_id))?;
    if call.lost_attempts() < order.die_late_times {
        process::abort();
    }
    Ok(())
}
