//! Keys that differ on each delivery, and keys that many records share, are refused at start.

use lambda_idempotency::{
    Call, ConfigError, Envelope, Failure, Function, Idempotency, Operation, PowertoolsKeys, record,
};
use serde_json::Value;

use crate::{secrets_capture::Captured, support::World};

async fn nothing(_: Value, _: Call) -> Result<(), Failure> {
    Ok(())
}

type Build = fn(&Idempotency, Operation) -> Result<Function, ConfigError>;

const SQS: Build = |idempotency, operation| idempotency.sqs(operation, nothing);
const PIPE: Build = |idempotency, operation| idempotency.pipe(operation, nothing);
const ACTIVE_MQ: Build = |idempotency, operation| idempotency.active_mq(operation, nothing);
const RABBIT_MQ: Build = |idempotency, operation| idempotency.rabbit_mq(operation, nothing);

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
        (PIPE, place().key(record("@"))),
        (PIPE, place().stream("orders").key(record("@"))),
        (ACTIVE_MQ, place().key(record("[messageID, data]"))),
    ] {
        assert_eq!(built(build, operation.clone()), Ok(()), "{operation:?}");
    }
    let world = World::new();
    let whole = || place().key(record("@"));
    assert!(world.idempotency().event_bridge(whole(), nothing).is_ok());
    assert!(world.idempotency().kafka(whole(), nothing).is_ok());
    assert!(world.idempotency().sns(whole(), nothing).is_ok());
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
