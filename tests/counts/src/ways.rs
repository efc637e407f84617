//! One new piece of work in the other ways in: `run`, HTTP, and messages of SQS in the modes with a transaction.

use std::convert::Infallible;

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use lambda_http::{Adapter, Request, request::LambdaRequest, service_fn};
use lambda_idempotency::http::Http;
use lambda_idempotency::{Call, CallExt as _, Failure, Mode, Operation, RunContext, source::Sqs};
use lambda_runtime::LambdaEvent;
use serde_json::{Value, json};
use tower_layer::Layer as _;
use tower_service::Service as _;

use crate::cases::{Case, Work, runtime};
use crate::invoking::{Order, context, event, idempotency, invoke};

pub(crate) fn cases() -> impl Iterator<Item = Case> {
    let transaction = |mode| move || in_a_transaction(mode);
    [
        Case::new("run: 1 new", run),
        Case::new("HTTP: 1 new", http),
        Case::new("transactional: 1 new", transaction(Mode::Transactional)),
        Case::new("optimistic: 1 new", transaction(Mode::Optimistic)),
    ]
    .into_iter()
}

fn run() -> Work {
    let operation = Operation::new("place-order").key("orderId");
    let (runtime, idempotency) = &*Box::leak(Box::new((runtime(), idempotency())));
    let run = move |n: u32| {
        let payload = json!({ "orderId": format!("o-2026-{n:06}"), "total": "100.00" });
        let function = async |_: Call| Ok::<_, Infallible>(());
        let running =
            idempotency.run(&operation, &payload, RunContext::without_deadline(), function);
        runtime.block_on(running).expect("nothing fails");
    };
    run(0);
    Box::new(move || run(1))
}

fn http() -> Work {
    let layer = idempotency().http(&Operation::new("charges"), Http::by_header());
    let layer = layer.expect("it can work as it is");
    let handler = service_fn(async |_: Request| Ok::<_, Infallible>("charged"));
    let (runtime, adapter) = (runtime(), Box::leak(Box::new(Adapter::from(layer.layer(handler)))));
    let mut invoke = move |n: u32| {
        let event = request(n).to_string();
        let request: LambdaRequest = serde_json::from_str(&event).expect("it is a request");
        let answer = runtime.block_on(adapter.call(LambdaEvent::new(request, context())));
        answer.expect("nothing fails");
    };
    invoke(0);
    Box::new(move || invoke(1))
}

/// A request to a function URL.
fn request(n: u32) -> Value {
    let host = "abcdefgh.lambda-url.eu-west-1.on.aws";
    json!({
        "body": r#"{"orderId":"o-4901","customer":"c-17","sku":"tea-assam-250","quantity":2}"#,
        "headers": {
            "authorization": "Bearer a-token-of-ann",
            "content-type": "application/json",
            "host": host,
            "idempotency-key": format!("d556bc9c-ad83-4b58-a910-bdd8fd{n:06}"),
        },
        "isBase64Encoded": false,
        "rawPath": "/orders",
        "rawQueryString": "",
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "abcdefgh",
            "domainName": host,
            "http": { "method": "POST", "path": "/orders", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.17" },
            "requestId": "eb6c235c-c4ec-432c-ac04-b32c8a5de75e",
            "routeKey": "$default",
            "stage": "$default",
            "timeEpoch": 1_795_337_261_790_u64,
        },
        "routeKey": "$default",
        "version": "2.0",
    })
}

/// The handler's effect is an update of another item.
fn in_a_transaction(mode: Mode) -> Work {
    let operation = Operation::new("place-order").key("orderId").mode(mode);
    let function = idempotency().on(Sqs::new(), &operation, add).expect("it can work as it is");
    let (runtime, function) = (&*Box::leak(Box::new(runtime())), Box::leak(Box::new(function)));
    invoke(runtime, function, &event(1, 1));
    let event = event(0, 1);
    Box::new(move || invoke(runtime, function, &event))
}

async fn add(_: Order, call: Call) -> Result<(), Failure> {
    let update = Update::builder()
        .table_name("accounts")
        .key("id", AttributeValue::S("account".to_owned()))
        .update_expression("ADD cents :cents")
        .expression_attribute_values(":cents", AttributeValue::N("1".to_owned()))
        .build()?;
    call.transact(TransactWriteItem::builder().update(update).build())?;
    Ok(())
}
