//! Keys that differ on each delivery are refused at start.

use lambda_idempotency::{
    ConfigError, Operation,
    keys::{powertools::PowertoolsKeys, record},
    source::{
        ActiveMq, DynamoDbStream, Envelope, EventBridge, Kafka, Kinesis, Pipe, RabbitMq, Sns,
        Source, Sqs,
    },
};

use crate::support::{World, nothing};

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
        (key("[receiptHandle][0]"), "key", "receiptHandle"),
        (key("not_null(messageAttributes.id.stringValue, receiptHandle)"), "key", "receiptHandle"),
        (key("not_null(receiptHandle)"), "key", "receiptHandle"),
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
