//! A handler that needs a client, as most do: a closure holds it. Here it puts each order into a DynamoDB table.
//!
//! The closure is cloned for each record, with all that it holds. Clients of the AWS SDK are cheap to clone; put
//! values that are not `Clone` into an `Arc`.
//!
//! **In AWS**: create both tables (`orders` has the partition key `orderId`), set `IDEMPOTENCY_TABLE`, and allow
//! `dynamodb:PutItem` on the orders.
//!
//! **Here**: the event has some of its orders twice. Each is put once.
//!
//! ```console
//! $ cargo run --bin lambda-idempotency -- invoke events/sqs-duplicates.json --example client
//! ```

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{Client, types::AttributeValue};
use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation, source::Sqs};
use lambda_runtime::{Error, tracing};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let client = Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await);
    let place = Operation::new("place-order").key("orderId");
    let handler = async move |order, call| place_order(&client, order, call).await;
    idempotency.on(Sqs::new(), &place, handler)?.serve().await
}

async fn place_order(client: &Client, order: Order, call: Call) -> Result<(), Failure> {
    client
        .put_item()
        .table_name("orders")
        .item("orderId", AttributeValue::S(order.order_id))
        .item("fence", AttributeValue::N(call.fence().to_string()))
        .send()
        .await?;
    Ok(())
}
