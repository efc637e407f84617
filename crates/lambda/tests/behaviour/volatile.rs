//! Keys that differ on each delivery, and keys that many records share, are refused at start.

use lambda_idempotency::{
    ConfigError, Operation,
    powertools::PowertoolsKeys,
    record,
    source::{
        ActiveMq, DocumentDb, DynamoDbStream, Envelope, EventBridge, Kafka, Kinesis, Pipe,
        RabbitMq, S3, Sns, Source, Sqs,
    },
};

use crate::{
    secrets_capture::Captured,
    support::{World, nothing},
};

fn built(source: impl Source, operation: &Operation) -> Result<(), ConfigError> {
    World::new().idempotency().on(source, operation, nothing).map(drop)
}

fn place() -> Operation {
    Operation::new("place")
}

fn sqs() -> Sqs {
    Sqs::new()
}

/// A pipe of a queue.
fn pipe(queue: Sqs) -> Result<(), ConfigError> {
    built(Pipe::of(queue), &place())
}

#[test]
fn a_key_or_fingerprint_that_differs_on_each_delivery_is_refused() {
    let key = |path| built(sqs().key(record(path)), &place());
    let python = || place().powertools(PowertoolsKeys::python("place"));
    let (active, rabbit) = (ActiveMq::new, RabbitMq::new);
    let redelivered = record("[data, redelivered]");
    let out_time = record("[data, brokerOutTime]");
    for (refused, what, member) in [
        (key("receiptHandle"), "key", "receiptHandle"),
        (key("@"), "key", "receiptHandle"),
        (key("[messageId, receiptHandle]"), "key", "receiptHandle"),
        (key("{a: attributes}"), "key", "attributes.ApproximateReceiveCount"),
        (key("to_string(@)"), "key", "receiptHandle"),
        (key("join('-', [messageId, receiptHandle])"), "key", "receiptHandle"),
        (key("[receiptHandle][0]"), "key", "receiptHandle"),
        (key("not_null(receiptHandle)"), "key", "receiptHandle"),
        (key("merge(@, {x: 'y'})"), "key", "receiptHandle"),
        (key("sort([messageId, receiptHandle])"), "key", "receiptHandle"),
        (built(sqs().whole_record(), &place().key("@")), "key", "receiptHandle"),
        (
            built(sqs().whole_record(), &place().key("messageId").fingerprint("@")),
            "fingerprint",
            "receiptHandle",
        ),
        (built(sqs().fingerprint(record("@")), &place().key("id")), "fingerprint", "receiptHandle"),
        (built(sqs().key(record("@")).envelope(Envelope::Sns), &place()), "key", "receiptHandle"),
        (built(sqs().key(record("@")), &python()), "key", "receiptHandle"),
        (built(sqs().key(record("receiptHandle")), &python()), "key", "receiptHandle"),
        (pipe(sqs().queue("orders").key(record("@"))), "key", "receiptHandle"),
        (pipe(sqs().key(record("receiptHandle"))), "key", "receiptHandle"),
        (pipe(sqs().key(record("[body, attributes]"))), "key", "attributes.ApproximateReceive"),
        (
            pipe(sqs().key(record("attributes.ApproximateReceiveCount"))),
            "key",
            "ApproximateReceiveCount",
        ),
        (pipe(sqs().whole_record().key("@")), "key", "receiptHandle"),
        (pipe(sqs().key("id").fingerprint(record("@"))), "fingerprint", "receiptHandle"),
        (built(Pipe::of(active().key(out_time.clone())), &place()), "key", "brokerOutTime"),
        (
            built(Pipe::of(active().broker("orders").key(redelivered.clone())), &place()),
            "key",
            "redelivered",
        ),
        (built(active().key(record("@")), &place()), "key", "redelivered"),
        (built(active().key(out_time), &place()), "key", "brokerOutTime"),
        (built(rabbit().key(redelivered.clone()), &place()), "key", "redelivered"),
        (built(Pipe::of(rabbit().key(redelivered)), &place()), "key", "redelivered"),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, ConfigError::Key(_)), "{error}");
        let text = error.to_string();
        let parts = [what, member, "`place`", "differs each time", "use values that stay the same"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn a_key_of_stable_values_is_accepted() {
    let whole = record("@");
    for accepted in [
        built(sqs(), &place()),
        built(sqs(), &place().key("@")),
        built(sqs(), &place().key("receiptHandle")),
        built(sqs().whole_record(), &place()),
        built(sqs().whole_record(), &place().key("body")),
        built(sqs().key(record("[messageId, md5OfBody, attributes.SentTimestamp]")), &place()),
        built(sqs().key(record("attributes.MessageDeduplicationId")), &place()),
        pipe(sqs()),
        pipe(sqs().key("id")),
        pipe(sqs().key(record("messageId"))),
        built(Pipe::of(Kinesis::new().key(whole.clone())), &place()),
        built(Pipe::of(DynamoDbStream::new().key(whole.clone())), &place()),
        built(ActiveMq::new().key(record("[messageID, data]")), &place()),
        built(EventBridge::new().key(whole.clone()), &place()),
        built(Kafka::new().key(whole.clone()), &place()),
        built(Sns::new().key(whole), &place()),
    ] {
        assert_eq!(accepted, Ok(()));
    }
}

/// The messages that building a function logs.
fn logged(source: impl Source, operation: &Operation) -> String {
    let captured = Captured::default();
    let guard = captured.start();
    built(source, operation).unwrap();
    drop(guard);
    captured.text()
}

#[test]
fn a_key_that_may_differ_causes_a_warning() {
    let key = record("messageAttributes.id.stringValue || receiptHandle");
    let text = logged(sqs().key(key), &place());
    assert!(text.contains("WARN") && text.contains("reads `receiptHandle`"), "{text}");
}

#[test]
fn a_key_that_names_a_thing_and_not_its_change_causes_a_warning() {
    let table = |key| logged(DynamoDbStream::new(), &place().key(key));
    let record_of_table = |key| logged(DynamoDbStream::new().key(record(key)), &place());
    let pipe = |table: DynamoDbStream| logged(Pipe::of(table), &place());
    let collection = |key| logged(DocumentDb::new(), &place().key(key));
    let bucket = |key| logged(S3::new(), &place().key(key));
    let notified = |key| logged(sqs().envelope(Envelope::S3), &place().key(key));
    let warning = "the key can be the same for several changes of one";
    for (text, thing) in [
        (table("keys.id"), "item"),
        (table("[keys.id, eventName]"), "item"),
        (table("newImage.id"), "item"),
        (table("newImage.status == 'PAID' && keys.id"), "item"),
        (table("[keys.id, newImage.total > `100`]"), "item"),
        (record_of_table("dynamodb.Keys.id.S"), "item"),
        (
            logged(
                DynamoDbStream::new().whole_record(),
                &place().key("[eventSourceARN, dynamodb.Keys]"),
            ),
            "item",
        ),
        (pipe(DynamoDbStream::new().key(record("dynamodb.Keys.id.S"))), "item"),
        (pipe(DynamoDbStream::new().table("orders").key("keys.id")), "item"),
        (collection("documentKey"), "document"),
        (collection("[ns, fullDocument._id]"), "document"),
        (logged(DocumentDb::new().key(record("event.documentKey")), &place()), "document"),
        (bucket("s3.object.key"), "object"),
        (bucket("[s3.object.key, s3.object.eTag]"), "object"),
        (bucket("[s3.bucket.name, s3.object.key]"), "object"),
        (notified("s3.object.key"), "object"),
    ] {
        assert!(text.contains("WARN") && text.contains(warning), "{text}");
        assert!(text.contains(&format!("name the {thing} and its change")), "{text}");
        let recommends_image = text.contains("newImage.version]\")`");
        assert_eq!(text.contains("(it refuses removals)"), recommends_image, "{text}");
    }
    for text in [
        logged(DynamoDbStream::new(), &place()),
        table("@"),
        table("[keys.id, newImage.version]"),
        table("[newImage.id, newImage.version]"),
        table("newImage.status == 'PAID' && [keys.id, newImage.version]"),
        record_of_table("[eventSourceARN, eventID]"),
        record_of_table("dynamodb.SequenceNumber"),
        logged(Pipe::of(sqs().key(record("messageId"))), &place()),
        logged(Pipe::of(sqs().key("keys.id")), &place()),
        collection("[ns, _id]"),
        collection("[documentKey, fullDocument.version]"),
        bucket("[s3.bucket.name, s3.object.key, s3.object.eTag]"),
        bucket("s3"),
        notified("[s3.bucket.arn, s3.object.key, s3.object.versionId]"),
        logged(sqs(), &place().key("keys.id")),
    ] {
        assert!(!text.contains(warning), "{text}");
    }
}

#[test]
fn a_key_with_a_constant_in_place_of_a_missing_field_is_refused() {
    let python = || PowertoolsKeys::python("place");
    let record = record("messageAttributes.id.stringValue || 'none'");
    let mut refused = vec![built(sqs().key(record), &place())];
    for operation in [
        place().key("id || 'none'"),
        place().key("[tenant, not_null(id, 'none')]"),
        place().key("join('-', [tenant, id || 'none'])"),
    ] {
        refused.push(built(sqs(), &operation));
    }
    for error in refused {
        let error = error.unwrap_err().to_string();
        for part in ["operation `place`", "that lack a field", ".optional("] {
            assert!(error.contains(part), "{error}");
        }
    }
    let shared = place().key("id || 'none'").powertools(python());
    let error = built(sqs(), &shared).unwrap_err().to_string();
    for part in ["operation `place`", "records that lack a field", "accept_collisions()`"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(!error.contains(".optional("), "it would be refused: {error}");
    for operation in [
        place().key("['orders', id]"),
        place().key("id").fingerprint("amount || `0`"),
        place().key("id || 'none'").powertools(python().accept_collisions()),
    ] {
        assert_eq!(built(sqs(), &operation), Ok(()), "{operation:?}");
    }
}

#[test]
fn a_key_that_is_one_of_a_few_values_is_refused() {
    let python = || PowertoolsKeys::python("place");
    let contains = built(sqs().key(record("contains(body, 'a')")), &place());
    let mut refused = vec![(contains, "`contains`")];
    for (operation, by) in [
        (place().key("length(items)"), "`length`"),
        (place().key("type(@)"), "`type`"),
        (place().key("amount > `100`"), "a comparison"),
        (place().key("!paid"), "`!`"),
        (place().key("[starts_with(id, 'a')]"), "`starts_with`"),
        (place().key("[a == b][0]"), "a comparison"),
        (place().key("(paid == `true`) || id"), "a comparison"),
        (place().key("length(items)").powertools(python()), "`length`"),
    ] {
        refused.push((operation.check(), by));
    }
    for (error, by) in refused {
        let error = error.unwrap_err().to_string();
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
