//! Scheduler and direct invocations: the user chooses the format of the event. What callers get is in `answers.rs`.

use lambda_idempotency::{
    Operation,
    policy::OnMissingKey,
    source::{Invoke, Scheduler, Sqs},
};
use serde_json::{Value, json};

use crate::support::{World, batch, diagnostic, order, sample, serve};

fn scheduled(time: &str, attempt: &str) -> Value {
    json!({
        "scheduleArn": "arn:aws:scheduler:eu-west-1:111122223333:schedule/default/nightly",
        "scheduledTime": time, "executionId": format!("x-{attempt}"),
        "attempt": attempt, "id": "report",
    })
}

/// Scheduler leaves a keyword that it does not know as it is, at each occurrence: all would be one.
#[tokio::test]
async fn a_scheduled_time_that_is_no_time_is_no_identity() {
    let world = World::new();
    let function = world.on(Scheduler::new(), &Operation::new("a"));
    for text in ["<aws.scheduler.scheduled_time>", "nightly", "2026"] {
        let error = world.invoke(&function, &scheduled(text, "1")).await.unwrap_err();
        let (kind, text) = diagnostic(error);
        assert_eq!(kind, "Idempotency.RecordsReturned");
        assert!(text.contains("no valid `scheduledTime`"), "{text}");
    }
    assert_eq!(world.ledger.total(), 0);
    let keyed = Operation::new("b").key("attempt");
    let function = world.on(Scheduler::new(), &keyed);
    for attempt in ["1", "2"] {
        world.invoke(&function, &scheduled("nightly", attempt)).await.unwrap();
    }
    assert_eq!(world.ledger.total(), 2);
}

#[tokio::test]
async fn a_scheduled_event_names_its_schedule_and_its_time() {
    let world = World::new();
    let event = scheduled("2026-01-01T00:00:00Z", "1");
    let function = world.on(Scheduler::new(), &Operation::new("a"));
    assert_eq!(world.invoke(&function, &event).await.unwrap(), Value::Null);
    for (member, value) in [
        ("scheduleArn", json!("")),
        ("scheduleArn", json!("arn:aws:sqs:eu-west-1:1:orders")),
        ("scheduledTime", Value::Null),
        ("scheduledTime", json!("")),
    ] {
        let mut event = event.clone();
        event[member] = value;
        world.fails(&function, &event, "UnknownEvent").await;
    }
}
/// Lambda keeps the request id when it tries an asynchronous invocation again.
#[tokio::test]
async fn a_retry_of_a_direct_invocation_is_recognised_by_its_request_id() {
    let world = World::new();
    let function = world.on(Invoke::by_request_id(), &Operation::new("a"));
    let event = json!({ "id": "x" }).to_string();
    for (request, executed) in [("r-1", 1), ("r-1", 1), ("r-2", 2)] {
        let mut context = world.context();
        context.request_id = request.to_owned();
        world.clock.drive(serve(function.clone(), &event, context)).await.unwrap();
        assert_eq!(world.ledger.executed("x"), executed);
    }
    let mut without_id = world.context();
    without_id.request_id.clear();
    let refused = world.clock.drive(serve(function, &event, without_id)).await.unwrap_err();
    assert!(diagnostic(refused).1.contains("request id"));
}

#[tokio::test]
async fn a_direct_invocation_accepts_any_json() {
    let world = World::new();
    let by_all = Operation::new("a").key("@");
    let function = world.with_handler(Invoke::new(), &by_all, world.raw_handler());
    for event in [r#""text""#, "7", "[1,2]", r#"{"a":1}"#, "true"] {
        for _ in 0..2 {
            assert_eq!(world.invoke_raw(&function, event).await.unwrap(), Value::Null);
        }
        world.ledger.assert_once(event);
    }
}

/// A poller delivers a batch again in a new invocation, whose request id is another one.
#[tokio::test]
async fn a_batch_of_a_poller_is_no_direct_invocation() {
    let of = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for (source, event) in [
        ("sqs", batch([order("m-1", "a", "")])),
        ("kinesis", of(&sample("kinesisStreamEvent"))),
        ("dynamodb", of(&sample("dynamoStreamEvent"))),
        ("documentdb", of(&sample("own/documentDb"))),
        ("kafka", of(&sample("kafkaEventMsk"))),
        ("activemq", of(&sample("activeMQEvent"))),
        ("rabbitmq", of(&sample("rabbitMQEvent"))),
        ("pipe", json!([order("m-1", "a", "")])),
    ] {
        let world = World::new();
        let by_request_id = world.on(Invoke::by_request_id(), &Operation::new("a"));
        let keyed = Operation::new("b").key("@");
        let keyed = world.with_handler(Invoke::new(), &keyed, world.raw_handler());
        let lenient = Operation::new("c").on_missing_key(OnMissingKey::RunUnprotected);
        let lenient = world.on(Invoke::by_request_id(), &lenient);
        for function in [by_request_id, keyed, lenient] {
            let text = world.fails(&function, &event, "Rejected").await;
            assert!(text.contains(&format!("a batch from {source}")), "{text}");
        }
        assert_eq!(world.ledger.total(), 0, "{source}");
    }
    // These sources invoke asynchronously, as a caller with its own JSON does.
    for event in [
        of(&sample("snsEvent")),
        of(&sample("s3Event")),
        of(&sample("eventBridgeEvent")),
        scheduled("2026-01-01T00:00:00Z", "1"),
        json!([1, 2]),
        json!({ "records": [], "requestContext": {} }),
    ] {
        let world = World::new();
        let function =
            world.with_handler(Invoke::by_request_id(), &Operation::new("a"), world.raw_handler());
        for _ in 0..2 {
            assert_eq!(world.invoke(&function, &event).await.unwrap(), Value::Null, "{event}");
        }
        assert_eq!(world.ledger.total(), 1, "{event}");
    }
}

/// `.invoke(..)` takes the events that no other source takes, whatever its position.
#[tokio::test]
async fn a_direct_invocation_takes_only_events_of_no_other_source() {
    let world = World::new();
    let function = world
        .idempotency()
        .function()
        .on(Invoke::new(), &Operation::new("any").key("@"), world.raw_handler())
        .on(Sqs::new(), &Operation::new("place").key("id"), world.handler())
        .on(Scheduler::new(), &Operation::new("report"), world.handler())
        .build()
        .unwrap();
    let answer = world.invoke(&function, &batch([order("m-1", "a", "")])).await.unwrap();
    assert_eq!(answer, json!({ "batchItemFailures": [] }));
    world.invoke(&function, &scheduled("2026-01-01T00:00:00Z", "1")).await.unwrap();
    world.invoke_raw(&function, "[7]").await.unwrap();
    world.ledger.assert_each_once(["a", "report", "[7]"]);
}
