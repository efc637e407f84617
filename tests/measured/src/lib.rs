//! The events that are measured: batches of SQS and requests over HTTP, with bodies of about 500 bytes.

use serde_json::{Value, json};

/// A batch with a message for each of these orders.
#[must_use]
pub fn batch(orders: impl IntoIterator<Item = String>) -> Value {
    let records: Vec<Value> = orders.into_iter().map(|order| message(&order)).collect();
    json!({ "Records": records })
}

/// A request over HTTP API (payload 2.0) that places an order.
#[must_use]
pub fn request(order: &str) -> Value {
    json!({
        "version": "2.0",
        "routeKey": "POST /orders",
        "rawPath": "/orders",
        "rawQueryString": "",
        "headers": {
            "authorization": "Bearer abcdefghijklmnopqrstuvwxyz",
            "content-type": "application/json",
            "host": "api.example.com",
            "idempotency-key": order,
        },
        "requestContext": {
            "accountId": "111122223333",
            "apiId": "a1b2c3d4e5",
            "domainName": "api.example.com",
            "http": {
                "method": "POST", "path": "/orders", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "example",
            },
            "requestId": order,
            "routeKey": "POST /orders",
            "stage": "$default",
            "time": "25/Nov/2026:10:00:00 +0000",
            "timeEpoch": 1_795_600_800_000_u64,
        },
        "body": body(order).to_string(),
        "isBase64Encoded": false,
    })
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

fn message(order: &str) -> Value {
    json!({
        "messageId": format!("m-{order}"),
        "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
        "body": body(order).to_string(),
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
