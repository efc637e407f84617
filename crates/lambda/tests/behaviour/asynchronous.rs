//! SNS and EventBridge: the invocation acknowledges all records, or fails with an error that names
//! those that are returned.

use lambda_idempotency::{
    Operation,
    source::{EventBridge, Sns},
};
use serde_json::{Value, json};

use crate::support::{World, bus_event, diagnostic, event_id, notification};

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
