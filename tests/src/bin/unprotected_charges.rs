//! The function `charges` as it would be without the library: every delivery is a charge. It writes the lines about its
//! effects itself, as any program may. Tests of `chaos` need it: the audit has to report its doubled charges and, with
//! `CHARGES_REVERSED`, that it takes the records of a batch in the wrong order.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    lambda_runtime::run(service_fn(charge)).await
}

async fn charge(event: LambdaEvent<Value>) -> Result<Value, Error> {
    let mut records: Vec<&Value> =
        event.payload.get("Records").and_then(Value::as_array).into_iter().flatten().collect();
    if std::env::var_os("CHARGES_REVERSED").is_some() {
        records.reverse();
    }
    for record in records {
        // .. call the payment service here ..
        let id = record.get("messageId").or_else(|| record.pointer("/kinesis/sequenceNumber"));
        eprintln!("{}", json!({ "lambda_idempotency_effect": "charge", "record": id }));
    }
    Ok(json!({ "batchItemFailures": [] }))
}
