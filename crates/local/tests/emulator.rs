//! The embedded DynamoDB through its proxy, called as a process calls it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use lambda_idempotency_local::{Apply, DynamoDb, Fault, Gate, Proxy, Table};
use serde_json::{Value, json};

async fn database() -> (DynamoDb, Proxy) {
    let dynamodb = DynamoDb::start().await.unwrap();
    dynamodb.create_table(&Table::new("claims", "id").ttl("expiration")).unwrap();
    let proxy = dynamodb.proxy().await.unwrap();
    (dynamodb, proxy)
}

/// Sends one request on a new connection. Returns the status and the body, or `None` without a response.
async fn call(proxy: &Proxy, operation: &str, body: Value) -> Option<(u16, Value)> {
    let request = Request::post(proxy.url())
        .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
        .header("content-type", "application/x-amz-json-1.0")
        .header("x-amz-date", "20260101T000000Z")
        .header(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
        )
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let answer = client.request(request).await.ok()?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.ok()?.to_bytes();
    Some((status, serde_json::from_slice(&body).unwrap()))
}

fn claim(id: &str) -> Value {
    json!({
        "TableName": "claims",
        "Item": { "id": { "S": id } },
        "ConditionExpression": "attribute_not_exists(id)",
    })
}

fn insert(ids: &[&str]) -> Value {
    let statement = |id: &&str| json!({ "Statement": "INSERT INTO \"claims\" VALUE {'id': ?}", "Parameters": [{ "S": id }] });
    json!({ "Statements": ids.iter().map(statement).collect::<Vec<_>>() })
}

#[tokio::test]
async fn requests_and_units_are_counted_by_each_proxy() {
    let (dynamodb, proxy) = database().await;
    let other = dynamodb.proxy().await.unwrap();
    assert_eq!(call(&proxy, "PutItem", claim("a")).await.unwrap().0, 200);
    let before = proxy.usage();
    assert_eq!(call(&proxy, "PutItem", claim("a")).await.unwrap().0, 400);
    assert_eq!(
        call(&proxy, "BatchExecuteStatement", insert(&["a", "b", "c"])).await.unwrap().0,
        200
    );
    let get =
        json!({ "TableName": "claims", "Key": { "id": { "S": "a" } }, "ConsistentRead": true });
    assert_eq!(call(&other, "GetItem", get).await.unwrap().0, 200);

    let since = proxy.usage().since(&before);
    assert_eq!(
        (since.count("PutItem"), since.count("BatchExecuteStatement"), since.requests()),
        (1, 1, 2)
    );
    assert_eq!(since.refused_conditions, 2);
    assert_eq!((since.read_units, since.write_units), (0.0, 3.0));
    assert_eq!((other.usage().read_units, other.usage().requests()), (1.0, 1));
    let total = dynamodb.usage();
    assert_eq!((total.requests(), total.write_units), (4, 4.0));
    let actions: Vec<_> = total.actions.keys().map(String::as_str).collect();
    assert_eq!(actions, ["GetItem", "PartiQLInsert", "PutItem"]);
    assert_eq!(dynamodb.items("claims").unwrap().len(), 3);
}

#[tokio::test]
async fn faults_are_injected_before_or_after_the_write() {
    let (dynamodb, proxy) = database().await;
    let cases = [
        (Fault::internal_error(Apply::Before), Some(500), false),
        (Fault::internal_error(Apply::After), Some(500), true),
        (Fault::throttled(), Some(400), false),
        (Fault::unavailable(), Some(503), false),
        (Fault::hang_up(Apply::Before), None, false),
        (Fault::hang_up(Apply::After), None, true),
        (Fault::delay(Duration::from_millis(1)), Some(200), true),
    ];
    for (number, (fault, status, written)) in cases.into_iter().enumerate() {
        let id = number.to_string();
        let injected = dynamodb.faults().add(fault.clone().on("PutItem").table("claims").times(1));
        let answer = call(&proxy, "PutItem", claim(&id)).await;
        assert_eq!(answer.map(|(status, _)| status), status, "{fault:?}");
        let item = dynamodb.item("claims", &json!({ "id": { "S": id } })).unwrap();
        assert_eq!(item.is_some(), written, "{fault:?}");
        assert_eq!(dynamodb.faults().injected(injected), 1);
    }
}

#[tokio::test]
async fn members_of_a_batch_can_be_throttled() {
    let (dynamodb, proxy) = database().await;
    dynamodb.faults().add(Fault::throttle_members([0, 2]).times(1));
    let (_, answer) =
        call(&proxy, "BatchExecuteStatement", insert(&["a", "b", "c"])).await.unwrap();
    let codes: Vec<_> =
        (0..3).map(|member| answer["Responses"][member]["Error"]["Code"].as_str()).collect();
    assert_eq!(codes, [Some("ThrottlingError"), None, Some("ThrottlingError")]);
    assert_eq!(dynamodb.items("claims").unwrap(), [json!({ "id": { "S": "b" } })]);
}

#[tokio::test]
async fn a_gate_stops_a_request_at_an_exact_moment() {
    let (dynamodb, proxy) = database().await;
    let gate = Gate::new();
    dynamodb.faults().add(Fault::hold(Apply::After, &gate));
    let inspect = async {
        gate.reached().await;
        assert_eq!(dynamodb.items("claims").unwrap().len(), 1, "applied, and not yet answered");
        gate.open();
    };
    let (answer, ()) = tokio::join!(call(&proxy, "PutItem", claim("a")), inspect);
    assert_eq!(answer.unwrap().0, 200);
}

#[tokio::test]
async fn a_request_that_has_arrived_is_applied_after_its_sender_is_gone() {
    let (dynamodb, proxy) = database().await;
    let gate = Gate::new();
    dynamodb.faults().add(Fault::hold(Apply::Before, &gate));
    tokio::select! {
        _ = call(&proxy, "PutItem", claim("a")) => panic!("the gate is closed"),
        () = gate.reached() => {}
    }
    drop(proxy);
    gate.open();
    while dynamodb.items("claims").unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}
