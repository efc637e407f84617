//! The functions that are compared with each store, in one binary.
//!
//! `VARIANT` selects one: `nothing` has no store, `bare`, `bare-prepared` and `row` send [plain statements](bare), those of an
//! event at once, `stored` uses the library with the store that `IDEMPOTENCY_STORE` names, and `prepared` with PostgreSQL and
//! prepared statements.

mod bare;

use std::convert::Infallible;

use lambda_idempotency::{Call, Idempotency, Operation, PostgresStore, source::Sqs};
use lambda_runtime::{Error, LambdaEvent, service_fn, tracing};
use serde::Deserialize;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    match std::env::var("VARIANT").unwrap_or_default().as_str() {
        "nothing" => lambda_runtime::run(service_fn(nothing)).await,
        variant @ ("bare" | "bare-prepared" | "row") => bare::serve(variant).await,
        "prepared" => {
            let store = PostgresStore::builder_from_env()?.prepared_statements(true).build()?;
            store.check().await?;
            stored(Idempotency::new(store)).await
        }
        _ => stored(Idempotency::from_env().await?).await,
    }
}

async fn stored(idempotency: Idempotency) -> Result<(), Error> {
    tracing::init_default_subscriber();
    let place = Operation::new("place-order").key("orderId");
    lambda_runtime::run(idempotency.on(Sqs::new(), &place, place_nothing)?).await
}

async fn place_nothing(_: Order, _: Call) -> Result<(), Infallible> {
    Ok(())
}

async fn nothing(event: LambdaEvent<SqsEvent>) -> Result<Value, Error> {
    event.payload.orders()?;
    Ok(json!({ "batchItemFailures": [] }))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SqsEvent {
    records: Vec<SqsRecord>,
}

#[derive(Deserialize)]
struct SqsRecord {
    body: String,
}

/// The part of an order that names it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
}

impl SqsEvent {
    /// The ids of the orders.
    fn orders(&self) -> Result<Vec<String>, serde_json::Error> {
        let order = |record: &SqsRecord| Ok(serde_json::from_str::<Order>(&record.body)?.order_id);
        self.records.iter().map(order).collect()
    }
}
