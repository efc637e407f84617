//! A request through a function URL.

use serde_json::{Value, json};

use crate::event::Stamp;

pub(super) fn http(body: &str, stamp: &mut Stamp) -> Value {
    let host = "abcdefgh.lambda-url.eu-west-1.on.aws";
    json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/orders",
        "rawQueryString": "",
        "headers": {
            "authorization": "Bearer a-token-of-ann",
            "content-length": body.len().to_string(),
            "content-type": "application/json",
            "host": host,
            "idempotency-key": stamp.id(),
            "x-forwarded-for": "192.0.2.17",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        },
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "abcdefgh",
            "domainName": host,
            "domainPrefix": "abcdefgh",
            "http": {
                "method": "POST",
                "path": "/orders",
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.17",
                "userAgent": "example/1.0",
            },
            "requestId": stamp.id(),
            "routeKey": "$default",
            "stage": "$default",
            "time": stamp.time(),
            "timeEpoch": stamp.now_ms,
        },
        "body": body,
        "isBase64Encoded": false,
    })
}
