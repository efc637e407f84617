//! The orders function with orders that ask for faults: the same sources, variables, tables and
//! keys. For the chaos rig, and for tests that need a handler to fail, panic, die or run slowly.

mod scripted;

use std::time::Duration;

use lambda_idempotency::{
    Call, DynamoDbStore, Function, Operation,
    keys::record,
    recovery::Recovery,
    source::{EventBridge, Kinesis, Sns, Sqs},
};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

use crate::scripted::{Order, Shop};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let (shop, idempotency) = Shop::from_env().await?;
    let place = shop.operation(Operation::new("place-order"));
    // A claim keeps its record if the environment asks for it; without protection the key finds nothing.
    let is_set = |variable: &str| std::env::var(variable).is_ok_and(|value| value == "1");
    let most_bytes = is_set("SCRIPTED_RECOVERABLE").then_some(64 * 1024);
    let is_unprotected = is_set("SCRIPTED_UNPROTECTED");
    // An expression on the payload or, after `record:`, on the record around it.
    let key = |variable: &str| match std::env::var(variable) {
        _ if is_unprotected => "noRecordHasThis".to_owned(),
        Ok(expression) => expression,
        Err(_) => "orderId".to_owned(),
    };
    macro_rules! at {
        ($source:ty, $variable:expr) => {{
            let source = match key($variable).strip_prefix("record:") {
                Some(expression) => <$source>::new().key(record(expression)),
                None => <$source>::new().key(key($variable)),
            };
            match most_bytes {
                Some(most) => source.recoverable(most),
                None => source,
            }
        }};
    }
    let place_order = async move |order: Order, call: Call| shop.place(order, call).await;
    let function = idempotency
        .function()
        .on(
            (
                at!(Sqs, "ORDERS_SQS_KEY"),
                at!(Sns, "ORDERS_SNS_KEY"),
                at!(EventBridge, "ORDERS_EVENTBRIDGE_KEY"),
                at!(Kinesis, "ORDERS_KINESIS_KEY"),
            ),
            &place,
            place_order,
        )
        .build()?;
    if std::env::var_os("SCRIPTED_RECOVERY").is_some() {
        return recover(function).await;
    }
    lambda_runtime::run_concurrent(function).await
}

/// The function with the schedule: it takes no events, recovers at each invocation what is left in the table, and answers with what was done.
async fn recover(function: Function) -> Result<(), Error> {
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
