//! Several parts of a function, each done once: a monthly run that sends an invoice to each
//! customer, and continues where it was stopped.
//!
//! If one invoice fails, the invocation fails, and Lambda retries it. The invoices that were sent
//! before are then answered from the store, and only the rest is sent.
//!
//! **In AWS**: create the table, and set its name in `IDEMPOTENCY_TABLE`. A schedule invokes
//! asynchronously: Lambda retries twice; set an on-failure destination for events that fail three
//! times.
//!
//! **Here**: the second run sends nothing.
//!
//! ```console
//! $ cargo run --bin lambda-idempotency -- invoke crates/lambda/examples/run.json \
//!     --example run --repeat 2 --json
//! ```

use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation, RunError};
use lambda_runtime::{Error, LambdaEvent, service_fn, tracing};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize)]
struct MonthEnd {
    month: String,
    customers: Vec<String>,
}

#[derive(Serialize)]
struct Summary {
    sent: usize,
    sent_before: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = &Idempotency::new(DynamoDbStore::from_env().await?);
    let invoice = &Operation::new("invoice").key("[customer, month]");
    invoice.check()?; // finds a mistake in the expression now, and not at the first event
    lambda_runtime::run(service_fn(|event| send_all(event, idempotency, invoice))).await
}

async fn send_all(
    event: LambdaEvent<MonthEnd>,
    idempotency: &Idempotency,
    invoice: &Operation,
) -> Result<Summary, RunError> {
    let mut summary = Summary { sent: 0, sent_before: 0 };
    for customer in &event.payload.customers {
        let payload = json!({ "customer": customer, "month": event.payload.month });
        let run = idempotency.run(invoice, &payload, &event.context, send).await?;
        if run.replayed { summary.sent_before += 1 } else { summary.sent += 1 }
    }
    Ok(summary)
}

/// Here a mail service would be called, with this idempotency key: it is the same in every attempt.
async fn send(call: Call) -> Result<String, Failure> {
    Ok(call.subkey("mail"))
}
