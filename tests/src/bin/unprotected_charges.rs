//! The function `charges` as it would be without the library: every delivery is a charge. It writes the lines about its
//! effects itself, as any program may. Tests of `chaos` need it: the audit has to report its doubled charges.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::run(service_fn(charge)).await
}

async fn charge(event: LambdaEvent<Value>) -> Result<Value, Error> {
    for record in event.payload.get("Records").and_then(Value::as_array).into_iter().flatten() {
        // .. call the payment service here ..
        eprintln!(
            "{}",
            json!({ "lambda_idempotency_effect": "charge", "record": record.get("messageId") })
        );
    }
    Ok(json!({ "batchItemFailures": [] }))
}
