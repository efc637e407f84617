//! Deliveries, up to the dead-letter queue.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::time::Duration;

use common::scripted;
use lambda_idempotency_local::{
    AsyncConfig, DeliveryReport, Disposition, FunctionConfig, Local, Outcome, RecordReport, Source,
    SqsConfig,
};
use serde_json::{Value, json};

async fn deliver(function: FunctionConfig, event: Value) -> DeliveryReport {
    let sqs = SqsConfig {
        visibility: Some(Duration::from_millis(20)),
        max_receive_count: 3,
        ..SqsConfig::default()
    };
    let asynchronous = AsyncConfig { retry_delays: vec![Duration::from_millis(5); 2] };
    let local = Local::builder(function).sqs(sqs).asynchronous(asynchronous).start().await.unwrap();
    let report = local.deliver(&event.to_string()).await.unwrap();
    local.shutdown().await;
    report
}

fn messages(steps: &[(&str, &str)]) -> Value {
    let record = |(id, step): &(&str, &str)| json!({ "messageId": id, "eventSource": "aws:sqs", "body": json!({ "do": step }).to_string() });
    json!({ "Records": steps.iter().map(record).collect::<Vec<_>>() })
}

fn history(report: &DeliveryReport) -> Vec<(&str, u32, &str, Disposition)> {
    fn row(record: &RecordReport) -> (&str, u32, &str, Disposition) {
        (
            record.record.as_deref().unwrap_or("-"),
            record.receive_count,
            record.outcome.as_str(),
            record.disposition,
        )
    }
    report.records().map(row).collect()
}

#[tokio::test]
async fn only_the_reported_message_is_delivered_again() {
    let report =
        deliver(scripted().await, messages(&[("good", "succeed"), ("bad", "report")])).await;
    assert_eq!(
        history(&report),
        [
            ("good", 1, "executed", Disposition::Done),
            ("bad", 1, "failed", Disposition::Returned),
            ("bad", 2, "failed", Disposition::Returned),
            ("bad", 3, "failed", Disposition::DeadLettered),
        ]
    );
    assert_eq!(report.dead_letters[0].record.as_deref(), Some("bad"));
    assert!(!report.is_complete());
}

#[tokio::test]
async fn an_unknown_identifier_fails_the_whole_batch() {
    let report = deliver(scripted().await, messages(&[("a", "succeed"), ("b", "garble")])).await;
    assert_eq!(report.dead_letters.len(), 2);
}

#[tokio::test]
async fn after_a_crash_or_a_timeout_the_batch_is_delivered_again() {
    for (step, outcome) in [("abort-once", Outcome::Crashed), ("sleep-once", Outcome::TimedOut)] {
        let mark =
            std::env::temp_dir().join(format!("lambda-idempotency-{step}-{}", std::process::id()));
        let function = scripted()
            .await
            .timeout(Duration::from_millis(1500))
            .env("MARK", mark.to_string_lossy());
        let report = deliver(function, messages(&[("a", step)])).await;
        let _ = std::fs::remove_file(&mark);
        assert!(report.is_complete(), "{step}");
        assert_eq!(report.count(&outcome), 1, "{step}: {:?}", history(&report));
    }
}

#[tokio::test]
async fn a_notification_is_tried_three_times() {
    let event = json!({ "Records": [{ "EventSource": "aws:sns",
        "Sns": { "MessageId": "n1", "Message": json!({ "do": "fail" }).to_string() } }] });
    let report = deliver(scripted().await, event).await;
    assert_eq!(
        history(&report),
        [
            ("n1", 1, "refused", Disposition::Returned),
            ("n1", 2, "refused", Disposition::Returned),
            ("n1", 3, "refused", Disposition::DeadLettered),
        ]
    );
    let ids: Vec<_> = report.invocations.iter().map(|one| &one.invocation.request_id).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "retries keep the request id");
}

#[tokio::test]
async fn a_successful_event_of_a_bus_is_done() {
    let event =
        json!({ "id": "e1", "detail-type": "t", "source": "s", "detail": { "do": "succeed" } });
    let report = deliver(scripted().await, event).await;
    assert_eq!(history(&report), [("e1", 1, "executed", Disposition::Done)]);
    assert_eq!(report.invocations[0].source, Source::EventBridge);
}

#[tokio::test]
async fn an_unknown_event_is_invoked_once() {
    let report = deliver(scripted().await, json!({ "do": "fail" })).await;
    assert_eq!(history(&report), [("-", 1, "refused", Disposition::Lost)]);
}

#[tokio::test]
async fn an_event_that_is_not_json_is_refused() {
    let local = Local::builder(FunctionConfig::new("unused")).start().await.unwrap();
    let error = local.deliver("{\"Records\": [}").await.unwrap_err();
    assert_eq!(error.to_string(), "event:1:14: not valid JSON: expected value");
}
