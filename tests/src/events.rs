//! Orders, and events that carry them.

use serde_json::{Value, json};

const QUEUE: &str = "arn:aws:sqs:eu-west-1:111122223333:orders";
const TOPIC: &str = "arn:aws:sns:eu-west-1:111122223333:orders";

/// An order for one thing.
#[must_use]
pub fn order(id: &str) -> Value {
    json!({ "orderId": id, "customer": "c-17", "sku": "mug-blue", "quantity": 1 })
}

/// An order with other or further members, such as `{"failTimes": 1}`.
#[must_use]
pub fn order_with(id: &str, members: Value) -> Value {
    let mut order = order(id);
    if let (Value::Object(order), Value::Object(members)) = (&mut order, members) {
        order.extend(members);
    }
    order
}

/// A message of the queue.
#[must_use]
pub fn message(id: &str, order: &Value) -> Value {
    message_of_text(id, &order.to_string())
}

/// A message of the queue, whatever its body.
#[must_use]
pub fn message_of_text(id: &str, body: &str) -> Value {
    json!({
        "messageId": id,
        "receiptHandle": "handle",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1795251600579",
            "SenderId": "AROAEXAMPLE",
            "ApproximateFirstReceiveTimestamp": "1795251600585",
        },
        "messageAttributes": {},
        "md5OfBody": "00000000000000000000000000000000",
        "eventSource": "aws:sqs",
        "eventSourceARN": QUEUE,
        "awsRegion": "eu-west-1",
    })
}

/// What the queue's poller hands over.
#[must_use]
pub fn batch(records: impl IntoIterator<Item = Value>) -> Value {
    json!({ "Records": records.into_iter().collect::<Vec<_>>() })
}

/// A batch with one message an order: message `m-x` for order `x`.
#[must_use]
pub fn batch_of(orders: impl IntoIterator<Item = Value>) -> Value {
    batch(orders.into_iter().map(|order| {
        let id = order.get("orderId").and_then(Value::as_str).unwrap_or("?").to_owned();
        message(&format!("m-{id}"), &order)
    }))
}

/// A notification of the topic.
#[must_use]
pub fn notification(id: &str, order: &Value) -> Value {
    json!({ "Records": [{
        "EventSource": "aws:sns",
        "EventVersion": "1.0",
        "EventSubscriptionArn": format!("{TOPIC}:412b940d"),
        "Sns": {
            "Type": "Notification",
            "MessageId": id,
            "TopicArn": TOPIC,
            "Subject": null,
            "Message": order.to_string(),
            "Timestamp": "2026-11-21T09:07:12.418Z",
            "SignatureVersion": "1",
            "Signature": "EXAMPLE",
            "MessageAttributes": {},
        },
    }] })
}

/// An event of the bus.
#[must_use]
pub fn event(id: &str, order: &Value) -> Value {
    json!({
        "version": "0",
        "id": id,
        "detail-type": "OrderPlaced",
        "source": "orders.example",
        "account": "111122223333",
        "time": "2026-11-21T09:07:12Z",
        "region": "eu-west-1",
        "resources": [],
        "detail": order,
    })
}
