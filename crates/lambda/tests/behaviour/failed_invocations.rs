//! Where the source takes no names of records, the invocation fails with an error that names those that are returned, and why.

use lambda_idempotency::{
    Operation,
    policy::OnMissingKey,
    source::{ActiveMq, EventBridge, RabbitMq, Sns},
};
use serde_json::{Value, json};

use crate::{
    support::{World, bus_event, diagnostic, event_id, notification},
    support_streams::{active_mq, base64, of_active_mq, of_rabbit_mq, rabbit_mq},
};

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
        let text = world.fails(function, &event, "RecordsReturned").await;
        assert!(text.contains("1 of 1") && text.contains(source), "{text}");
        assert!(text.contains("failed with a text") && text.contains("failure 1"), "{text}");
        assert!(!text.contains("no luck"), "a handler's message may quote the payload: {text}");
    }
    for (function, event) in [
        (&sns, notification(&id, "{}")),
        (&sns, notification(&id, "not JSON")),
        (&bus, bus_event(&id, "Placed", &json!({}))),
        (&bus, bus_event(&id, "Placed", &Value::Null)),
    ] {
        let text = world.fails(function, &event, "RecordsReturned").await;
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
async fn bad_messages_fail_with_the_cause_in_the_error() {
    let world = World::new();
    let from_active = world.on(ActiveMq::new(), &Operation::new("a"));
    let from_rabbit = world.on(RabbitMq::new(), &Operation::new("b"));
    for (data, expected) in [
        (json!(base64([0xff])), "whole_record"),
        (json!("not base64!"), "whole_record"),
        (json!(null), "the record has no valid `data`"),
        (json!(7), "the record has no valid `data`"),
    ] {
        let (mut active, mut rabbit) = (of_active_mq("1", ""), of_rabbit_mq("1", ""));
        active["data"] = data.clone();
        rabbit["data"] = data;
        for (function, event) in
            [(&from_active, active_mq([active])), (&from_rabbit, rabbit_mq([rabbit]))]
        {
            let (_, text) = diagnostic(world.invoke(function, &event).await.unwrap_err());
            assert!(text.contains(expected), "{text}");
        }
    }
    let mut odd = rabbit_mq([]);
    odd["rmqMessagesByQueue"]["orders::/"] = "not a list".into();
    assert!(world.invoke(&from_rabbit, &odd).await.is_err());
    assert_eq!(world.ledger.total(), 0);
    for (function, event) in [(&from_active, active_mq([])), (&from_rabbit, rabbit_mq([]))] {
        assert_eq!(world.invoke(function, &event).await.unwrap(), Value::Null);
    }
}

/// RabbitMQ sets no id by itself. The payload cannot replace it: two orders may be equal.
#[tokio::test]
async fn a_message_without_an_id_runs_unprotected_only_if_the_operation_says_so() {
    let world = World::new();
    let event = rabbit_mq([of_rabbit_mq(Value::Null, r#"{"id":"x"}"#)]);
    let refuses = world.on(RabbitMq::new(), &Operation::new("a"));
    let (_, text) = diagnostic(world.invoke(&refuses, &event).await.unwrap_err());
    assert!(text.contains("basicProperties.messageId") && text.contains(".key("), "{text}");
    assert_eq!(world.ledger.total(), 0);
    let unprotected = Operation::new("b").on_missing_key(OnMissingKey::RunUnprotected);
    let runs = world.on(RabbitMq::new(), &unprotected);
    for executed in [1, 2] {
        world.invoke(&runs, &event).await.unwrap();
        assert_eq!(world.ledger.executed("x"), executed);
    }
}
