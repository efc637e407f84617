//! Events from SQS with bodies of about 500 bytes. Lambda hands over 6 MB at most: a batch of 10,000 fits only if its
//! bodies are short.

use serde_json::{Value, json};

/// An event that lists these orders.
pub(crate) fn orders(orders: impl IntoIterator<Item = String>) -> Value {
    let orders: Vec<Value> = orders.into_iter().map(|order| body(&order)).collect();
    json!({ "orders": orders })
}

/// A batch with a message for each of these orders.
pub(crate) fn batch(orders: impl IntoIterator<Item = String>) -> Value {
    let orders: Vec<String> = orders.into_iter().collect();
    let body = if orders.len() > 5_000 { short_body } else { body };
    let records: Vec<Value> = orders.iter().map(|order| message(order, &body(order))).collect();
    json!({ "Records": records })
}

fn short_body(order: &str) -> Value {
    json!({ "orderId": order })
}

fn body(order: &str) -> Value {
    let line = json!({ "sku": "mug-blue-0001", "quantity": 2, "price": "12.50", "gift": false });
    json!({
        "orderId": order,
        "customer": { "id": "c-0017", "name": "Ada Example", "email": "ada@example.com" },
        "address": { "street": "Example Street 1", "city": "Exampletown", "country": "IE" },
        "lines": vec![line; 4],
        "total": "100.00",
    })
}

fn message(order: &str, body: &Value) -> Value {
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
