//! Sources whose event comes again as a whole: what was done of it is not done again.

use lambda_idempotency_local::InvocationResult;
use lambda_idempotency_tests::events::{
    active_mq, document_db, event, order, rabbit_mq, scheduled, stored,
};
use serde_json::{Value, json};

use super::{Effects, every_source, fails};
use crate::support::{World, outcomes};

#[tokio::test]
async fn a_notification_of_a_bucket_is_taken_once() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    for outcome in ["executed", "replayed"] {
        assert_eq!(outcomes(&world.send(&stored("o-1")).await), [outcome]);
    }
    assert_eq!(effects.placed(), ["o-1"]);
}

#[tokio::test]
async fn a_batch_of_documents_comes_again_as_a_whole_and_is_not_done_again() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let batch = document_db([("t-1", order("o-1")), ("t-2", fails("o-2", 1))]);
    let report = world.send(&batch).await;
    assert!(report.is_complete());
    assert_eq!(outcomes(&report), ["executed", "failed", "replayed", "executed"]);
    assert_eq!(effects.placed(), ["o-1", "o-2"]);
}

#[tokio::test]
async fn a_brokers_batch_comes_again_as_a_whole_and_is_not_done_again() {
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

/// A custom bus hands over several events, and tries them again together.
#[tokio::test]
async fn a_list_of_a_bus_comes_again_as_a_whole_and_is_not_done_again() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let list = json!([event("e-1", &order("o-1")), event("e-2", &fails("o-2", 1))]);
    let report = world.send(&list).await;
    assert!(report.is_complete());
    assert_eq!(outcomes(&report), ["executed", "failed", "replayed", "executed"]);
    assert_eq!(effects.placed(), ["o-1", "o-2"]);
}

#[tokio::test]
async fn an_occasion_of_a_schedule_is_taken_once_and_the_next_one_too() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let nightly = |day: &str| scheduled(&format!("2026-01-{day}T03:00:00Z"), &fails("o-1", 1));
    let report = world.send(&nightly("01")).await;
    assert_eq!(outcomes(&report), ["failed", "executed"], "Lambda tries again");
    for (day, expected) in [("01", vec!["replayed"]), ("02", vec!["failed", "executed"])] {
        assert_eq!(outcomes(&world.send(&nightly(day)).await), expected, "{day}");
    }
    assert_eq!(effects.placed(), ["o-1", "o-1"], "one of each night");
}

/// Lambda keeps the request id when it tries an asynchronous invocation again.
#[tokio::test]
async fn a_request_is_known_by_its_id() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let body = fails("o-1", 1).to_string();
    let mut results = Vec::new();
    for request in ["r-1", "r-1", "r-1", "r-2", "r-2"] {
        let invocation = world.invoke_bytes(request, body.clone()).await.unwrap();
        results.push(invocation.result == InvocationResult::Response(Value::Null));
    }
    assert_eq!(results, [false, true, true, false, true]);
    assert_eq!(effects.placed(), ["o-1", "o-1"], "one of each request");
}
