//! S3: notifications, identified by the event and the object.

use lambda_idempotency::{Operation, record, source::S3};
use serde_json::{Value, json};

use crate::support::{World, batch, diagnostic, sample};

fn notification(name: &str, key: &str, sequencer: &str) -> Value {
    json!({
        "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "eu-west-1",
        "eventTime": "2026-01-01T00:00:00.123Z", "eventName": name,
        "responseElements": { "x-amz-request-id": "C3D13FE58DE4C810", "x-amz-id-2": "FMy" },
        "s3": {
            "s3SchemaVersion": "1.0", "configurationId": "c",
            "bucket": { "name": "uploads", "arn": "arn:aws:s3:::uploads" },
            "object": { "key": key, "size": 1, "eTag": "d41d", "sequencer": sequencer },
        },
    })
}

fn put(key: &str, sequencer: &str) -> Value {
    notification("ObjectCreated:Put", key, sequencer)
}

/// The test event that S3 sends when notifications are set up.
fn test_event() -> Value {
    json!({
        "Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-01-01T00:00:00.123Z",
        "Bucket": "uploads", "RequestId": "5582815E1AEA5ADF", "HostId": "8cLe",
    })
}

/// How often the handler is called for these, each delivered twice.
async fn calls(records: impl IntoIterator<Item = Value>) -> usize {
    let world = World::new();
    let function =
        world.idempotency().on(S3::new(), &Operation::new("index"), world.raw_handler()).unwrap();
    let records: Vec<Value> = records.into_iter().collect();
    for _ in 0..2 {
        for record in &records {
            let answer = world.invoke(&function, &batch([record.clone()])).await.unwrap();
            assert_eq!(answer, Value::Null);
        }
    }
    world.ledger.total()
}

fn with(mut record: Value, path: &str, value: Value) -> Value {
    *record.pointer_mut(path).unwrap() = value;
    record
}

#[tokio::test]
async fn the_identity_is_the_event_and_the_object() {
    let first = put("a.pdf", "01");
    assert_eq!(calls([first.clone(), with(first.clone(), "/eventTime", "later".into())]).await, 1);
    for (other, why) in [
        (put("b.pdf", "01"), "another object"),
        (put("a.pdf", "02"), "uploaded again"),
        (notification("ObjectRemoved:Delete", "a.pdf", "01"), "another event name"),
        (with(first.clone(), "/s3/bucket/arn", "arn:aws:s3:::other".into()), "another bucket"),
        (with(first.clone(), "/s3/object/eTag", "e52e".into()), "another content"),
    ] {
        assert_eq!(calls([first.clone(), other]).await, 2, "{why}");
    }
}

/// Events that neither create nor delete an object have no sequencer: time and request id replace it.
#[tokio::test]
async fn without_a_sequencer_events_of_one_object_differ_by_time() {
    let tagged = with(notification("ObjectTagging:Put", "a.pdf", ""), "/s3/object/size", 2.into());
    let again = with(tagged.clone(), "/eventTime", "2026-01-01T00:00:01.000Z".into());
    assert_eq!(calls([tagged.clone(), again]).await, 2);
    assert_eq!(calls([tagged]).await, 1);
}

#[tokio::test]
async fn a_notification_without_an_identity_is_refused() {
    let world = World::new();
    let idempotency = world.idempotency();
    let by_identity = idempotency.on(S3::new(), &Operation::new("a"), world.raw_handler()).unwrap();
    let without_identity = with(
        notification("ObjectTagging:Put", "a.pdf", ""),
        "/responseElements/x-amz-request-id",
        Value::Null,
    );
    let (kind, text) = diagnostic(
        world.invoke(&by_identity, &batch([without_identity.clone()])).await.unwrap_err(),
    );
    assert_eq!(kind, "Idempotency.RecordsReturned");
    assert!(text.contains(".key("), "the remedy: {text}");
    let by_key = Operation::new("b").key("s3.object.key");
    let by_key = idempotency.on(S3::new(), &by_key, world.raw_handler()).unwrap();
    assert_eq!(world.invoke(&by_key, &batch([without_identity])).await.unwrap(), Value::Null);
    for path in ["/s3/object/key", "/s3/bucket/arn", "/s3"] {
        let bad = with(put("a.pdf", "01"), path, Value::Null);
        assert!(world.invoke(&by_key, &batch([bad])).await.is_err(), "{path}");
    }
    assert_eq!(world.ledger.total(), 1);
}

/// Records that were processed are not processed again when Lambda tries the event again.
#[tokio::test]
async fn a_failure_fails_the_event_and_processed_records_are_replayed() {
    let world = World::new();
    let handler = world.handler();
    let fails_once = move |record: Value, call| {
        let key = &record["s3"]["object"]["key"];
        let action = if key == "b" { "fail once" } else { "" };
        handler(json!({ "id": key, "do": action }), call)
    };
    let function = world.idempotency().on(S3::new(), &Operation::new("index"), fails_once).unwrap();
    let event = batch([put("a", "1"), put("b", "2"), put("c", "3")]);
    assert!(world.invoke(&function, &event).await.is_err());
    world.ledger.assert_each_once(["a", "c"]);
    assert_eq!(world.invoke(&function, &event).await.unwrap(), Value::Null);
    world.ledger.assert_each_once(["a", "b", "c"]);
}

#[tokio::test]
async fn a_test_event_calls_no_handler() {
    let world = World::new();
    for (name, source, taken) in [
        ("a", S3::new(), true),
        ("b", S3::new().bucket("uploads"), true),
        ("c", S3::new().bucket("other"), false),
    ] {
        let operation = Operation::new(name);
        let function = world.idempotency().on(source, &operation, world.raw_handler()).unwrap();
        assert_eq!(world.invoke(&function, &test_event()).await.is_ok(), taken);
    }
    assert_eq!(world.ledger.total(), 0);
    assert!(world.store.history().is_empty());
}

#[tokio::test]
async fn a_bucket_filter_and_a_key_expression_are_applied() {
    let world = World::new();
    let by_object = S3::new().key(record("s3.object.key")).bucket("uploads");
    let function =
        world.idempotency().on(by_object, &Operation::new("a"), world.raw_handler()).unwrap();
    for sequencer in ["1", "2"] {
        world.invoke(&function, &batch([put("a", sequencer)])).await.unwrap();
    }
    assert_eq!(world.ledger.total(), 1);
    assert!(world.invoke_raw(&function, &sample("s3Event")).await.is_err(), "another bucket");
}
