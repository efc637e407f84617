//! The keys that the guide recommends for records: what each recognises as the same work, and what it must not merge.

use lambda_idempotency::{
    Function, Operation,
    keys::record,
    source::{
        ActiveMq, DocumentDb, DynamoDbStream, EventBridge, Invoke, Kafka, Kinesis, S3, Sns, Sqs,
    },
};
use serde_json::{Value, json};

use crate::{
    support::{FIFO, World, batch, bus_event, grouped, notification, order},
    support_streams::{
        active_mq, change, collection, document, message, of_active_mq, put, topic, uploaded,
    },
};

/// A change of a record: the values at these pointers.
type Change = &'static [(&'static str, &'static str)];

/// The sample, other deliveries of the same work, and deliveries of other work: each a record.
struct Case {
    key: &'static str,
    function: fn(&World, &Operation) -> Function,
    event: fn(Value) -> Value,
    sample: Value,
    same: &'static [Change],
    other: &'static [Change],
}

fn changed(record: &Value, change: Change) -> Value {
    let mut record = record.clone();
    for (pointer, value) in change {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        record.pointer_mut(parent).unwrap()[name] =
            serde_json::from_str(value).unwrap_or_else(|_| (*value).into());
    }
    record
}

fn cases() -> Vec<Case> {
    const REDELIVERED: Change = &[("/attributes/ApproximateReceiveCount", "\"2\"")];
    const SENT_AGAIN: Change = &[("/messageId", "m-2")];
    let mut fifo = grouped(order("m-1", "a", ""), FIFO, "g-1");
    fifo["attributes"]["MessageDeduplicationId"] = "d-1".into();
    let mut relayed = order("m-1", "a", "");
    relayed["messageAttributes"] = json!({ "idempotency-key": { "stringValue": "k-1" } });
    let mut written = change(1, "i", "a", "");
    written["dynamodb"]["Keys"] = json!({ "id": { "S": "i" } });
    written["dynamodb"]["NewImage"] =
        json!({ "id": { "S": "i" }, "orderId": { "S": "o" }, "version": { "N": "1" } });
    let mut published = bus_event("e-1", "Placed", &json!({}));
    published["resources"] = json!(["k-1"]);
    let mut produced = message(0, 1, "a", "");
    produced["headers"] = json!([{ "idempotency-key": [107, 49] }]);
    vec![
        Case {
            key: "[eventSourceARN, attributes.MessageGroupId, attributes.MessageDeduplicationId]",
            function: |world, operation| {
                let key = record(
                    "[eventSourceARN, attributes.MessageGroupId, attributes.MessageDeduplicationId]",
                );
                world.with_handler(Sqs::new().key(key), operation, world.raw_handler())
            },
            event: |record| batch([record]),
            sample: fifo,
            // Sent on another day, too: a producer must not give one id to two pieces of work.
            same: &[REDELIVERED, SENT_AGAIN],
            other: &[
                &[("/attributes/MessageDeduplicationId", "d-2")],
                &[("/attributes/MessageGroupId", "g-2")],
                &[("/eventSourceARN", "arn:aws:sqs:eu-west-1:111122223333:refunds.fifo")],
            ],
        },
        Case {
            key: "messageAttributes.\"idempotency-key\".stringValue",
            function: |world, operation| {
                let key = record("messageAttributes.\"idempotency-key\".stringValue");
                world.with_handler(Sqs::new().key(key), operation, world.raw_handler())
            },
            event: |record| batch([record]),
            sample: relayed,
            same: &[REDELIVERED, SENT_AGAIN],
            other: &[&[("/messageAttributes/idempotency-key/stringValue", "k-2")]],
        },
        Case {
            key: "Sns.MessageId",
            function: |world, operation| {
                let source = Sns::new().key(record("Sns.MessageId"));
                world.with_handler(source, operation, world.raw_handler())
            },
            event: |record| batch([record]),
            sample: notification("n-1", "{}")["Records"][0].clone(),
            same: &[&[("/Sns/Timestamp", "later")]],
            other: &[&[("/Sns/MessageId", "n-2")]],
        },
        Case {
            key: "[eventSourceARN, eventID]",
            function: |world, operation| {
                let source = Kinesis::new().key(record("[eventSourceARN, eventID]"));
                world.with_handler(source, operation, world.raw_handler())
            },
            event: |record| batch([record]),
            sample: put(1, "k", "a", ""),
            same: &[&[("/kinesis/approximateArrivalTimestamp", "7")]],
            other: &[&[("/eventID", "shardId-000000000006:7")]],
        },
        Case {
            key: "[keys.id, newImage.version]",
            function: |world, operation| {
                let operation = operation.clone().key("[keys.id, newImage.version]");
                world.with_handler(DynamoDbStream::new(), &operation, world.raw_handler())
            },
            event: |record| batch([record]),
            sample: written.clone(),
            same: &[&[("/eventID", "e-2"), ("/eventName", "INSERT")]],
            other: &[
                &[("/dynamodb/NewImage/version/N", "\"2\"")],
                &[("/dynamodb/Keys/id/S", "other")],
            ],
        },
        Case {
            key: "[ns, documentKey._id.\"$oid\", _id._data]",
            function: |world, operation| {
                let operation = operation.clone().key(r#"[ns, documentKey._id."$oid", _id._data]"#);
                world.with_handler(DocumentDb::new(), &operation, world.raw_handler())
            },
            event: |record| collection([record]),
            sample: document(1, "d-1", "a", ""),
            same: &[&[("/event/clusterTime", "7")]],
            other: &[
                &[("/event/_id/_data", "02")],
                &[("/event/documentKey/_id/$oid", "d-2")],
                &[("/event/ns/coll", "refunds")],
            ],
        },
        Case {
            key: "[s3.bucket.name, s3.object.key, eventName, s3.object.sequencer]",
            function: |world, operation| {
                let key = "[s3.bucket.name, s3.object.key, eventName, s3.object.sequencer]";
                world.with_handler(S3::new(), &operation.clone().key(key), world.raw_handler())
            },
            event: |record| batch([record]),
            sample: uploaded("a.pdf", "01"),
            same: &[&[("/eventTime", "later")]],
            other: &[
                &[("/s3/object/sequencer", "\"02\"")],
                &[("/eventName", "ObjectRemoved:Delete")],
                &[("/s3/object/key", "b.pdf")],
                &[("/s3/bucket/name", "other")],
            ],
        },
        Case {
            key: "[s3.bucket.name, s3.object.key, s3.object.eTag]",
            function: |world, operation| {
                let key = "[s3.bucket.name, s3.object.key, s3.object.eTag]";
                world.with_handler(S3::new(), &operation.clone().key(key), world.raw_handler())
            },
            event: |record| batch([record]),
            sample: uploaded("a.pdf", "01"),
            same: &[&[("/s3/object/sequencer", "\"02\"")]],
            other: &[
                &[("/s3/object/eTag", "e52e")],
                &[("/s3/object/key", "b.pdf")],
                &[("/s3/bucket/name", "other")],
            ],
        },
        Case {
            key: "headers.\"idempotency-key\"",
            function: |world, operation| {
                let source = Kafka::new().key(record("headers.\"idempotency-key\""));
                world.with_handler(source, operation, world.raw_handler())
            },
            event: |record| topic([record]),
            sample: produced,
            same: &[&[("/offset", "2")]],
            other: &[&[("/headers", r#"[{ "idempotency-key": [107, 50] }]"#)]],
        },
        Case {
            key: "resources[0]",
            function: |world, operation| {
                let source = EventBridge::new().event_source("shop").key(record("resources[0]"));
                world.with_handler(source, operation, world.raw_handler())
            },
            event: |event| event,
            sample: published,
            same: &[&[("/id", "e-2")]],
            other: &[&[("/resources", r#"["k-2"]"#)]],
        },
        Case {
            key: "[destination.physicalName, messageID, data]",
            function: |world, operation| {
                let operation =
                    operation.clone().key("[destination.physicalName, messageID, data]");
                let source = ActiveMq::new().whole_record();
                world.with_handler(source, &operation, world.raw_handler())
            },
            event: |record| active_mq([record]),
            sample: of_active_mq("1", "{}"),
            same: &[&[("/redelivered", "true")]],
            other: &[
                &[("/messageID", "\"2\"")],
                &[("/data", "W10=")],
                &[("/destination/physicalName", "refunds")],
            ],
        },
    ]
}

#[tokio::test]
async fn each_recommended_key_merges_the_same_work_and_no_other() {
    for Case { key, function, event, sample, same, other } in cases() {
        let world = World::new();
        let function = function(&world, &Operation::new("work"));
        let mut done = 0;
        for (changes, is_other) in [(&[[].as_slice()][..], true), (same, false), (other, true)] {
            for change in changes {
                let event = event(changed(&sample, change));
                let answer = world.invoke(&function, &event).await;
                done += usize::from(is_other);
                assert_eq!(world.ledger.total(), done, "`{key}`: {change:?} {answer:?}");
            }
        }
    }
}

/// Five changes of an order, which is paid twice, in a stream and in a sweep for what the stream missed.
#[tokio::test]
async fn a_sweep_beside_a_stream_processes_each_version_of_an_item_once() {
    let world = World::new();
    let operation = Operation::new("index").key("[newImage.orderId, newImage.version]");
    let sources = (DynamoDbStream::new().table("orders"), Invoke::new());
    let function = world.with_handler(sources, &operation, world.raw_handler());
    let statuses = ["paid", "paid", "refunded", "paid", "shipped"];
    for (version, status) in (1..).zip(statuses) {
        let mut written = change(version, "o-1", "a", "");
        written["dynamodb"]["NewImage"] = json!({
            "orderId": { "S": "o-1" }, "status": { "S": status },
            "version": { "N": version.to_string() },
        });
        assert!(world.returned(&function, &batch([written])).await.is_empty());
    }
    assert_eq!(world.ledger.total(), statuses.len());
    let found = |version: u32| json!({ "newImage": { "orderId": "o-1", "version": version } });
    for version in 1..=6 {
        world.invoke(&function, &found(version)).await.unwrap();
    }
    assert_eq!(world.ledger.total(), statuses.len() + 1, "the sixth was missed by the stream");
}
