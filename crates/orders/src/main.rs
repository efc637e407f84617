//! Places each order once, no matter how often it is delivered, and whether it comes from a queue,
//! a topic, an event bus, a stream, or several of them. `template.yaml` deploys this function.
//!
//! Placing an order adds one to the attribute `placed` of the order's item in a second table, so an
//! order that was placed twice is visible there.

use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{Client, types::AttributeValue};
use lambda_idempotency::{
    Call, Failure, Idempotency, Operation,
    source::{EventBridge, Kinesis, Sns, Sqs},
};
use lambda_runtime::{Error, tracing};
use serde::Deserialize;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    // The library logs what fails, and each batch. That needs a subscriber.
    tracing::init_default_subscriber();
    let orders = Orders::from_env().await?;
    let idempotency = Idempotency::from_env().await?; // IDEMPOTENCY_STORE or IDEMPOTENCY_TABLE

    // One operation for all sources: an order that is queued and also published is placed once.
    // A message can be delivered for as long: 4 days in the queue and, if it is moved back, 14 in its dead-letter queue.
    let retention = Duration::from_hours(24 * 18);
    let place = Operation::new("place-order").retention(retention);
    let place_order = async move |order, call| orders.place(order, call).await;
    let sources = (
        Sqs::new().key(key("ORDERS_SQS_KEY")),
        Sns::new().key(key("ORDERS_SNS_KEY")),
        EventBridge::new().key(key("ORDERS_EVENTBRIDGE_KEY")),
        Kinesis::new().key(key("ORDERS_KINESIS_KEY")),
    );
    let function = idempotency.on(sources, &place, place_order)?;

    // One invocation at a time, or several at once on Lambda Managed Instances.
    lambda_runtime::run_concurrent(function).await
}

/// The expression of the order id in the payloads of a source, from the source's variable.
fn key(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| "orderId".to_owned())
}

/// An order: the payload of every record.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
    customer: String,
    sku: String,
    quantity: u32,
}

/// The table in which orders are placed.
#[derive(Clone)]
struct Orders {
    client: Client,
    table: String,
}

impl Orders {
    /// Takes the table's name from `ORDERS_TABLE`, and credentials and region from the environment.
    async fn from_env() -> Result<Self, Error> {
        let table = std::env::var("ORDERS_TABLE").unwrap_or_default();
        if table.is_empty() {
            return Err("set ORDERS_TABLE to the name of the orders table".into());
        }
        let config = aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await;
        Ok(Self { client: Client::new(&config), table })
    }

    /// The handler: runs once per order id, and again only after a failure.
    async fn place(&self, order: Order, call: Call) -> Result<(), Failure> {
        if order.quantity == 0 {
            // A retry would not help. The failure is recorded, and duplicates get it as their
            // answer.
            return Err(Failure::permanent("an order needs a quantity of at least 1"));
        }
        if call.lost_attempts() > 0 {
            // An earlier attempt was lost, perhaps after its effect. If an effect must not happen
            // twice, check here whether it happened. This handler repeats it, which `placed` then
            // shows.
            tracing::warn!("an earlier attempt may have placed this order");
        }
        // An error here releases the key, and the record's next delivery calls the handler again.
        self.client
            .update_item()
            .table_name(&self.table)
            .key("orderId", AttributeValue::S(order.order_id))
            .update_expression(
                "SET customer = :customer, sku = :sku, quantity = :quantity ADD placed :one",
            )
            .expression_attribute_values(":customer", AttributeValue::S(order.customer))
            .expression_attribute_values(":sku", AttributeValue::S(order.sku))
            .expression_attribute_values(":quantity", AttributeValue::N(order.quantity.to_string()))
            .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
            .send()
            .await
            .map_err(aws_sdk_dynamodb::Error::from)?;
        Ok(())
    }
}
