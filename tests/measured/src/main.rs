//! The functions that the bench `beside` compares, in one binary, so that they start alike: the README's, and with
//! `BY_HAND` the same protection written by hand. Neither handler does anything.

use std::convert::Infallible;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{
    Client,
    error::DisplayErrorContext,
    types::{AttributeValue, ReturnValuesOnConditionCheckFailure::AllOld},
};
use futures_util::{StreamExt as _, future::ready, stream};
use lambda_idempotency::{Call, DynamoDbStore, Idempotency, Operation, source::Sqs};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::Deserialize;
use serde_json::{Value, json};

/// How many records the function by hand works on at once. Each request needs a connection, and Lambda allows a process
/// 1,024 open files.
const AT_ONCE: usize = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    if std::env::var_os("BY_HAND").is_some() { by_hand().await } else { protected().await }
}

async fn protected() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let place = Operation::new("place-order").key("orderId");
    idempotency.on(Sqs::new(), &place, nothing)?.serve().await
}

async fn nothing(_: Order, _: Call) -> Result<(), Infallible> {
    Ok(())
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "Records")]
    records: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    message_id: String,
    body: String,
}

/// For each record a conditional `PutItem`, the handler, and an `UpdateItem`.
async fn by_hand() -> Result<(), Error> {
    let client = &Client::new(&aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await);
    let table = &*std::env::var("IDEMPOTENCY_TABLE")?;
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Event>| {
        let deadline = event.context.deadline;
        let records = event.payload.records.into_iter().map(async |message| {
            let order: Order = serde_json::from_str(&message.body).ok()?;
            let done = once(client, table, &order.order_id, deadline).await;
            done.is_none().then(|| json!({ "itemIdentifier": message.message_id }))
        });
        let failures = stream::iter(records).buffer_unordered(AT_ONCE).filter_map(ready);
        let failures: Vec<Value> = failures.collect().await;
        Ok::<Value, Error>(json!({ "batchItemFailures": failures }))
    }))
    .await
}

/// Claims the order, does nothing, and completes it. `None` if a request failed.
async fn once(client: &Client, table: &str, order: &str, deadline: u64) -> Option<()> {
    let number = |value: u64| AttributeValue::N(value.to_string());
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let key = format!("hand#{order}");
    let now = millis();
    let claimed = client
        .put_item()
        .table_name(table)
        .item("id", text(&key))
        .item("status", text("INPROGRESS"))
        .item("expiration", number(now / 1000 + 86_400))
        .item("in_progress_expiration", number(deadline))
        .condition_expression(
            "attribute_not_exists(#id) OR #expiry < :seconds OR (#status = :busy AND #lease < :millis)",
        )
        .expression_attribute_names("#id", "id")
        .expression_attribute_names("#expiry", "expiration")
        .expression_attribute_names("#status", "status")
        .expression_attribute_names("#lease", "in_progress_expiration")
        .expression_attribute_values(":seconds", number(now / 1000))
        .expression_attribute_values(":busy", text("INPROGRESS"))
        .expression_attribute_values(":millis", number(now))
        .return_values_on_condition_check_failure(AllOld)
        .send()
        .await;
    if let Err(error) = claimed {
        let error = error.into_service_error();
        if error.is_conditional_check_failed_exception() {
            return Some(());
        }
        println!("{}", DisplayErrorContext(error));
        return None;
    }
    client
        .update_item()
        .table_name(table)
        .key("id", text(&key))
        .update_expression("SET #status = :done, #expiry = :expiry")
        .expression_attribute_names("#status", "status")
        .expression_attribute_names("#expiry", "expiration")
        .expression_attribute_values(":done", text("COMPLETED"))
        .expression_attribute_values(":expiry", number(now / 1000 + 86_400))
        .send()
        .await
        .inspect_err(|error| println!("{}", DisplayErrorContext(error)))
        .ok()
        .map(drop)
}

/// The time in milliseconds since the epoch.
#[allow(clippy::disallowed_methods, reason = "a function by hand reads the clock")]
fn millis() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}
