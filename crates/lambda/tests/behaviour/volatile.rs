//! Keys that differ on each delivery, and keys that many records share, are refused at start.

use lambda_idempotency::{
    Call, ConfigError, Failure, Function, Idempotency, Operation,
    powertools::PowertoolsKeys,
    record,
    source::{
        ActiveMq, DocumentDb, DynamoDbStream, Envelope, EventBridge, Kafka, Pipe, RabbitMq, S3,
        Sns, Sqs,
    },
};
use serde_json::Value;

use crate::{secrets_capture::Captured, support::World};

async fn nothing(_: Value, _: Call) -> Result<(), Failure> {
    Ok(())
}

type Build = fn(&Idempotency, Operation) -> Result<Function, ConfigError>;

const SQS: Build = |idempotency, operation| idempotency.on(Sqs::new(), &operation, nothing);
const PIPE: Build =
    |idempotency, operation| idempotency.on(Pipe::of(Sqs::new()), &operation, nothing);
const ACTIVE_MQ: Build =
    |idempotency, operation| idempotency.on(ActiveMq::new(), &operation, nothing);
const RABBIT_MQ: Build =
    |idempotency, operation| idempotency.on(RabbitMq::new(), &operation, nothing);

fn built(build: Build, operation: Operation) -> Result<(), ConfigError> {
    build(&World::new().idempotency(), operation).map(drop)
}

fn place() -> Operation {
    Operation::new("place")
}

