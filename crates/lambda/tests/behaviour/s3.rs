//! S3: events that are no notification of an object.

use lambda_idempotency::{
    Operation,
    source::{Envelope, S3, Sqs},
};
use serde_json::{Value, json};

use crate::{
    support::{World, batch, diagnostic, with_body},
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
    let unknown = without("", "/responseElements/x-amz-request-id");
    let (_, text) = diagnostic(world.invoke(&by_identity, &unknown).await.unwrap_err());
    assert!(text.contains(".key("), "the remedy: {text}");
    assert_eq!(world.ledger.total(), 0);
    assert_eq!(world.invoke(&by_key, &unknown).await.unwrap(), Value::Null);
    assert_eq!(world.ledger.total(), 1);
}

/// A failure to replicate an object, with the members of AWS's sample: the sequencer is that of the write.
fn not_replicated(time: &str, request: &str, to: &str) -> Value {
    let mut record = uploaded("a.pdf", "0066DA1CBF104C0D51");
    record["eventName"] = "Replication:OperationFailedReplication".into();
    record["eventTime"] = time.into();
    record["responseElements"]["x-amz-request-id"] = request.into();
    record["replicationEventData"] = json!({
        "replicationRuleId": "rule", "destinationBucket": format!("arn:aws:s3:::{to}"),
        "s3Operation": "OBJECT_PUT", "requestTime": "2026-01-01T00:00:00.000Z",
        "failureReason": "AssumeRoleNotPermitted",
    });
    record
}

/// Events of one write, each of which is an occasion of its own.
fn events_of_one_write() -> Vec<Value> {
    let write = "2026-01-01T00:00:00.000Z";
    let later = "2026-01-01T00:00:33.000Z";
    let mut events = vec![
        uploaded("a.pdf", "0066DA1CBF104C0D51"),
        not_replicated(write, "r-1", "one"),
        not_replicated(write, "r-1", "other"),
        not_replicated(write, "r-2", "one"),
        not_replicated(later, "r-1", "one"),
    ];
    for (name, time) in [
        ("ObjectTagging:Put", write),
        ("ObjectTagging:Put", later),
        ("ObjectTagging:Delete", later),
        ("ObjectAcl:Put", write),
        ("ObjectAcl:Put", later),
        ("ObjectRestore:Post", write),
        ("ObjectRestore:Completed", later),
        ("LifecycleTransition", write),
        ("LifecycleExpiration:Delete", write),
        ("IntelligentTiering", write),
        ("IntelligentTiering", later),
    ] {
        let mut event = uploaded("a.pdf", "0066DA1CBF104C0D51");
        event["eventName"] = name.into();
        event["eventTime"] = time.into();
        events.push(event);
    }
    events
}

#[tokio::test]
async fn each_event_of_an_object_is_processed_once_though_it_repeats_the_sequencer_of_the_write() {
    let by_identity = Operation::new("a");
    let queue = Sqs::new().envelope(Envelope::S3);
    let world = World::new();
    let direct = world.with_handler(S3::new(), &by_identity, world.raw_handler());
    let events = events_of_one_write();
    for _ in 0..2 {
        for event in &events {
            assert_eq!(world.invoke(&direct, &batch([event.clone()])).await.unwrap(), Value::Null);
        }
    }
    assert_eq!(world.ledger.total(), events.len());
    let world = World::new();
    let queued = world.with_handler(queue, &by_identity, world.raw_handler());
    for (at, event) in events.iter().chain(&events).enumerate() {
        let message = with_body(&format!("m-{at}"), &batch([event.clone()]).to_string());
        assert!(world.returned(&queued, &batch([message])).await.is_empty());
    }
    assert_eq!(world.ledger.total(), events.len());
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
