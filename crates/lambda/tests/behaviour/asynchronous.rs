//! SNS and EventBridge: the invocation acknowledges all records, or fails with an error that names
//! those that are returned.

use std::time::Duration;

use lambda_idempotency::{
    OnConflict, Operation, record,
    source::{EventBridge, Sns},
};
use lambda_idempotency_core::clock::Clock as _;
use lambda_idempotency_testkit::crashing::drop_after;
use serde_json::{Value, json};

use crate::support::{World, bus_event, diagnostic, event_id, notification, sample, serve};

#[tokio::test]
async fn success_is_null() {
    let world = World::new();
    let idempotency = world.idempotency();
    let sns = idempotency.on(Sns::new(), &Operation::new("greet"), world.text_handler()).unwrap();
    for _ in 0..2 {
        assert_eq!(world.invoke_raw(&sns, &sample("snsEvent")).await.unwrap(), Value::Null);
    }
    world.ledger.assert_once("Hello from SNS!");
    let watch = Operation::new("watch").key("[instance_id, state]");
    let events = idempotency.on(EventBridge::new(), &watch, world.handler()).unwrap();
    for _ in 0..2 {
        let answer = world.invoke_raw(&events, &sample("eventBridgeEvent")).await;
        assert_eq!(answer.unwrap(), Value::Null);
    }
    world.ledger.assert_once("nobody");
}

#[tokio::test]
async fn the_error_names_source_record_and_cause() {
    let world = World::new();
    let idempotency = world.idempotency();
    let sns = idempotency.on(Sns::new(), &Operation::new("a").key("id"), world.handler()).unwrap();
    let bus = idempotency
        .on(EventBridge::new(), &Operation::new("b").key("id"), world.handler())
        .unwrap();
    let failing = json!({ "id": "x", "do": "fail" });
    let id = event_id("1");
    for (function, event, source) in [
        (&sns, notification("n-1", &failing.to_string()), "sns record n-1"),
        (&bus, bus_event(&id, "Placed", &failing), &*format!("eventbridge record {id}")),
    ] {
        let (kind, text) = diagnostic(world.invoke(function, &event).await.unwrap_err());
        assert_eq!(kind, "Idempotency.RecordsReturned");
        assert!(text.contains("1 of 1") && text.contains(source), "{text}");
        assert!(text.contains("failed with a message") && text.contains("failure 1"), "{text}");
        assert!(!text.contains("no luck"), "a handler's message may quote the payload: {text}");
    }
    for (function, event) in [
        (&sns, notification(&id, "{}")),
        (&sns, notification(&id, "not JSON")),
        (&bus, bus_event(&id, "Placed", &json!({}))),
        (&bus, bus_event(&id, "Placed", &Value::Null)),
    ] {
        let (kind, text) = diagnostic(world.invoke(function, &event).await.unwrap_err());
        assert_eq!(kind, "Idempotency.RecordsReturned");
        assert!(text.contains(&format!("record {id}: ")), "{text}");
    }
    assert_eq!(world.ledger.total(), 0);
}

#[tokio::test]
async fn the_error_names_only_the_first_records() {
    let world = World::new();
    let sns = world.on(Sns::new(), &Operation::new("a").key("id"));
    let records: Vec<Value> =
        (0..9).map(|n| notification(&format!("n-{n}"), "{}")["Records"][0].clone()).collect();
    let event = json!({ "Records": records });
    let (_, text) = diagnostic(world.invoke(&sns, &event).await.unwrap_err());
    assert!(text.contains("9 of 9") && text.contains("n-2") && text.ends_with("; ..."), "{text}");
    assert!(!text.contains("n-3"), "{text}");
}

#[tokio::test]
async fn without_an_expression_the_identity_is_the_key() {
    let world = World::new();
    let idempotency = world.idempotency();
    let sns = idempotency.on(Sns::new(), &Operation::new("a"), world.handler()).unwrap();
    let bus = idempotency.on(EventBridge::new(), &Operation::new("b"), world.handler()).unwrap();
    let payload = json!({ "id": "same" });
    for id in ["1", "2", "2", "1"] {
        world.invoke(&sns, &notification(id, &payload.to_string())).await.unwrap();
    }
    assert_eq!(world.ledger.executed("same"), 2);
    for id in ["1", "2", "2", "1"] {
        world.invoke(&bus, &bus_event(id, "Placed", &payload)).await.unwrap();
    }
    assert_eq!(world.ledger.executed("same"), 4);
}