#[test]
fn a_key_or_fingerprint_that_differs_on_each_delivery_is_refused() {
    let python = || PowertoolsKeys::python("place");
    for (build, operation, what, member) in [
        (SQS, place().key(record("receiptHandle")), "key", "receiptHandle"),
        (SQS, place().key(record("@")), "key", "receiptHandle"),
        (SQS, place().key(record("[messageId, receiptHandle]")), "key", "receiptHandle"),
        (SQS, place().key(record("{a: attributes}")), "key", "attributes.ApproximateReceiveCount"),
        (SQS, place().key(record("to_string(@)")), "key", "receiptHandle"),
        (SQS, place().key(record("join('-', [messageId, receiptHandle])")), "key", "receiptHandle"),
        (SQS, place().key(record("[receiptHandle][0]")), "key", "receiptHandle"),
        (SQS, place().key(record("not_null(receiptHandle)")), "key", "receiptHandle"),
        (SQS, place().key(record("merge(@, {x: 'y'})")), "key", "receiptHandle"),
        (SQS, place().key(record("sort([messageId, receiptHandle])")), "key", "receiptHandle"),
        (SQS, place().whole_record().key("@"), "key", "receiptHandle"),
        (SQS, place().whole_record().key("messageId").fingerprint("@"), "fingerprint", "receiptH"),
        (SQS, place().key("id").fingerprint(record("@")), "fingerprint", "receiptHandle"),
        (SQS, place().key(record("@")).envelope(Envelope::Sns), "key", "receiptHandle"),
        (SQS, place().key(record("@")).powertools(python()), "key", "receiptHandle"),
        (SQS, place().key(record("receiptHandle")).powertools(python()), "key", "receiptHandle"),
        (PIPE, place().queue("orders").key(record("@")), "key", "receiptHandle"),
        // Without a filter, a queue or a broker may be behind the pipe.
        (PIPE, place().key(record("@")), "key", "receiptHandle"),
        (PIPE, place().key(record("receiptHandle")), "key", "receiptHandle"),
        (PIPE, place().key(record("[body, attributes]")), "key", "attributes.ApproximateReceive"),
        (PIPE, place().key(record("attributes.ApproximateReceiveCount")), "key", "ReceiveCount"),
        (PIPE, place().whole_record().key("@"), "key", "receiptHandle"),
        (PIPE, place().key("id").fingerprint(record("@")), "fingerprint", "receiptHandle"),
        (PIPE, place().key(record("[data, brokerOutTime]")), "key", "brokerOutTime"),
        (PIPE, place().broker("orders").key(record("[data, redelivered]")), "key", "redelivered"),
        (ACTIVE_MQ, place().key(record("@")), "key", "redelivered"),
        (ACTIVE_MQ, place().key(record("[data, brokerOutTime]")), "key", "brokerOutTime"),
        (RABBIT_MQ, place().key(record("[data, redelivered]")), "key", "redelivered"),
    ] {
        let error = built(build, operation.clone()).unwrap_err();
        assert!(matches!(error, ConfigError::Volatile { .. }), "{operation:?}: {error}");
        let text = error.to_string();
        let parts = [what, member, "`place`", "differs each time", "use values that stay the same"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn a_key_of_stable_values_is_accepted() {
    for (build, operation) in [
        (SQS, place()),
        (SQS, place().key("@")),
        (SQS, place().key("receiptHandle")),
        (SQS, place().whole_record()),
        (SQS, place().whole_record().key("body")),
        (SQS, place().key(record("[messageId, md5OfBody, attributes.SentTimestamp]"))),
        (SQS, place().key(record("attributes.MessageDeduplicationId"))),
        (PIPE, place()),
        (PIPE, place().key("id")),
        (PIPE, place().key(record("messageId"))),
        (PIPE, place().stream("orders").key(record("@"))),
        (PIPE, place().source_table("orders").key(record("@"))),
        (ACTIVE_MQ, place().key(record("[messageID, data]"))),
    ] {
        assert_eq!(built(build, operation.clone()), Ok(()), "{operation:?}");
    }
    let world = World::new();
    let whole = || place().key(record("@"));
    assert!(world.idempotency().on(EventBridge::new(), &whole(), nothing).is_ok());
    assert!(world.idempotency().on(Kafka::new(), &whole(), nothing).is_ok());
    assert!(world.idempotency().on(Sns::new(), &whole(), nothing).is_ok());
}

#[test]
fn a_key_that_may_differ_causes_a_warning() {
    let captured = Captured::default();
    let guard = captured.start();
    let key = record("messageAttributes.id.stringValue || receiptHandle");
    built(SQS, place().key(key)).unwrap();
    drop(guard);
    let text = captured.text();
    assert!(text.contains("WARN") && text.contains("reads `receiptHandle`"), "{text}");
}

/// The messages that building a function logs.
fn logged(build: Build, operation: Operation) -> String {
    let captured = Captured::default();
    let guard = captured.start();
    built(build, operation).unwrap();
    drop(guard);
    captured.text()
}

#[test]
fn a_key_that_names_a_thing_and_not_its_change_causes_a_warning() {
    let table: Build =
        |idempotency, operation| idempotency.on(DynamoDbStream::new(), &operation, nothing);
    let collection: Build =
        |idempotency, operation| idempotency.on(DocumentDb::new(), &operation, nothing);
    let bucket: Build = |idempotency, operation| idempotency.on(S3::new(), &operation, nothing);
    let notified = || place().envelope(Envelope::S3);
    let warning = "the key can be the same for several changes of one";
    for (build, operation, thing) in [
        (table, place().key("keys.id"), "item"),
        (table, place().key("[keys.id, eventName]"), "item"),
        (table, place().key("newImage.id"), "item"),
        (table, place().key("newImage.status == 'PAID' && keys.id"), "item"),
        (table, place().key("[keys.id, newImage.total > `100`]"), "item"),
        (table, place().key(record("dynamodb.Keys.id.S")), "item"),
        (table, place().whole_record().key("[eventSourceARN, dynamodb.Keys]"), "item"),
        (PIPE, place().key(record("dynamodb.Keys.id.S")), "item"),
        (PIPE, place().source_table("orders").key("keys.id"), "item"),
        (collection, place().key("documentKey"), "document"),
        (collection, place().key("[ns, fullDocument._id]"), "document"),
        (collection, place().key(record("event.documentKey")), "document"),
        (bucket, place().key("s3.object.key"), "object"),
        (bucket, place().key("[s3.object.key, s3.object.eTag]"), "object"),
        (bucket, place().key("[s3.bucket.name, s3.object.key]"), "object"),
        (SQS, notified().key("s3.object.key"), "object"),
    ] {
        let text = logged(build, operation.clone());
        assert!(text.contains("WARN") && text.contains(warning), "{operation:?}: {text}");
        assert!(text.contains(&format!("name the {thing} and its change")), "{text}");
        let recommends_image = text.contains("newImage.version]\")`");
        assert_eq!(text.contains("(it refuses removals)"), recommends_image, "{text}");
    }
    for (build, operation) in [
        (table, place()),
        (table, place().key("@")),
        (table, place().key("[keys.id, newImage.version]")),
        (table, place().key("[newImage.id, newImage.version]")),
        (table, place().key("newImage.status == 'PAID' && [keys.id, newImage.version]")),
        (table, place().key(record("[eventSourceARN, eventID]"))),
        (table, place().key(record("dynamodb.SequenceNumber"))),
        (PIPE, place().key(record("messageId"))),
        (PIPE, place().key("keys.id")),
        (collection, place().key("[ns, _id]")),
        (collection, place().key("[documentKey, fullDocument.version]")),
        (bucket, place().key("[s3.bucket.name, s3.object.key, s3.object.eTag]")),
        (bucket, place().key("s3")),
        (SQS, notified().key("[s3.bucket.arn, s3.object.key, s3.object.versionId]")),
        (SQS, place().key("keys.id")),
    ] {
        let text = logged(build, operation.clone());
        assert!(!text.contains(warning), "{operation:?}: {text}");
    }
}

#[test]
fn a_key_with_a_constant_in_place_of_a_missing_field_is_refused() {
    let python = || PowertoolsKeys::python("place");
    for operation in [
        place().key("id || 'none'"),
        place().key("[tenant, not_null(id, 'none')]"),
        place().key("join('-', [tenant, id || 'none'])"),
        place().key(record("messageAttributes.id.stringValue || 'none'")),
    ] {
        let error = built(SQS, operation.clone()).unwrap_err().to_string();
        for part in ["operation `place`", "records that lack a field", "`.optional("] {
            assert!(error.contains(part), "{operation:?}: {error}");
        }
    }
    let shared = place().key("id || 'none'").powertools(python());
    let error = built(SQS, shared).unwrap_err().to_string();
    for part in ["operation `place`", "records that lack a field", "accept_collisions()`"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(!error.contains(".optional("), "it would be refused: {error}");
    for operation in [
        place().key("['orders', id]"),
        place().key("id").fingerprint("amount || `0`"),
        place().key("id || 'none'").powertools(python().accept_collisions()),
    ] {
        assert_eq!(built(SQS, operation.clone()), Ok(()), "{operation:?}");
    }
}

#[test]
fn a_key_that_is_one_of_a_few_values_is_refused() {
    let python = || PowertoolsKeys::python("place");
    for (operation, by) in [
        (place().key("length(items)"), "`length`"),
        (place().key("type(@)"), "`type`"),
        (place().key("amount > `100`"), "a comparison"),
        (place().key("!paid"), "`!`"),
        (place().key(record("contains(body, 'a')")), "`contains`"),
        (place().key("[starts_with(id, 'a')]"), "`starts_with`"),
        (place().key("[a == b][0]"), "a comparison"),
        (place().key("(paid == `true`) || id"), "a comparison"),
        (place().key("length(items)").powertools(python()), "`length`"),
    ] {
        let error = operation.check().unwrap_err().to_string();
        for part in ["operation `place`", by, "one of a few values", "[order.id, ..]"] {
            assert!(error.contains(part), "{error}");
        }
    }
    for operation in [
        place().key("[id, length(items)]"),
        place().key("items[?paid == `true`].id"),
        place().key("id").fingerprint("length(items)"),
    ] {
        assert_eq!(operation.check(), Ok(()), "{operation:?}");
    }
}
