//! Envelopes: payload and identity are those of the innermost notification.

use lambda_idempotency::{
    Operation,
    source::{Envelope, Sns, Sqs},
};
use serde_json::{Value, json};

use crate::{
    support::{
        FIFO, TOPIC, World, batch, diagnostic, grouped, ids, notification, sample, with_body,
    },
    support_streams::uploaded,
};

fn a() -> Operation {
    Operation::new("a")
}

fn inside(envelope: Envelope) -> Sqs {
    Sqs::new().envelope(envelope)
}

/// An SNS notification in the format that queues get.
fn announced(id: &str, message: &Value) -> String {
    let message = message.to_string();
    json!({
        "Type": "Notification", "MessageId": id, "TopicArn": TOPIC, "Message": message,
        "Timestamp": "2026-01-01T00:00:00.000Z",
    })
    .to_string()
}

fn uploads(keys: &[&str]) -> Value {
    batch(keys.iter().map(|key| uploaded(key, "01")))
}

/// With a key of the message, the message is one record.
#[tokio::test]
async fn a_whole_message_with_several_notifications_is_processed_once() {
    let world = World::new();
    let whole = inside(Envelope::S3).whole_record();
    let function = world.with_handler(whole, &a().key("messageId"), world.raw_handler());
    let event = batch([with_body("m-1", &uploads(&["a", "b"]).to_string())]);
    for _ in 0..2 {
        assert!(world.returned(&function, &event).await.is_empty());
    }
    assert_eq!(world.ledger.total(), 1);
}

/// The message is returned if one of its objects fails; then only that object is processed again.
#[tokio::test]
async fn a_message_with_several_records_is_returned_if_one_fails() {
    let world = World::new();
    let handler = world.handler();
    let fails_once = move |record: Value, call| {
        let key = &record["s3"]["object"]["key"];
        let action = if key == "b" { "fail once" } else { "" };
        handler(json!({ "id": key, "do": action }), call)
    };
    let function = world.with_handler(inside(Envelope::S3), &a(), fails_once);
    let event = batch([
        with_body("m-1", &uploads(&["a", "b", "c"]).to_string()),
        with_body("m-2", &uploads(&["d"]).to_string()),
    ]);
    assert_eq!(world.returned(&function, &event).await, ["m-1"]);
    world.ledger.assert_each_once(["a", "c", "d"]);
    assert!(world.returned(&function, &event).await.is_empty());
    world.ledger.assert_each_once(["a", "b", "c", "d"]);
}

/// S3 sends a test event when the bucket's notifications are set up.
#[tokio::test]
async fn a_test_event_in_a_message_is_acknowledged() {
    let world = World::new();
    let function = world.on(inside(Envelope::S3), &a());
    let test = r#"{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"uploads"}"#;
    assert!(world.returned(&function, &batch([with_body("m-1", test)])).await.is_empty());
    assert_eq!(world.ledger.total(), 0);
}

/// A body that is not in the named envelope is refused. A body in an envelope that the operation does
/// not name is an ordinary payload.
#[tokio::test]
async fn an_envelope_is_configured_and_not_guessed() {
    let world = World::new();
    for (name, envelope, expected) in [
        ("a", Envelope::Sns, "SNS notification"),
        ("b", Envelope::EventBridge, "EventBridge event"),
        ("c", Envelope::S3, "S3 notification"),
    ] {
        let operation = Operation::new(name);
        let sqs = world.on(inside(envelope), &operation);
        let sns = world.on(Sns::new().envelope(envelope), &operation);
        for body in [r#"{"id":"x"}"#, "not JSON", "[]", "7", r#"{"MessageId":"n","TopicArn":null}"#]
        {
            let answer = world.invoke(&sqs, &batch([with_body("m-1", body)])).await.unwrap();
            assert_eq!(ids(&answer), ["m-1"], "{name} {body}");
            let (_, text) =
                diagnostic(world.invoke(&sns, &notification("n-1", body)).await.unwrap_err());
            assert!(text.contains(expected) && text.contains(".envelope("), "{text}");
        }
    }
    assert_eq!(world.ledger.total(), 0);
    let plain = world.with_handler(Sqs::new(), &Operation::new("d"), world.raw_handler());
    let body = announced("n-1", &json!({ "id": "x" }));
    for message in ["m-1", "m-2"] {
        world.invoke(&plain, &batch([with_body(message, &body)])).await.unwrap();
    }
    assert_eq!(world.ledger.executed(&body), 2);
}

#[tokio::test]
async fn a_message_with_an_envelope_keeps_its_group_and_its_id() {
    let world = World::new();
    let function = world.on(inside(Envelope::Sns), &a());
    let message = |id: &str, order: &str, action: &str| {
        let body = announced(id, &json!({ "id": order, "do": action }));
        grouped(with_body(id, &body), FIFO, "g")
    };
    let event = batch([message("m-1", "a", "fail"), message("m-2", "b", "")]);
    assert_eq!(world.returned(&function, &event).await, ["m-1", "m-2"]);
    assert_eq!(world.ledger.total(), 0);
}

#[tokio::test]
async fn the_samples_of_envelopes() {
    let world = World::new();
    let by_user = Operation::new("sns").key("username");
    let sns = world.with_handler(inside(Envelope::Sns), &by_user, world.raw_handler());
    let s3 = world.with_handler(inside(Envelope::S3), &Operation::new("s3"), world.raw_handler());
    for (function, name) in [(&sns, "snsSqsEvent"), (&sns, "snsSqsFifoEvent"), (&s3, "s3SqsEvent")]
    {
        let answer = world.invoke_raw(function, &sample(name)).await.unwrap();
        assert!(ids(&answer).is_empty(), "{name}");
    }
    world.ledger.assert_once(r#"{"message": "hello world", "username": "lessa"}"#);
    assert_eq!(world.ledger.total(), 2, "two notifications with one user name, one upload");
}

#[tokio::test]
async fn messages_of_sns_about_a_subscription_are_named_as_such() {
    let world = World::new();
    let source = inside(Envelope::Sns).without_partial_responses();
    let function = world.on(source, &a());
    for kind in ["SubscriptionConfirmation", "UnsubscribeConfirmation"] {
        let body = json!({ "Type": kind, "MessageId": "n-1", "TopicArn": TOPIC, "Token": "2336412f",
            "Message": "You have chosen to subscribe", "SubscribeURL": "https://sns/confirm" });
        let message = batch([with_body("m-1", &body.to_string())]);
        let (_, text) = diagnostic(world.invoke(&function, &message).await.unwrap_err());
        assert!(text.contains("open its `SubscribeURL` once"), "{text}");
    }
    assert_eq!(world.ledger.total(), 0);
}
