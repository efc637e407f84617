//! Sources that deliver a whole event again: records that were processed are replayed.

use lambda_idempotency_local::InvocationResult;
use lambda_idempotency_tests::events::{
    active_mq, document_db, event, order, rabbit_mq, scheduled, stored,
};
use serde_json::{Value, json};

use super::{Effects, every_source, fails};
use crate::support::{World, outcomes};

#[tokio::test]
async fn a_notification_of_a_bucket_is_processed_once() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    for outcome in ["executed", "replayed"] {
        assert_eq!(outcomes(&world.send(&stored("o-1")).await), [outcome]);
    }
    assert_eq!(effects.placed(), ["o-1"]);
}

#[tokio::test]
async fn a_batch_of_documents_is_delivered_again_and_processed_records_are_replayed() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let batch = document_db([("t-1", order("o-1")), ("t-2", fails("o-2", 1))]);
    let report = world.send(&batch).await;
    assert!(report.is_complete());
    assert_eq!(outcomes(&report), ["executed", "failed", "replayed", "executed"]);
    assert_eq!(effects.placed(), ["o-1", "o-2"]);
}

#[tokio::test]
async fn a_batch_of_a_broker_is_delivered_again_and_processed_records_are_replayed() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    for batch in [
        active_mq([("ID:1", order("o-1")), ("ID:2", fails("o-2", 1))]),
        rabbit_mq([("1", order("o-3")), ("2", fails("o-4", 1))]),
    ] {
        let report = world.send(&batch).await;
        assert!(report.is_complete());
        assert_eq!(outcomes(&report), ["executed", "failed", "replayed", "executed"]);
    }
    assert_eq!(effects.placed(), ["o-1", "o-2", "o-3", "o-4"]);
}

/// A custom bus delivers several events in a list, and delivers the whole list again.
#[tokio::test]
async fn a_list_of_a_bus_is_delivered_again_and_processed_events_are_replayed() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let list = json!([event("e-1", &order("o-1")), event("e-2", &fails("o-2", 1))]);
    let report = world.send(&list).await;
    assert!(report.is_complete());
    assert_eq!(outcomes(&report), ["executed", "failed", "replayed", "executed"]);
    assert_eq!(effects.placed(), ["o-1", "o-2"]);
}

#[tokio::test]
async fn each_occurrence_of_a_schedule_is_processed_once() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let nightly = |day: &str| scheduled(&format!("2026-01-{day}T03:00:00Z"), &fails("o-1", 1));
    let report = world.send(&nightly("01")).await;
    assert_eq!(outcomes(&report), ["failed", "executed"], "Lambda tries again");
    for (day, expected) in [("01", vec!["replayed"]), ("02", vec!["failed", "executed"])] {
        assert_eq!(outcomes(&world.send(&nightly(day)).await), expected, "{day}");
    }
    assert_eq!(effects.placed(), ["o-1", "o-1"], "one for each night");
}

/// Lambda keeps the request id when it tries an asynchronous invocation again.
#[tokio::test]
async fn an_invocation_is_recognised_by_its_request_id() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let body = fails("o-1", 1).to_string();
    let mut results = Vec::new();
    for request in ["r-1", "r-1", "r-1", "r-2", "r-2"] {
        let invocation = world.invoke_bytes(request, body.clone()).await.unwrap();
        results.push(invocation.result == InvocationResult::Response(Value::Null));
    }
    assert_eq!(results, [false, true, true, false, true]);
    assert_eq!(effects.placed(), ["o-1", "o-1"], "one for each request id");
}
