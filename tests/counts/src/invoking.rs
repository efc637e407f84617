//! A whole function, from an event of SQS to its response, over the store in memory: what is read of the event, keys, the
//! engine, handlers that do nothing, and the lines and spans as `lambda_runtime`'s subscriber writes them.

use std::convert::Infallible;
use std::io;
use std::sync::OnceLock;

use futures_util::FutureExt as _;
use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation, source::Sqs};
use lambda_runtime::{Context, LambdaEvent, tracing};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tower_service::Service as _;
use tracing::subscriber::fmt;

use crate::cases::{Case, Work};
use crate::still::Still;

/// Who listens to what is logged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Log {
    /// Nobody.
    Unheard,
    /// A subscriber as `lambda_runtime::tracing::init_default_subscriber` makes it, whose lines go nowhere.
    Written,
}

#[derive(Deserialize)]
struct Order {
    #[serde(rename = "orderId")]
    _id: String,
}

pub(crate) fn cases() -> impl Iterator<Item = Case> {
    let logs = [(Log::Unheard, ""), (Log::Written, ", logged")];
    logs.into_iter().flat_map(|(log, name)| {
        [1, 10, 100].map(|size| {
            Case::new(format!("function: {size} new{name}"), move || prepare(log, size))
        })
    })
}

fn prepare(log: Log, size: usize) -> Work {
    let idempotency = Idempotency::new(MemoryStore::new()).with_clock(Still);
    let operation = Operation::new("place-order").key("orderId");
    let mut function = idempotency.on(Sqs::new(), &operation, place).expect("it can work as it is");
    let event = LambdaEvent::new(event(size), context());
    let invoke = move || {
        let response = function.call(event).now_or_never().expect("nothing waits");
        let response = response.expect("nothing fails");
        assert_eq!(response.get(), r#"{"batchItemFailures":[]}"#);
    };
    match log {
        Log::Unheard => Box::new(invoke),
        Log::Written => Box::new(move || tracing::dispatcher::with_default(subscriber(), invoke)),
    }
}

async fn place(_: Order, _: Call) -> Result<(), Infallible> {
    Ok(())
}

fn subscriber() -> &'static tracing::Dispatch {
    static SUBSCRIBER: OnceLock<tracing::Dispatch> = OnceLock::new();
    SUBSCRIBER.get_or_init(|| {
        let lines = fmt().with_target(false).without_time().with_env_filter("info");
        lines.with_writer(io::sink).into()
    })
}

fn context() -> Context {
    let mut context = Context::default();
    context.request_id = "8476a536-e9f4-11e8-9739-2dfe598c3fcd".to_owned();
    context
}

fn event(size: usize) -> Box<RawValue> {
    let records: Vec<Value> = (0..size).map(message).collect();
    to_raw_value(&json!({ "Records": records })).expect("it is JSON")
}

fn message(n: usize) -> Value {
    let line = json!({ "sku": "mug-blue-0001", "quantity": 2, "price": "12.50", "gift": false });
    let body = json!({
        "orderId": format!("o-2026-{n:06}"),
        "customer": { "id": "c-0017", "name": "Ada Example", "email": "ada@example.com" },
        "lines": vec![line; 4],
        "total": "100.00",
    });
    json!({
        "messageId": format!("059f36b4-87a3-44ab-83d2-661975{n:06}"),
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
