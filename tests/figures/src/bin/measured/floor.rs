//! A function without idempotency: what an event costs before any record is protected.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

use crate::{Order, SqsEvent};

pub(crate) async fn serve() -> Result<(), Error> {
    lambda_runtime::run(service_fn(async |event: LambdaEvent<SqsEvent>| {
        for record in &event.payload.records {
            let _: Order = serde_json::from_str(&record.body)?;
        }
        Ok::<Value, Error>(json!({ "batchItemFailures": [] }))
    }))
    .await
}
