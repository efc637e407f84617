//! Receives what `orders.rs` publishes, and writes each task into the parcel of its order, in one DynamoDB transaction
//! with the completion of the message's key. The key is the id that the outbox gave the message, so copies are dropped.
//!
//! **In AWS**: set `IDEMPOTENCY_TABLE` and `PARCELS_TABLE`, and allow the function `dynamodb:UpdateItem` on the parcels.

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use lambda_idempotency::{
    Call, CallExt as _, DynamoDbStore, Failure, Idempotency, Mode, Operation, keys::record,
    source::Sqs,
};
use lambda_runtime::{Error, tracing};
use serde::Deserialize;

#[derive(Deserialize)]
struct Task {
    order: String,
    task: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let id = record(r#"messageAttributes."idempotency-key".stringValue"#);
    let tasks = Operation::new("do-task").mode(Mode::Transactional);
    lambda_runtime::run(idempotency.on(Sqs::new().key(id), &tasks, do_task)?).await
}

async fn do_task(Task { order, task }: Task, call: Call) -> Result<(), Failure> {
    let done = Update::builder()
        .table_name(std::env::var("PARCELS_TABLE")?)
        .key("id", AttributeValue::S(order))
        .update_expression("SET tasks = list_append(if_not_exists(tasks, :none), :task)")
        .expression_attribute_values(":none", AttributeValue::L(Vec::new()))
        .expression_attribute_values(":task", AttributeValue::L(vec![AttributeValue::S(task)]))
        .build()?;
    call.transact(TransactWriteItem::builder().update(done).build())?;
    Ok(())
}
