//! S3: events that are no notification of an object.

use lambda_idempotency::{Operation, source::S3};
use serde_json::{Value, json};

use crate::{
    support::{World, batch, diagnostic},
    support_streams::uploaded,
};

/// The test event that S3 sends when notifications are set up.
fn test_event() -> Value {
    json!({
        "Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-01-01T00:00:00.123Z",
        "Bucket": "uploads", "RequestId": "5582815E1AEA5ADF", "HostId": "8cLe",
    })
}

#[tokio::test]
async fn a_record_that_does_not_identify_its_object_or_its_event_is_refused() {
    let world = World::new();
    let on = |operation: &Operation| world.with_handler(S3::new(), operation, world.raw_handler());
    let (by_identity, by_key) =
        (on(&Operation::new("a")), on(&Operation::new("b").key("eventName")));
    let without = |sequencer, path| {
        let mut record = uploaded("a.pdf", sequencer);
        *record.pointer_mut(path).unwrap() = Value::Null;
        batch([record])
    };
    for path in ["/s3/object/key", "/s3/bucket/arn", "/s3"] {
        assert!(world.invoke(&by_key, &without("01", path)).await.is_err(), "{path}");
    }
    // Only events that put or delete an object have a sequencer.
    let unknown = without("", "/responseElements/x-amz-request-id");
    let (_, text) = diagnostic(world.invoke(&by_identity, &unknown).await.unwrap_err());
    assert!(text.contains(".key("), "the remedy: {text}");
    assert_eq!(world.ledger.total(), 0);
    assert_eq!(world.invoke(&by_key, &unknown).await.unwrap(), Value::Null);
    assert_eq!(world.ledger.total(), 1);
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
        let function = world.with_handler(source, &operation, world.raw_handler());
        assert_eq!(world.invoke(&function, &test_event()).await.is_ok(), taken);
    }
    assert_eq!(world.ledger.total(), 0);
    assert!(world.store.history().is_empty());
}
