//! A function that is protected by hand: for each record a conditional `PutItem`, and an `UpdateItem`. What the same function
//! with this library takes is compared with it.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lambda_idempotency_core::clock::{Clock as _, SystemClock};
use serde::Deserialize;
use tokio::runtime::Runtime;

use crate::cases::{Case, Work, runtime};
use crate::invoking::event;
use crate::storing::{TABLE, client};

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "Records")]
    records: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    body: String,
}

#[derive(Deserialize)]
struct Order {
    #[serde(rename = "orderId")]
    id: String,
}

pub(crate) fn cases() -> impl Iterator<Item = Case> {
    [1, 10, 100]
        .into_iter()
        .map(|size| Case::new(format!("by hand: {size} new"), move || prepare(size)))
}

fn prepare(size: usize) -> Work {
    // A function lives as long as its process, so its end is not counted.
    let (runtime, client) = &*Box::leak(Box::new((runtime(), client())));
    // The first request of a client resolves and caches what later ones use.
    invoke(runtime, client, &event(size, size));
    let event = event(0, size);
    Box::new(move || invoke(runtime, client, &event))
}

fn invoke(runtime: &Runtime, client: &Client, event: &str) {
    let event: Event = serde_json::from_str(event).expect("it is an event");
    let once = |message: Message| async move {
        let order: Order = serde_json::from_str(&message.body).expect("it is an order");
        once(client, &order.id).await;
    };
    let all: FuturesUnordered<_> = event.records.into_iter().map(once).collect();
    runtime.block_on(all.collect::<Vec<()>>());
}

/// Claims the order, does nothing, and completes it.
async fn once(client: &Client, order: &str) {
    let number = |value: u64| AttributeValue::N(value.to_string());
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let key = format!("hand#{order}");
    let now = SystemClock.now().as_millis();
    client
        .put_item()
        .table_name(TABLE)
        .item("id", text(&key))
        .item("status", text("INPROGRESS"))
        .item("expiration", number(now / 1000 + 86_400))
        .item("in_progress_expiration", number(now + 30_000))
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
        .await
        .expect("it is answered");
    client
        .update_item()
        .table_name(TABLE)
        .key("id", text(&key))
        .update_expression("SET #status = :done, #expiry = :expiry")
        .expression_attribute_names("#status", "status")
        .expression_attribute_names("#expiry", "expiration")
        .expression_attribute_values(":done", text("COMPLETED"))
        .expression_attribute_values(":expiry", number(now / 1000 + 86_400))
        .send()
        .await
        .expect("it is answered");
}
