//! Sources that deliver a whole event again: records that were processed are replayed.

use lambda_idempotency_local::InvocationResult;
use lambda_idempotency_tests::events::{
    active_mq, document_db, event, from_broker_in_a_pipe, order, rabbit_mq, scheduled,
};
use serde_json::{Value, json};

use super::{Effects, every_source, fails};
use crate::support::{World, outcomes};

/// Those of brokers also through a pipe, which accepts no partial answer for them; a custom bus delivers several events in a
/// list.
#[tokio::test]
async fn a_batch_is_delivered_again_as_a_whole_and_processed_records_are_replayed() {
    let effects = Effects::new();
    let world = World::of(effects.of(every_source())).await;
    let pair = |first: usize| [order(&format!("o-{first}")), fails(&format!("o-{}", first + 1), 1)];
    let [(a, b), (c, d), (e, f), (g, h), (i, j)] = [1, 3, 5, 7, 9].map(|first| pair(first).into());
    for batch in [
        document_db([("t-1", a), ("t-2", b)]),
        active_mq([("ID:1", c), ("ID:2", d)]),
        rabbit_mq([("1", e), ("2", f)]),
        json!([event("e-1", &g), event("e-2", &h)]),
        from_broker_in_a_pipe(active_mq([("ID:3", i), ("ID:4", j)])),
    ] {
        let report = world.send(&batch).await;
        assert!(report.is_complete(), "{batch}");
        assert_eq!(outcomes(&report), ["executed", "failed", "replayed", "executed"], "{batch}");
    }
    assert!(effects.placed().into_iter().eq((1..=10).map(|number| format!("o-{number}"))));
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
