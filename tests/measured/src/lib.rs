//! The events that are measured: batches of SQS with bodies of about 500 bytes.

use serde_json::{Value, json};

/// A batch with a message for each of these orders.
#[must_use]
pub fn batch(orders: impl IntoIterator<Item = String>) -> Value {
    let records: Vec<Value> = orders.into_iter().map(|order| message(&order)).collect();
    json!({ "Records": records })
}

fn message(order: &str) -> Value {
    let line = json!({ "sku": "mug-blue-0001", "quantity": 2, "price": "12.50", "gift": false });
    let body = json!({
        "orderId": order,
        "customer": { "id": "c-0017", "name": "Ada Example", "email": "ada@example.com" },
        "address": { "street": "Example Street 1", "city": "Exampletown", "country": "IE" },
        "lines": vec![line; 4],
        "total": "100.00",
    });
    json!({
        "messageId": format!("m-{order}"),
        "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
        "body": body.to_string(),
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1795251600579",
            "SenderId": "AROAEXAMPLE",
            "ApproximateFirstReceiveTimestamp": "1795251600585",
        },
        "messageAttributes": {},
        "md5OfBody": "00000000000000000000000000000000",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders",
        "awsRegion": "eu-west-1",
    })
}
