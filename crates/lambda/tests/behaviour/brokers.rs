//! ActiveMQ and RabbitMQ: the whole batch is delivered again, and processed messages are replayed.

use lambda_idempotency::{
    OnMissingKey, Operation, record,
    source::{ActiveMq, RabbitMq},
};
use serde_json::{Value, json};

use crate::{
    support::{World, diagnostic},
    support_streams::base64,
};

const BROKER: &str = "arn:aws:mq:eu-west-1:111122223333:broker:shop:b-1";

fn active(messages: impl IntoIterator<Item = (&'static str, &'static str, &'static str)>) -> Value {
    let messages = messages.into_iter().map(|(message, id, action)| {
        json!({
            "messageID": message, "messageType": "jms/text-message", "redelivered": false,
            "data": base64(json!({ "id": id, "do": action }).to_string()),
            "destination": { "physicalName": "orders" }, "properties": null,
        })
    });
    let messages: Vec<Value> = messages.collect();
    json!({ "eventSource": "aws:mq", "eventSourceArn": BROKER, "messages": messages })
}

fn rabbit(messages: impl IntoIterator<Item = (Value, &'static str, &'static str)>) -> Value {
    let messages = messages.into_iter().map(|(message, id, action)| {
        json!({
            "basicProperties": { "messageId": message, "correlationId": id, "headers": {} },
            "redelivered": false,
            "data": base64(json!({ "id": id, "do": action }).to_string()),
        })
    });
    let messages: Vec<Value> = messages.collect();
    let queues = json!({ "orders::/": messages });
    json!({ "eventSource": "aws:rmq", "eventSourceArn": BROKER, "rmqMessagesByQueue": queues })
}

#[tokio::test]
async fn a_batch_is_delivered_again_whole_and_processed_records_are_replayed() {
    let world = World::new();
    let idempotency = world.idempotency();
    let active_mq = idempotency.on(ActiveMq::new(), &Operation::new("a"), world.handler()).unwrap();
    let rabbit_mq = idempotency.on(RabbitMq::new(), &Operation::new("b"), world.handler()).unwrap();
    for (function, event, ids) in [
        (
            &active_mq,
            active([("1", "a", ""), ("2", "b", "fail once"), ("3", "c", "")]),
            ["a", "b", "c"],
        ),
        (
            &rabbit_mq,
            rabbit([("1".into(), "x", ""), ("2".into(), "y", "fail once"), ("3".into(), "z", "")]),
            ["x", "y", "z"],
        ),
    ] {
        let (kind, text) = diagnostic(world.invoke(function, &event).await.unwrap_err());
        assert_eq!(kind, "Idempotency.RecordsReturned");
        assert!(text.contains("1 of 3") && text.contains("mq record #"), "{text}");
        assert_eq!(world.ledger.executed(ids[0]) + world.ledger.executed(ids[2]), 2);
        assert_eq!(world.invoke(function, &event).await.unwrap(), Value::Null);
        for id in ids {
            world.ledger.assert_once(id);
        }
    }
}

#[tokio::test]
async fn the_identity_of_a_message_is_its_id_in_its_queue() {
    let world = World::new();
    let function = world.on(RabbitMq::new(), &Operation::new("b"));
    let event = rabbit([("1".into(), "x", "")]);
    let mut other_queue = event.clone();
    let list = other_queue["rmqMessagesByQueue"]["orders::/"].take();
    other_queue["rmqMessagesByQueue"] = json!({ "refunds::/": list });
    let mut other_broker = event.clone();
    other_broker["eventSourceArn"] = format!("{BROKER}2").into();
    for event in [&event, &other_queue, &other_broker, &event, &other_queue] {
        world.invoke(&function, event).await.unwrap();
    }
    assert_eq!(world.ledger.executed("x"), 3);
}

/// RabbitMQ sets no id by itself. The payload cannot replace it: two orders may be equal.
#[tokio::test]
async fn a_message_without_an_id_needs_a_key() {
    let world = World::new();
    let idempotency = world.idempotency();
    let plain = idempotency.on(RabbitMq::new(), &Operation::new("a"), world.handler()).unwrap();
    for id in [Value::Null, json!(""), json!(7)] {
        let event = rabbit([(id, "x", "")]);
        let (kind, text) = diagnostic(world.invoke(&plain, &event).await.unwrap_err());
        assert_eq!(kind, "Idempotency.RecordsReturned");
        assert!(text.contains("basicProperties.messageId") && text.contains(".key("), "{text}");
    }
    assert_eq!(world.ledger.total(), 0);
    for (source, operation) in [
        (RabbitMq::new(), Operation::new("b").key("id")),
        (RabbitMq::new().key(record("basicProperties.correlationId")), Operation::new("c")),
    ] {
        let function = idempotency.on(source, &operation, world.handler()).unwrap();
        for _ in 0..2 {
            let event = rabbit([(Value::Null, "y", "")]);
            assert_eq!(world.invoke(&function, &event).await.unwrap(), Value::Null);
        }
    }
    assert_eq!(world.ledger.executed("y"), 2, "once for each operation");
    let unprotected = Operation::new("d").on_missing_key(OnMissingKey::RunUnprotected);
    let function = idempotency.on(RabbitMq::new(), &unprotected, world.handler()).unwrap();
    for _ in 0..2 {
        world.invoke(&function, &rabbit([(Value::Null, "d", "")])).await.unwrap();
    }
    assert_eq!(world.ledger.executed("d"), 2, "as the policy for missing keys says");
}

#[tokio::test]
async fn bad_messages_fail_with_the_cause_in_the_error() {
    let world = World::new();
    let idempotency = world.idempotency();
    let active_mq = idempotency.on(ActiveMq::new(), &Operation::new("a"), world.handler()).unwrap();
    let rabbit_mq = idempotency.on(RabbitMq::new(), &Operation::new("b"), world.handler()).unwrap();
    for (data, expected) in [
        (json!(base64([0xff])), "whole_record"),
        (json!("not base64!"), "whole_record"),
        (json!(null), "the record has no valid `data`"),
        (json!(7), "the record has no valid `data`"),
    ] {
        let mut bad = active([("1", "x", "")]);
        bad["messages"][0]["data"] = data.clone();
        let (_, text) = diagnostic(world.invoke(&active_mq, &bad).await.unwrap_err());
        assert!(text.contains(expected), "{text}");
        let mut bad = rabbit([("1".into(), "x", "")]);
        bad["rmqMessagesByQueue"]["orders::/"][0]["data"] = data;
        let (_, text) = diagnostic(world.invoke(&rabbit_mq, &bad).await.unwrap_err());
        assert!(text.contains(expected), "{text}");
    }
    let mut odd = rabbit([]);
    odd["rmqMessagesByQueue"]["orders::/"] = "not a list".into();
    assert!(world.invoke(&rabbit_mq, &odd).await.is_err());
    assert_eq!(world.ledger.total(), 0);
    assert_eq!(world.invoke(&rabbit_mq, &rabbit([])).await.unwrap(), Value::Null);
    assert_eq!(world.invoke(&active_mq, &active([])).await.unwrap(), Value::Null);
}

#[tokio::test]
async fn a_broker_filter_accepts_its_name_or_arn() {
    let world = World::new();
    for (broker, taken) in [("shop", true), (BROKER, true), ("other", false), ("b-1", false)] {
        let operation = Operation::new("a");
        let idempotency = || world.idempotency();
        let (active_mq, rabbit_mq) =
            (ActiveMq::new().broker(broker), RabbitMq::new().broker(broker));
        let active_mq = idempotency().on(active_mq, &operation, world.handler()).unwrap();
        let rabbit_mq = idempotency().on(rabbit_mq, &operation, world.handler()).unwrap();
        let event = active([("1", "x", "")]);
        assert_eq!(world.invoke(&active_mq, &event).await.is_ok(), taken, "{broker}");
        let event = rabbit([("1".into(), "y", "")]);
        assert_eq!(world.invoke(&rabbit_mq, &event).await.is_ok(), taken, "{broker}");
    }
}

/// As `guide/sources/active_mq.md` says. The second delivery finds an item of the message that failed.
#[tokio::test]
async fn active_mq_messages_run_one_after_the_other_and_none_after_a_failure() {
    let world = World::new();
    let source = ActiveMq::new()
        .after_failure(lambda_idempotency::source::AfterFailure::Batch)
        .concurrency(1);
    let function = world.on(source, &Operation::new("a"));
    let event = active([("1", "a", "fail"), ("2", "b", ""), ("3", "c", "")]);
    for _ in 0..3 {
        world.invoke(&function, &event).await.unwrap_err();
    }
    world.ledger.assert_never("b");
    world.ledger.assert_never("c");
}
