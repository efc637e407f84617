//! Idempotency as it is written by hand: for each record a conditional `PutItem`, the handler, and an
//! `UpdateItem`, for many records at once.

use std::sync::Arc;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{Client, error::DisplayErrorContext, types::AttributeValue};
use futures_util::{StreamExt as _, future::ready, stream};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};

use crate::{Order, SqsEvent, is_set, micros, variable};

/// How many records at once. Lambda allows a process 1,024 open files, and each request needs a connection.
const AT_ONCE: usize = 100;

pub(crate) async fn serve() -> Result<(), Error> {
    let table = &Table::from_env().await;
    lambda_runtime::run(service_fn(async |event: LambdaEvent<SqsEvent>| {
        let deadline = event.context.deadline;
        let records = event.payload.records.into_iter().map(async |record| {
            let order: Order = serde_json::from_str(&record.body).ok()?;
            let done = table.once(&order.order_id, deadline).await;
            done.is_none().then(|| json!({ "itemIdentifier": record.message_id }))
        });
        let failures = stream::iter(records).buffer_unordered(AT_ONCE).filter_map(ready);
        let failures: Vec<Value> = failures.collect().await;
        Ok::<Value, Error>(json!({ "batchItemFailures": failures }))
    }))
    .await
}

struct Table {
    client: Client,
    name: Arc<str>,
    stamp: bool,
}

impl Table {
    async fn from_env() -> Self {
        let config = aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await;
        let name = variable("IDEMPOTENCY_TABLE").into();
        Self { client: Client::new(&config), name, stamp: is_set("STAMP") }
    }

    /// Claims the order, does nothing, and completes it. `None` if a request failed or another worker has it.
    async fn once(&self, order: &str, deadline: u64) -> Option<()> {
        let key = format!("hand#{order}");
        let now = micros() / 1000;
        let claimed = self
            .client
            .put_item()
            .table_name(&*self.name)
            .item("id", AttributeValue::S(key.clone()))
            .item("status", AttributeValue::S("INPROGRESS".to_owned()))
            .item("expiration", AttributeValue::N((now / 1000 + 86_400).to_string()))
            .item("in_progress_expiration", AttributeValue::N(deadline.to_string()))
            .condition_expression(
                "attribute_not_exists(#id) OR #expiry < :seconds OR (#status = :busy AND #lease < :millis)",
            )
            .expression_attribute_names("#id", "id")
            .expression_attribute_names("#expiry", "expiration")
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#lease", "in_progress_expiration")
            .expression_attribute_values(":seconds", AttributeValue::N((now / 1000).to_string()))
            .expression_attribute_values(":busy", AttributeValue::S("INPROGRESS".to_owned()))
            .expression_attribute_values(":millis", AttributeValue::N(now.to_string()))
            .return_values_on_condition_check_failure(
                aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld,
            )
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
        let stamp = if self.stamp { micros() } else { 0 };
        self.client
            .update_item()
            .table_name(&*self.name)
            .key("id", AttributeValue::S(key))
            .update_expression("SET #status = :done, #expiry = :expiry, #data = :data")
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#expiry", "expiration")
            .expression_attribute_names("#data", "data")
            .expression_attribute_values(":done", AttributeValue::S("COMPLETED".to_owned()))
            .expression_attribute_values(
                ":expiry",
                AttributeValue::N((now / 1000 + 86_400).to_string()),
            )
            .expression_attribute_values(":data", AttributeValue::S(stamp.to_string()))
            .send()
            .await
            .inspect_err(|error| println!("{}", DisplayErrorContext(error)))
            .ok()
            .map(drop)
    }
}
