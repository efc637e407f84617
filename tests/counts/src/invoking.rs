//! A whole function, from an event of SQS to its response, over the store in memory, or over DynamoDB with the feature for
//! it: what is read of the event, keys, the engine, handlers that do nothing, and the lines and spans as `lambda_runtime`'s
//! subscriber writes them.

use std::convert::Infallible;
use std::sync::OnceLock;
use std::{fmt, io};

#[cfg(not(feature = "dynamodb"))]
use lambda_idempotency::MemoryStore;
use lambda_idempotency::{Call, Idempotency, Operation, source::Sqs};
#[cfg(feature = "dynamodb")]
use lambda_idempotency_dynamodb::DynamoDbStore;
use lambda_runtime::{Context, LambdaEvent, tracing};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower_service::Service;

use crate::cases::{Case, Work, runtime};
use crate::still::Still;
#[cfg(feature = "dynamodb")]
use crate::storing::{TABLE, client};

/// Who listens to what is logged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Log {
    /// Nobody.
    Unheard,
    /// A subscriber as `lambda_runtime::tracing::init_default_subscriber` makes it, whose lines go nowhere.
    Written,
}

#[derive(Deserialize)]
pub(crate) struct Order {
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
    let operation = Operation::new("place-order").key("orderId");
    let function = idempotency().on(Sqs::new(), &operation, place).expect("it can work as it is");
    // A function lives as long as its process, so its end is not counted.
    let (runtime, function) = (&*Box::leak(Box::new(runtime())), Box::leak(Box::new(function)));
    // The first request of a client resolves and caches what later ones use.
    invoke(runtime, function, &event(size, size));
    let event = event(0, size);
    let work = move || invoke(runtime, function, &event);
    match log {
        Log::Unheard => Box::new(work),
        Log::Written => Box::new(move || tracing::dispatcher::with_default(subscriber(), work)),
    }
}

/// Valgrind is slow: with a clock that goes on, handlers would seem to take long, and completions would be sent sooner.
pub(crate) fn idempotency() -> Idempotency {
    #[cfg(not(feature = "dynamodb"))]
    let store = MemoryStore::new();
    #[cfg(feature = "dynamodb")]
    let store = DynamoDbStore::new(client(), TABLE);
    Idempotency::new(store).with_clock(Still)
}

/// What the runtime does with an event, but for its connection.
pub(crate) fn invoke<S>(runtime: &Runtime, function: &mut S, event: &str)
where
    S: Service<LambdaEvent<Box<RawValue>>, Response = Box<RawValue>, Error: fmt::Debug>,
{
    let event = serde_json::from_str(event).expect("it is JSON");
    let response = runtime.block_on(function.call(LambdaEvent::new(event, context())));
    assert_eq!(response.expect("nothing fails").get(), r#"{"batchItemFailures":[]}"#);
}

pub(crate) async fn place(_: Order, _: Call) -> Result<(), Infallible> {
    Ok(())
}

fn subscriber() -> &'static tracing::Dispatch {
    static SUBSCRIBER: OnceLock<tracing::Dispatch> = OnceLock::new();
    SUBSCRIBER.get_or_init(|| {
        let lines =
            tracing::subscriber::fmt().with_target(false).without_time().with_env_filter("info");
        lines.with_writer(io::sink).into()
    })
}

pub(crate) fn context() -> Context {
    let mut context = Context::default();
    context.request_id = "8476a536-e9f4-11e8-9739-2dfe598c3fcd".to_owned();
    context
}

/// An event with so many messages.
pub(crate) fn event(first: usize, size: usize) -> String {
    let records: Vec<Value> = (first..first + size).map(message).collect();
    json!({ "Records": records }).to_string()
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
