//! Records that cannot be processed do not affect others. Their errors name the source, the record and the
//! remedy, and contain nothing of the payload.

use lambda_idempotency_local::{Invocation, RecordLine};
use lambda_idempotency_tests::events::{
    batch, batch_of, event, message, message_of_text, notification, order, order_with,
};
use serde_json::{Value, json};

use crate::support::{World, error, outcomes, returned};

fn line<'a>(invocation: &'a Invocation, record: &str) -> &'a RecordLine {
    invocation.records.iter().find(|line| line.record == record).unwrap()
}

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
        ("empty", message_of_text("empty", ""), "send JSON, or take the key from the raw record"),
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
        let line = line(&invocation, id);
        assert_eq!((line.source.as_str(), line.outcome.as_str()), ("sqs", "rejected"));
        let problem = line.problem.as_deref().unwrap();
        assert!(problem.contains(remedy), "{id}: {problem}");
        assert!(!problem.contains("o-9"), "{id}: {problem}");
    }
    world.assert_placed_once(["o-1", "o-2"]);
}

/// An empty id in a partial response would return the whole batch anyway, so the invocation fails with an
/// error that names the cause.
#[tokio::test]
async fn a_message_without_an_id_fails_the_invocation_and_the_others_are_processed_once() {
    let world = World::new().await;
    for without_id in [json!({ "eventSource": "aws:sqs", "body": order("o-9").to_string() }), {
        let mut message = message("", &order("o-9"));
        message["messageId"] = Value::Null;
        message
    }] {
        let event = batch([message("m-1", &order("o-1")), without_id]);
        let invocation = world.invoke(&event).await.unwrap();
        let (kind, text) = error(&invocation.result);
        assert_eq!(kind, "Idempotency.RecordsReturned");
        assert!(
            text.contains("1 of 2 sqs record(s)") && text.contains("no valid `messageId`"),
            "{text}"
        );
        assert!(text.contains("send it in the format that AWS delivers"), "{text}");
    }
    world.assert_placed_once(["o-1"]);
}

#[tokio::test]
async fn a_record_that_is_not_a_message_is_named_by_its_position() {
    let world = World::new().await;
    let event = batch([message("m-1", &order("o-1")), json!(7)]);
    let invocation = world.invoke(&event).await.unwrap();
    let (kind, text) = error(&invocation.result);
    assert_eq!(kind, "Idempotency.RecordsReturned");
    assert!(
        text.contains("sqs record no. 2 of the batch: the record has no valid `messageId`"),
        "{text}"
    );
    assert!(text.contains("send it in the format that AWS delivers"), "{text}");
    world.assert_placed_once(["o-1"]);
}

#[tokio::test]
async fn errors_for_sns_and_eventbridge_name_source_record_and_remedy() {
    let world = World::new().await;
    let mut text = notification("n-1", &order("o-1"));
    text["Records"][0]["Sns"]["Message"] = json!("order o-9");
    let mut nothing = notification("n-2", &order("o-1"));
    nothing["Records"][0]["Sns"].as_object_mut().unwrap().remove("Message");
    let mut bare = event("e-2", &order("o-1"));
    bare.as_object_mut().unwrap().remove("detail");
    let bad = [
        (text, "sns record n-1", "send JSON"),
        (notification("n-3", &keyed(json!(""))), "sns record n-3", "correct the producer"),
        (nothing, "sns record n-2", "no valid `Sns.Message`"),
        (event("e-1", &keyed(json!({}))), "eventbridge record #", "correct the producer"),
        (bare, "eventbridge record #", "no valid `detail`"),
    ];
    for (event, record, remedy) in bad {
        let invocation = world.invoke(&event).await.unwrap();
        let (kind, text) = error(&invocation.result);
        assert_eq!(kind, "Idempotency.RecordsReturned");
        assert!(text.contains(record) && text.contains(remedy), "{text}");
        assert!(!text.contains("o-9"), "{text}");
    }
    assert!(world.placed().is_empty() && world.claims().is_empty());
}

/// The handler does not need the part, but without it these orders could not be told apart.
#[tokio::test]
async fn a_key_that_lacks_a_part_is_refused_with_its_expression() {
    let world = World::of(crate::support::orders_by("[customer, coupon]")).await;
    let with = |id: &str, coupon: Value| message(id, &order_with(id, json!({ "coupon": coupon })));
    let ids = ["missing", "null", "blank", "list", "object", "blank inside"];
    let event = batch([
        message(ids[0], &order(ids[0])),
        with(ids[1], Value::Null),
        with(ids[2], json!("")),
        with(ids[3], json!([])),
        with(ids[4], json!({})),
        message(ids[5], &order_with("o", json!({ "customer": "", "coupon": "x" }))),
        with("good", json!("c-1")),
        with("zero", json!(0)),
    ]);
    let invocation = world.invoke(&event).await.unwrap();
    assert_eq!(returned(&invocation.result), ids);
    for id in ids {
        let problem = line(&invocation, id).problem.as_deref().unwrap();
        let expected = "the record has no idempotency key under `[customer, coupon]`: ";
        assert!(problem.starts_with(expected), "{id}: {problem}");
        let remedy = "correct the producer or the expression, or choose a policy for missing keys";
        assert!(problem.ends_with(remedy), "{id}: {problem}");
    }
    world.assert_placed_once(["good", "zero"]);
}

/// With numbers that a double cannot represent exactly, two orders could share a key.
#[tokio::test]
async fn inexact_numbers_are_refused_as_keys() {
    let function = crate::support::orders().env("ORDERS_SQS_KEY", "number");
    let world = World::of(function).await;
    let body = |number: &str| {
        let order = order("o-1").to_string();
        format!("{},\"number\":{number}}}", order.trim_end_matches('}'))
    };
    let records = ["9007199254740993.5", "1e400", "123456789012345678901234567890"];
    let messages = records.map(|number| message_of_text(number, &body(number)));
    let invocation = world.invoke(&batch(messages)).await.unwrap();
    assert_eq!(returned(&invocation.result), records);
    for number in records {
        let problem = line(&invocation, number).problem.clone().unwrap();
        assert!(!problem.contains(number), "{problem}");
    }
    let exact = message_of_text("m-1", &body("9007199254740993"));
    assert_eq!(outcomes(&world.send(&batch([exact])).await), ["executed"]);
}
