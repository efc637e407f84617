//! HTTP clients, which send their requests again.

use std::time::Duration;

use lambda_idempotency_local::{DeliveryReport, FunctionConfig, InvocationResult};
use lambda_idempotency_tests::{
    events::{order, order_with, request},
    function,
};
use serde_json::json;

use super::{AFTER_THE_LEASE, Effects, TIMEOUT};
use crate::support::World;

fn http() -> FunctionConfig {
    function(env!("CARGO_BIN_EXE_http_orders"))
}

/// The statuses that the client got.
fn statuses(report: &DeliveryReport) -> Vec<Option<u64>> {
    let status = |result: &InvocationResult| match result {
        InvocationResult::Response(response) => response["statusCode"].as_u64(),
        _ => None,
    };
    report.invocations.iter().map(|invocation| status(&invocation.invocation.result)).collect()
}

#[tokio::test]
async fn a_client_that_sends_its_request_again_gets_the_same_response() {
    let effects = Effects::new();
    let world = World::of(effects.of(http())).await;
    let sent = request(Some("\"k-1\""), &order("o-1"));
    for replayed in [false, true] {
        let report = world.send(&sent).await;
        assert_eq!(statuses(&report), [Some(201)]);
        let InvocationResult::Response(response) = &report.invocations[0].invocation.result else {
            panic!("no response")
        };
        assert_eq!(response["headers"]["location"], "/orders/o-1");
        assert_eq!(response["headers"].get("idempotency-replayed").is_some(), replayed);
    }
    let other = world.send(&request(Some("k-1"), &order("o-2"))).await;
    assert_eq!(statuses(&other), [Some(422)]);
    assert_eq!(statuses(&world.send(&request(None, &order("o-3"))).await), [Some(400)]);
    assert_eq!(effects.placed(), ["o-1"]);
}

#[tokio::test]
async fn a_client_whose_function_died_gets_a_409_until_the_lease_ends() {
    let effects = Effects::new();
    let client = vec![Duration::from_millis(10), AFTER_THE_LEASE];
    let function = effects.of(http()).timeout(TIMEOUT);
    let world = World::with(function, |local| local.http_retry_delays(client)).await;
    let dies = order_with("o-1", json!({ "dieTimes": 1 }));
    let report = world.send(&request(Some("k-1"), &dies)).await;
    assert_eq!(statuses(&report), [None, Some(409), Some(201)]);
    assert_eq!(effects.placed(), ["o-1"]);
}