#[tokio::test]
async fn a_record_without_an_identity_is_refused() {
    let world = World::new();
    let idempotency = world.idempotency();
    let sns = idempotency.on(Sns::new(), &Operation::new("a"), world.handler()).unwrap();
    let bus = idempotency.on(EventBridge::new(), &Operation::new("b"), world.handler()).unwrap();
    let mut without_id = bus_event("", "Placed", &json!({ "id": "a" }));
    for (function, event) in
        [(&sns, notification("", r#"{"id":"a"}"#)), (&bus, without_id.clone()), {
            without_id.as_object_mut().unwrap().remove("id");
            (&bus, without_id)
        }]
    {
        let (kind, text) = diagnostic(world.invoke(function, &event).await.unwrap_err());
        assert_eq!(kind, "Idempotency.RecordsReturned", "{text}");
    }
    assert_eq!(world.ledger.total(), 0);
}

#[tokio::test]
async fn a_key_expression_replaces_the_identity() {
    let world = World::new();
    let idempotency = world.idempotency();
    let sns = idempotency.on(Sns::new(), &Operation::new("a").key("id"), world.handler()).unwrap();
    let bus = idempotency
        .on(EventBridge::new(), &Operation::new("b").key("id"), world.handler())
        .unwrap();
    for message in ["1", "2"] {
        world.invoke(&sns, &notification(message, r#"{"id":"x"}"#)).await.unwrap();
        world.invoke(&bus, &bus_event(message, "Placed", &json!({ "id": "y" }))).await.unwrap();
    }
    world.ledger.assert_each_once(["x", "y"]);
}

#[tokio::test]
async fn a_key_expression_can_read_the_record_around_the_payload() {
    let world = World::new();
    let idempotency = world.idempotency();
    let by_message = Sns::new().key(record("Sns.MessageId"));
    let sns = idempotency.on(by_message, &Operation::new("a"), world.text_handler()).unwrap();
    for (id, message) in [("1", "first"), ("1", "again"), ("2", "second")] {
        world.invoke(&sns, &notification(id, message)).await.unwrap();
    }
    world.ledger.assert_each_once(["first", "second"]);
    let by_both = EventBridge::new().key(record("[source, detail.id]"));
    let bus = idempotency.on(by_both, &Operation::new("b"), world.handler()).unwrap();
    for id in ["1", "2"] {
        world.invoke(&bus, &bus_event(id, "Placed", &json!({ "id": "x" }))).await.unwrap();
    }
    world.ledger.assert_once("x");
}

#[tokio::test]
async fn an_event_replayed_from_an_archive_is_recognised_by_its_id() {
    let world = World::new();
    let bus = world.on(EventBridge::new(), &Operation::new("watch"));
    let mut event: Value = serde_json::from_str(&sample("eventBridgeEvent")).unwrap();
    let replay = event.clone();
    event.as_object_mut().unwrap().remove("replay-name");
    world.invoke(&bus, &event).await.unwrap();
    world.clock.advance(Duration::from_hours(23));
    world.invoke(&bus, &replay).await.unwrap();
    assert_eq!(world.ledger.total(), 1);
}

/// Both retries of an asynchronous invocation may come while a killed attempt's lease holds the key.
#[tokio::test]
async fn a_record_with_a_busy_key_waits_for_the_end_of_the_lease_by_default() {
    for (conflict, waits) in [(None, true), (Some(OnConflict::Return), false)] {
        let world = World::instant();
        let mut operation = Operation::new("a").key("id");
        if let Some(conflict) = conflict {
            operation = operation.on_conflict(conflict);
        }
        let sns = world.on(Sns::new(), &operation);
        let killed = notification("n-1", r#"{"id":"x","do":"sleep"}"#).to_string();
        let killed = drop_after(1, serve(sns.clone(), &killed, world.context())).await;
        assert!(killed.is_none());
        world.clock.advance(Duration::from_secs(15));
        let before = world.clock.now();
        let answer = world.invoke(&sns, &notification("n-1", r#"{"id":"x"}"#)).await;
        assert_eq!(answer.is_ok(), waits);
        assert_eq!(world.ledger.executed("x"), usize::from(waits));
        assert_eq!(world.clock.now() > before.plus(Duration::from_secs(15)), waits);
        if let Err(error) = answer {
            let text = diagnostic(error).1;
            assert!(text.contains("another worker"), "{text}");
        }
    }
}
