//! Places orders: the order, the completion of its key and its messages are stored in one DynamoDB transaction. Then the
//! messages are sent, and the order's delivery is acknowledged last.
//!
//! **In AWS**: set `IDEMPOTENCY_TABLE`, `ORDERS_TABLE` and `PARCELS_QUEUE_URL`, and allow the function
//! `dynamodb:UpdateItem` on the orders and `sqs:SendMessage` on the queue. `parcels.rs` receives the messages, and
//! `relay.rs` sends those that no delivery sends.

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use lambda_idempotency::{
    Call, CallExt as _, DynamoDbStore, Failure, Idempotency, Mode, Operation, outbox::Message,
    source::Sqs,
};
use lambda_runtime::{Error, tracing};
use senders::SqsSender;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Order {
    id: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let config = aws_config::load_defaults(aws_config::BehaviorVersion::v2026_01_12()).await;
    let store = DynamoDbStore::from_env().await?;
    let idempotency = Idempotency::new(store).with_sender(SqsSender::new(&config));
    let orders = Operation::new("place-order").key("id").mode(Mode::Transactional);
    lambda_runtime::run(idempotency.on(Sqs::new(), &orders, place)?).await
}

async fn place(order: Order, call: Call) -> Result<(), Failure> {
    let placed = Update::builder()
        .table_name(std::env::var("ORDERS_TABLE")?)
        .key("id", AttributeValue::S(order.id.clone()))
        .update_expression("ADD placed :one")
        .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
        .build()?;
    call.transact(TransactWriteItem::builder().update(placed).build())?;
    let queue = std::env::var("PARCELS_QUEUE_URL")?;
    for task in ["pack", "ship"] {
        let body = json!({ "order": order.id, "task": task }).to_string();
        call.publish(Message::new(queue.clone(), body).with_group(order.id.clone()))?;
    }
    Ok(())
}
