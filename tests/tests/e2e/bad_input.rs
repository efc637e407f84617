//! Records that cannot be processed do not affect others, and a function with a mistake in a key does not start. The errors
//! name the source, the record or the mistake, and the remedy, and contain nothing of the payload.

use lambda_idempotency_local::InvocationResult;
use lambda_idempotency_tests::events::{
    batch, batch_of, message, message_of_text, order, order_with,
};
use serde_json::{Value, json};

use crate::support::{World, error, orders, orders_by, outcomes, returned};

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

/// An environment variable for each source chooses the key expression.
#[tokio::test]
async fn orders_with_one_key_are_duplicates() {
    let with = |name: &str, value: &str| order_with("o-3", json!({ name: value }));
    for (variable, key, orders) in [
        ("SQS", "customer", [order("o-1"), order("o-2"), with("customer", "c-8")]),
        ("", "[customer, sku]", [order("o-1"), order("o-2"), with("sku", "kettle-1l")]),
    ] {
        let function = match variable {
            "" => orders_by(key),
            source => self::orders().env(format!("ORDERS_{source}_KEY"), key),
        };
        let world = World::of(function).await;
        for (order, outcome) in orders.into_iter().zip(["executed", "replayed", "executed"]) {
            assert_eq!(outcomes(&world.send(&batch_of([order])).await), [outcome], "{key}");
        }
        world.assert_placed_once(["o-1", "o-3"]);
    }
}

#[tokio::test]
async fn a_function_with_a_mistake_in_an_expression_does_not_start() {
    for (expression, reason) in
        [("order[", "offset 6"), ("[customer, nosuch(orderId)]", "nosuch"), ("", "it is empty")]
    {
        let world = World::of(orders().env("ORDERS_SNS_KEY", expression)).await;
        let invocation = world.invoke(&batch_of([order("o-1")])).await.unwrap();
        // A function that fails at start can report the error only in its log.
        let exited = matches!(invocation.result, InvocationResult::Exited { code: Some(1), .. });
        assert!(exited, "{expression}: {}", invocation.result);
        let lines = world.lines();
        let at = lines
            .iter()
            .position(|line| line.contains("sns: the key of operation `place-order`"))
            .unwrap();
        assert!(lines[at].contains(reason), "{lines:?}");
        // The expression, and a caret under the mistake.
        assert_eq!(lines[at + 1].trim(), expression);
        assert_eq!(lines[at + 2].trim(), "^");
        assert_eq!(invocation.dynamodb.requests(), 0);
    }
}
