//! Envelopes: payload and identity are those of the innermost notification.

use lambda_idempotency::{
    ConfigError, Function, Operation,
    handler::{Handler, HandlerResult, Payload},
    record,
    source::{Envelope, Sns, Source, Sqs},
};
use serde_json::{Value, json};

use crate::support::{
    FIFO, TOPIC, World, batch, bus_event, diagnostic, grouped, ids, notification, sample, with_body,
};

fn on<T: Payload, R: HandlerResult>(
    world: &World,
    source: impl Source,
    operation: &Operation,
    handler: impl Handler<T, R>,
) -> Function {
    world.idempotency().on(source, operation, handler).unwrap()
}

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

fn uploaded(keys: &[&str]) -> Value {
    batch(keys.iter().map(|key| {
        json!({
            "eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "eventTime": "t",
            "s3": {
                "bucket": { "name": "uploads", "arn": "arn:aws:s3:::uploads" },
                "object": { "key": key, "eTag": "d41d", "sequencer": "01" },
            },
        })
    }))
}

/// A redrive, or a second delivery to the queue, gives the message a new id. The notification keeps
/// its id.
#[tokio::test]
async fn the_id_of_the_notification_stays_the_same_after_a_redrive() {
    let world = World::new();
    let function = on(&world, inside(Envelope::Sns), &a(), world.handler());
    for (message, notification, executed) in
        [("m-1", "n-1", 1), ("m-2", "n-1", 1), ("m-3", "n-2", 2)]
    {
        let body = announced(notification, &json!({ "id": "x" }));
        let answer = world.invoke(&function, &batch([with_body(message, &body)])).await.unwrap();
        assert!(ids(&answer).is_empty());
        assert_eq!(world.ledger.executed("x"), executed, "{message}");
    }
    // The same notification, delivered by SNS itself, has the same key.
    let direct = on(&world, Sns::new(), &a(), world.handler());
    world.invoke(&direct, &notification("n-1", r#"{"id":"x"}"#)).await.unwrap();
    assert_eq!(world.ledger.executed("x"), 2);
}

#[tokio::test]
async fn the_identity_of_an_event_in_a_message_is_its_own_id() {
    let world = World::new();
    let function = on(&world, inside(Envelope::EventBridge), &a(), world.handler());
    let body = bus_event("e-1", "Placed", &json!({ "id": "x" })).to_string();
    for message in ["m-1", "m-2"] {
        world.invoke(&function, &batch([with_body(message, &body)])).await.unwrap();
    }
    world.ledger.assert_once("x");
}

/// Keys and handlers get the innermost payload; `record(..)` still reads the whole message.
#[tokio::test]
async fn a_notification_in_a_notification_in_a_message() {
    let world = World::new();
    let both = || inside(Envelope::Sns).envelope(Envelope::S3);
    let body = |id: &str, keys: &[&str]| announced(id, &uploaded(keys));
    let handler = std::sync::Arc::new(world.handler());
    let by_object =
        move |record: Value, call| handler(json!({ "id": record["s3"]["object"]["key"] }), call);
    let by_key = Operation::new("key").key("s3.object.key");
    for (operation, first, second) in [(Operation::new("identity"), "a", "b"), (by_key, "c", "d")] {
        let function = on(&world, both(), &operation, by_object.clone());
        for message in ["m-1", "m-2"] {
            let one = with_body(message, &body(message, &[first]));
            let other = with_body("m-3", &body("n-3", &[second]));
            assert!(world.returned(&function, &batch([one, other])).await.is_empty());
        }
        world.ledger.assert_once(first);
        world.ledger.assert_once(second);
    }
    let outside = inside(Envelope::Sns).key(record("messageId"));
    let function = on(&world, outside, &Operation::new("outside"), world.handler());
    for message in ["m-1", "m-2"] {
        let event = batch([with_body(message, &announced("n-1", &json!({ "id": "e" })))]);
        world.invoke(&function, &event).await.unwrap();
    }
    assert_eq!(world.ledger.executed("e"), 2);
}

/// S3 may put several notifications into one message. With the key of the message, all but the first would be answered
/// from its record, and never processed.
#[tokio::test]
async fn a_key_that_does_not_tell_notifications_apart_is_refused() {
    let world = World::new();
    let s3 = || inside(Envelope::S3);
    let refused = |queue| world.idempotency().on(queue, &a(), world.handler()).unwrap_err();
    let error = refused(s3().key(record("messageId")));
    assert!(matches!(error, ConfigError::Key(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("messageId") && text.contains("s3.object.key"), "{text}");
    let error = refused(s3().whole_record());
    assert!(matches!(error, ConfigError::Source(_)), "{error}");
    assert!(error.to_string().contains(".key("), "{error}");
}

/// With a key of the message, the message is one record.
#[tokio::test]
async fn a_whole_message_with_several_notifications_is_processed_once() {
    let world = World::new();
    let whole = inside(Envelope::S3).whole_record();
    let function = on(&world, whole, &a().key("messageId"), world.raw_handler());
    let event = batch([with_body("m-1", &uploaded(&["a", "b"]).to_string())]);
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
    let function = on(&world, inside(Envelope::S3), &a(), fails_once);
    let event = batch([
        with_body("m-1", &uploaded(&["a", "b", "c"]).to_string()),
        with_body("m-2", &uploaded(&["d"]).to_string()),
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
    let function = on(&world, inside(Envelope::S3), &a(), world.handler());
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
        let sqs = on(&world, inside(envelope), &operation, world.handler());
        let sns = on(&world, Sns::new().envelope(envelope), &operation, world.handler());
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
    let plain = on(&world, Sqs::new(), &Operation::new("d"), world.raw_handler());
    let body = announced("n-1", &json!({ "id": "x" }));
    for message in ["m-1", "m-2"] {
        world.invoke(&plain, &batch([with_body(message, &body)])).await.unwrap();
    }
    assert_eq!(world.ledger.executed(&body), 2);
}

#[tokio::test]
async fn a_message_with_an_envelope_keeps_its_group_and_its_id() {
    let world = World::new();
    let function = on(&world, inside(Envelope::Sns), &a(), world.handler());
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
    let sns = on(&world, inside(Envelope::Sns), &by_user, world.raw_handler());
    let s3 = on(&world, inside(Envelope::S3), &Operation::new("s3"), world.raw_handler());
    for (function, name) in [(&sns, "snsSqsEvent"), (&sns, "snsSqsFifoEvent"), (&s3, "s3SqsEvent")]
    {
        let answer = world.invoke_raw(function, &sample(name)).await.unwrap();
        assert!(ids(&answer).is_empty(), "{name}");
    }
    world.ledger.assert_once(r#"{"message": "hello world", "username": "lessa"}"#);
    assert_eq!(world.ledger.total(), 2, "two notifications with one user name, one upload");
}

/// A queue of another account gets a request to confirm its subscription, which is no message of a publisher.
#[tokio::test]
async fn a_confirmation_of_a_subscription_is_no_notification() {
    for kind in ["SubscriptionConfirmation", "UnsubscribeConfirmation"] {
        let world = World::new();
        let function = on(&world, inside(Envelope::Sns), &a(), world.text_handler());
        let body = announced("n-1", &json!("You have chosen ..")).replace("Notification", kind);
        let event = batch([with_body("m-1", &body)]);
        assert_eq!(world.returned(&function, &event).await, ["m-1"], "{kind}");
        assert_eq!(world.ledger.total(), 0);
    }
}
