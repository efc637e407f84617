//! The library logs no part of a payload, a key or a handler's error, at any level.
//!
//! The tests use the most detailed level for this project's crates. The AWS SDK and the Lambda runtime
//! are left out: at `debug` and `trace` they log requests and payloads, so the template does not allow
//! these levels for them.

use lambda_idempotency_local::{Apply, Fault, FunctionConfig};
use lambda_idempotency_tests::{
    CLAIMS,
    events::{batch, batch_of, event, message, message_of_text, notification, order, order_with},
};
use serde_json::{Value, json};

use crate::support::{World, error, idle, orders, scripted_orders};

const SECRET: &str = "s3cr3t";

/// With the text format, the test gets every line as it was written; with JSON, record lines would be
/// parsed.
fn with_full_logs(function: FunctionConfig) -> FunctionConfig {
    function
        .env("RUST_LOG", "warn,orders_under_test=trace,scripted_orders=trace,idle=trace,lambda_idempotency=trace")
        .env("AWS_LAMBDA_LOG_FORMAT", "Text")
        .env("RUST_BACKTRACE", "0")
}

/// Fails if a line contains the secret, or if fewer than `records` lines are about records.
#[track_caller]
fn assert_silent(world: &World, records: usize) {
    let lines = world.lines();
    for line in &lines {
        assert!(!line.contains(SECRET), "{line}");
    }
    let said = ["record settled", "record returned", "record refused", "record declined"];
    let is_of_record = |line: &&String| said.iter().any(|said| line.contains(said));
    let count = lines.iter().filter(is_of_record).count();
    assert!(count >= records, "{count} record lines: is the log enabled?\n{}", lines.join("\n"));
}

fn secret(name: &str) -> String {
    format!("{SECRET}-{name}")
}

/// Orders that succeed, fail and cannot be read; each has a secret in every member.
fn events() -> Vec<Value> {
    let other = json!({ "customer": SECRET, "sku": SECRET });
    let with = |name: &str, members: Value| {
        let mut order = order_with(&secret(name), other.clone());
        order.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        order
    };
    let good = batch_of([with("a", json!({})), with("b", json!({ "failTimes": 1 }))]);
    let bad = batch([
        message("1", &with("c", json!({ "quantity": 0 }))),
        message("2", &with("d", json!({ "quantity": SECRET }))),
        message("3", &with("e", json!({ "orderId": { SECRET: SECRET } }))),
        message("4", &with("f", json!({ "orderId": null }))),
        message("5", &with("g", json!({ "panicTimes": 1 }))),
        message_of_text("6", SECRET),
        message_of_text("7", &format!("{{\"orderId\":\"{SECRET}")),
        message_of_text("8", &format!("[\"{SECRET}\"]")),
    ]);
    let mut without_id = message("9", &with("h", json!({})));
    without_id["messageId"] = Value::Null;
    vec![
        // Message ids are logged; those of `good` contain order ids, so they are replaced.
        renumbered(good),
        bad,
        batch([without_id]),
        notification("n-1", &with("i", json!({}))),
        notification("n-2", &json!(SECRET)),
        event("e-1", &with("j", json!({}))),
        event("e-2", &json!({ "orderId": [], SECRET: SECRET })),
        json!({ "command": SECRET }),
    ]
}

fn renumbered(mut event: Value) -> Value {
    for (at, record) in event["Records"].as_array_mut().unwrap().iter_mut().enumerate() {
        record["messageId"] = json!(format!("good-{at}"));
    }
    event
}

#[tokio::test]
async fn logs_and_errors_contain_nothing_of_an_order() {
    // With the scripted function, some orders fail and panic.
    for function in [orders(), scripted_orders()] {
        let world = World::of(with_full_logs(function)).await;
        for event in events() {
            for _ in 0..2 {
                for invocation in world.send(&event).await.invocations {
                    let result = &invocation.invocation.result;
                    let (kind, text) = match result.is_response() {
                        true => ("", ""),
                        false => error(result),
                    };
                    assert!(!kind.contains(SECRET) && !text.contains(SECRET), "{kind}: {text}");
                }
            }
        }
        assert_silent(&world, 40);
    }
}

/// The library logs only the type of a handler's error, because its message may quote the payload.
#[tokio::test]
async fn logs_do_not_contain_the_message_of_a_handlers_error() {
    let world = World::of(with_full_logs(idle())).await;
    let failing = order_with(&secret("a"), json!({ "error": format!("declined: {SECRET}") }));
    world.send(&batch([message("1", &failing), message("2", &order("o-1"))])).await;
    assert_silent(&world, 6);
    let count = world.lines().join("\n");
    assert!(count.contains("std::io::error::Error"), "{count}");
}

/// An environment variable enables error messages, as local runs do.
#[tokio::test]
async fn logs_contain_the_message_of_a_handlers_error_if_enabled() {
    let world = World::of(idle().env("IDEMPOTENCY_LOG_ERROR_MESSAGES", "1")).await;
    let failing = order_with(&secret("a"), json!({ "error": format!("declined: {SECRET}") }));
    let report = world.send(&batch([message("1", &failing)])).await;
    let count = report.records().next().and_then(|record| record.line.clone()).unwrap();
    assert_eq!(count.error_message, Some(format!("declined: {SECRET}")));
}

/// The library logs errors of the store, which contain nothing of the record.
#[tokio::test]
async fn logs_contain_nothing_that_a_failing_store_was_sent() {
    let faults = [
        Fault::internal_error(Apply::After),
        Fault::error(Apply::Before, 400, "ValidationException"),
        Fault::error(Apply::Before, 400, "ResourceNotFoundException"),
        Fault::hang_up(Apply::After),
        Fault::throttle_members([0, 1]),
    ];
    let world = World::of(with_full_logs(idle())).await;
    for (at, fault) in faults.into_iter().enumerate() {
        world.dynamodb().faults().add(fault.table(CLAIMS).times(2));
        let names = [secret(&format!("{at}-a")), secret(&format!("{at}-b"))];
        world.send(&renumbered(batch_of(names.iter().map(|name| order(name))))).await;
        world.send(&renumbered(batch_of([order(&secret(&format!("{at}-c")))]))).await;
    }
    assert_silent(&world, 15);
}
