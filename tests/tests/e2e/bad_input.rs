//! Records that cannot be processed do not affect others. Their errors name the source, the record and the
//! remedy, and contain nothing of the payload.

use lambda_idempotency_tests::events::{batch, batch_of, message, message_of_text, order};
use serde_json::{Value, json};

use crate::support::{World, error, outcomes, returned};

/// An order with this key.
fn keyed(key: Value) -> Value {
    json!({ "orderId": key, "customer": "c-17", "sku": "mug-blue", "quantity": 1 })
}

#[tokio::test]
async fn after_an_event_that_is_not_json_the_process_continues() {
    let world = World::new().await;
    for text in ["", "{\"Records\": [", "order o-1", "{\"Records\":[{}]"] {
        let invocation = world.invoke_bytes("r-1", text).await.unwrap();
        let (_, message) = error(&invocation.result);
        assert!(!message.is_empty() && !message.contains("order o-1"), "{message}");
    }
    assert_eq!(outcomes(&world.send(&batch_of([order("o-1")])).await), ["executed"]);
}

#[tokio::test]
async fn each_bad_record_is_returned_with_a_reason_and_the_others_are_processed() {
    let world = World::new().await;
    let bad = [
        ("text", message_of_text("text", "order o-9"), "is not valid JSON"),
        (
            "empty",
            message_of_text("empty", ""),
            "not valid JSON: it is empty; send JSON, or make the key from",
        ),
        ("array", message_of_text("array", "[1,2]"), "no idempotency key under `orderId`"),
        ("missing", message("missing", &json!({ "sku": "x" })), "it selects nothing (or null)"),
        ("null", message("null", &keyed(Value::Null)), "it selects nothing (or null)"),
        ("blank", message("blank", &keyed(json!(""))), "correct the producer or the expression"),
        ("list", message("list", &keyed(json!([]))), "it selects something empty"),
        ("type", message("type", &json!({ "orderId": "o-9" })), "correct the producer or the type"),
        (
            "no body",
            json!({ "messageId": "no body", "eventSource": "aws:sqs" }),
            "has no valid `body`",
        ),
    ];
    let ids: Vec<&str> = bad.iter().map(|(id, ..)| *id).collect();
    let mut records = vec![message("first", &order("o-1"))];
    records.extend(bad.iter().map(|(_, record, _)| record.clone()));
    records.push(message("last", &order("o-2")));
    let invocation = world.invoke(&batch(records)).await.unwrap();
    assert_eq!(returned(&invocation.result), ids);
    for (id, _, remedy) in bad {
        let line = invocation.records.iter().find(|line| line.record == id).unwrap();
        assert_eq!((line.source.as_str(), line.outcome.as_str()), ("sqs", "rejected"));
        let problem = line.problem.as_deref().unwrap();
        assert!(problem.contains(remedy), "{id}: {problem}");
        assert!(!problem.contains("o-9"), "{id}: {problem}");
    }
    world.assert_placed_once(["o-1", "o-2"]);
}

/// An empty id in a partial response would return the whole batch anyway, so the invocation fails with an
/// error that names the cause, and the record by its position.
#[tokio::test]
async fn a_record_without_an_id_fails_the_invocation_and_the_others_are_processed_once() {
    let world = World::new().await;
    let mut without_id = message("", &order("o-9"));
    without_id["messageId"] = Value::Null;
    for bad in [without_id, json!(7)] {
        let invocation = world.invoke(&batch([message("m-1", &order("o-1")), bad])).await.unwrap();
        let (kind, text) = error(&invocation.result);
        assert_eq!(kind, "Idempotency.RecordsReturned");
        for said in [
            "1 of 2 sqs record(s)",
            "sqs record no. 2 of the batch: the record has no valid `messageId`",
            "send it in the format that AWS delivers",
        ] {
            assert!(text.contains(said), "{text}");
        }
    }
    world.assert_placed_once(["o-1"]);
}
