//! The functions that the bench `beside` compares, in one binary, so that they start alike. `WORK` says which one: the
//! README's, one over HTTP, or one whose effect is committed with its completion. With `BY_HAND` the same protection is
//! written by hand. The handlers do nothing else.

use std::convert::Infallible;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{
    Client,
    error::DisplayErrorContext,
    types::{
        AttributeValue, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem, Update,
    },
};
use futures_util::{StreamExt as _, future::ready, stream};
use lambda_http::{Body, Request, Response, tower::ServiceBuilder};
use lambda_idempotency::{
    Call, CallExt as _, DynamoDbStore, Failure, Idempotency, Mode, Operation, http::Http,
    source::Sqs,
};
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
    lambda_runtime::tracing::init_default_subscriber(); // both have logs
    let is_by_hand = std::env::var_os("BY_HAND").is_some();
    let work = std::env::var("WORK")?;
    match (&*work, is_by_hand) {
        ("queue" | "transaction", false) => protected(work == "transaction").await,
        ("queue" | "transaction", true) => by_hand(work == "transaction").await,
        ("http", false) => protected_http().await,
        ("http", true) => by_hand_http().await,
        _ => Err(format!("there is no work `{work}`").into()),
    }
}

async fn protected(is_transaction: bool) -> Result<(), Error> {
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let place = Operation::new("place-order").key("orderId");
    if is_transaction {
        let place = place.mode(Mode::Transactional);
        return idempotency.on(Sqs::new(), &place, commit)?.serve().await;
    }
    idempotency.on(Sqs::new(), &place, nothing)?.serve().await
}

async fn nothing(_: Order, _: Call) -> Result<(), Infallible> {
    Ok(())
}

async fn commit(order: Order, call: Call) -> Result<(), Failure> {
    call.transact(TransactWriteItem::builder().update(effect(&order.order_id)?).build())?;
    Ok(())
}

/// An order's effect, in an item of its own.
fn effect(order: &str) -> Result<Update, aws_sdk_dynamodb::error::BuildError> {
    Update::builder()
        .table_name("effects")
        .key("id", AttributeValue::S(order.to_owned()))
        .update_expression("ADD placed :one")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .build()
}

async fn protected_http() -> Result<(), Error> {
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let layer = idempotency.http(&Operation::new("orders"), Http::by_header())?;
    let created = service_fn(async |_: Request| Ok::<_, Infallible>(created()));
    lambda_http::run(ServiceBuilder::new().layer(layer).service(created)).await
}

fn created() -> Response<Body> {
    let mut response = Response::new(Body::from(CREATED));
    *response.status_mut() = lambda_http::http::StatusCode::CREATED;
    response
}

const CREATED: &str = r#"{"placed":true}"#;

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

/// For each record a conditional `PutItem`, the handler, and an `UpdateItem`, or a transaction of both updates.
async fn by_hand(is_transaction: bool) -> Result<(), Error> {
    let table = &*std::env::var("IDEMPOTENCY_TABLE")?;
    let table = &ByHand::new(table).await;
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Event>| {
        let deadline = event.context.deadline;
        let records = event.payload.records.into_iter().map(async |message| {
            let order: Order = serde_json::from_str(&message.body).ok()?;
            let done = table.once(&order.order_id, deadline, is_transaction).await;
            done.is_none().then(|| json!({ "itemIdentifier": message.message_id }))
        });
        let failures = stream::iter(records).buffer_unordered(AT_ONCE).filter_map(ready);
        let failures: Vec<Value> = failures.collect().await;
        Ok::<Value, Error>(json!({ "batchItemFailures": failures }))
    }))
    .await
}

/// The same for a request: the answer is kept. A request that came before would get it.
async fn by_hand_http() -> Result<(), Error> {
    let table = &*std::env::var("IDEMPOTENCY_TABLE")?;
    let table = &ByHand::new(table).await;
    lambda_http::run(service_fn(async |request: Request| {
        let key = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok());
        let done = table.once(key.ok_or("no key")?, millis() + 60_000, false).await;
        done.map(|()| created()).ok_or(Error::from("the table did not answer"))
    }))
    .await
}

/// A table that is written to by hand.
struct ByHand<'a> {
    client: Client,
    table: &'a str,
}

impl<'a> ByHand<'a> {
    async fn new(table: &'a str) -> Self {
        let config = aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await;
        Self { client: Client::new(&config), table }
    }

    /// Claims the order, does nothing, and completes it. `None` if a request failed.
    async fn once(&self, order: &str, deadline: u64, is_transaction: bool) -> Option<()> {
        let key = format!("hand#{order}");
        let now = millis();
        let claimed = self
            .client
            .put_item()
            .table_name(self.table)
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
        let completed = Update::builder()
            .table_name(self.table)
            .key("id", text(&key))
            .update_expression("SET #status = :done, #expiry = :expiry, #data = :data")
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#expiry", "expiration")
            .expression_attribute_names("#data", "data")
            .expression_attribute_values(":done", text("COMPLETED"))
            .expression_attribute_values(":expiry", number(now / 1000 + 86_400))
            .expression_attribute_values(":data", text(CREATED))
            .build()
            .ok()?;
        if is_transaction {
            let item = |update| TransactWriteItem::builder().update(update).build();
            let request = self.client.transact_write_items().transact_items(item(completed));
            let sent = request.transact_items(item(effect(order).ok()?)).send().await;
            return sent
                .inspect_err(|error| println!("{}", DisplayErrorContext(error)))
                .ok()
                .map(drop);
        }
        self.client
            .update_item()
            .table_name(completed.table_name())
            .set_key(Some(completed.key().clone()))
            .update_expression(completed.update_expression())
            .set_expression_attribute_names(completed.expression_attribute_names().cloned())
            .set_expression_attribute_values(completed.expression_attribute_values().cloned())
            .send()
            .await
            .inspect_err(|error| println!("{}", DisplayErrorContext(error)))
            .ok()
            .map(drop)
    }
}

fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

/// The time in milliseconds since the epoch.
#[allow(clippy::disallowed_methods, reason = "a function by hand reads the clock")]
fn millis() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}
