//! The function with the schedule: it recovers what the scripted orders function has left.

use std::time::Duration;

use lambda_idempotency::{DynamoDbStore, Function, recovery::Recovery};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

/// Whether this process recovers records, instead of taking events.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os("SCRIPTED_RECOVERY").is_some()
}

/// Recovers at each invocation what is left in the table, and answers with what was done.
pub(crate) async fn run(function: Function) -> Result<(), Error> {
    let store = DynamoDbStore::from_env().await?;
    let recovery = &Recovery::new(store, function)?.with_min_age(Duration::ZERO);
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Value>| {
        let run = recovery.run(None, &event.context).await?;
        Ok::<_, Error>(json!({
            "examined": run.swept.examined,
            "recovered": run.recovered,
            "overtaken": run.overtaken,
            "isComplete": run.swept.is_complete,
        }))
    }))
    .await
}
