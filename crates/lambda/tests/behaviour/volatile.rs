//! What a source changes in a record when it delivers it again: no key reads it, at whatever path, and a function whose key
//! does is refused.

use lambda_idempotency::{
    ConfigError, Function, Operation,
    keys::{powertools::PowertoolsKeys, record},
    source::{
        ActiveMq, DocumentDb, DynamoDbStream, Envelope, EventBridge, Kafka, Kinesis, Pipe,
        RabbitMq, S3, Sns, Source, Sqs,
    },
};
use serde_json::{Value, json};

use crate::{
    support::{FIFO, World, batch, bus_event, grouped, nothing, notification, order},
    support_streams::{
        active_mq, change, collection, document, message, of_active_mq, of_rabbit_mq, put,
        rabbit_mq, topic, uploaded,
    },
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
    let redelivered = record("[data, redelivered]");
    for (refused, what, member) in [
        (key("receiptHandle"), "key", "receiptHandle"),
        (key("[messageId, receiptHandle]"), "key", "receiptHandle"),
        (key("{a: attributes}"), "key", "attributes.ApproximateReceiveCount"),
        (key("[receiptHandle][0]"), "key", "receiptHandle"),
        (key("not_null(messageAttributes.id.stringValue, receiptHandle)"), "key", "receiptHandle"),
        (built(sqs().whole_record(), &place().key("@")), "key", "receiptHandle"),
        (built(sqs().fingerprint(record("@")), &place().key("id")), "fingerprint", "receiptHandle"),
        (built(sqs().key(record("@")).envelope(Envelope::Sns), &place()), "key", "receiptHandle"),
        (built(sqs().key(record("receiptHandle")), &python()), "key", "receiptHandle"),
        (pipe(sqs().queue("orders").key(record("@"))), "key", "receiptHandle"),
        (pipe(sqs().whole_record().key("@")), "key", "receiptHandle"),
        (pipe(sqs().key("id").fingerprint(record("@"))), "fingerprint", "receiptHandle"),
        (built(ActiveMq::new().key(redelivered.clone()), &place()), "key", "redelivered"),
        (built(RabbitMq::new().key(redelivered), &place()), "key", "redelivered"),
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
    for accepted in [
        built(sqs(), &place().key("receiptHandle")),
        built(sqs().whole_record(), &place().key("body")),
        built(sqs().key(record("[messageId, md5OfBody, attributes.SentTimestamp]")), &place()),
        pipe(sqs().key(record("messageId"))),
        built(Pipe::of(Kinesis::new().key(record("@"))), &place()),
        built(ActiveMq::new().key(record("[messageID, data]")), &place()),
        built(Kafka::new().key(record("@")), &place()),
    ] {
        assert_eq!(accepted, Ok(()));
    }
}

type Functions = fn(&World, &str) -> Result<Function, ConfigError>;

/// A source, the event of a record, a record, and what its broker changes in it.
struct Case {
    function: Functions,
    event: fn(Value) -> Value,
    record: Value,
    redelivered: &'static [(&'static str, &'static str)],
}

macro_rules! by {
    ($source:expr) => {
        |world, path| {
            let source = $source.key(record(path));
            world.idempotency().on(source, &Operation::new("work"), world.raw_handler())
        }
    };
    (pipe $source:expr) => {
        |world, path| {
            let source = Pipe::of($source.key(record(path)));
            world.idempotency().on(source, &Operation::new("work"), world.raw_handler())
        }
    };
}

const BY_SQS: &[(&str, &str)] =
    &[("/receiptHandle", "\"other\""), ("/attributes/ApproximateReceiveCount", "\"2\"")];
/// As ActiveMQ's redelivery after a rollback, by another connection of the poller.
const BY_ACTIVE_MQ: &[(&str, &str)] =
    &[("/redelivered", "true"), ("/brokerOutTime", "1598827812000"), ("/connectionId", "\"c-2\"")];
/// As a quorum queue's: it counts in the headers from the first redelivery on.
const BY_RABBIT_MQ: &[(&str, &str)] = &[
    ("/redelivered", "true"),
    ("/basicProperties/headers/x-delivery-count", "1"),
    ("/basicProperties/headers/x-acquired-count", "1"),
];
/// By a queue of dead letters, which sends messages back after a time.
const BY_DEAD_LETTERS: &[(&str, &str)] =
    &[("/basicProperties/headers/x-death", r#"[{ "count": 2, "queue": "orders" }]"#)];
const SAME: &[(&str, &str)] = &[];

fn cases() -> Vec<Case> {
    let mut fifo = grouped(order("m-1", "a", ""), FIFO, "g-1");
    fifo["attributes"]["MessageDeduplicationId"] = "d-1".into();
    fifo["messageAttributes"] = json!({ "order": { "stringValue": "o-1" } });
    let mut active = of_active_mq("1", "{}");
    active["brokerInTime"] = 1_598_827_811_958_u64.into();
    active["brokerOutTime"] = 1_598_827_811_959_u64.into();
    active["connectionId"] = "c-1".into();
    let mut rabbit = of_rabbit_mq("1", "{}");
    rabbit["basicProperties"]["headers"] = json!({ "order": { "bytes": [111, 49] }, "n": 10 });
    rabbit["basicProperties"]["correlationId"] = "c-1".into();
    let piped = |mut record: Value, source: &str, arn: &str, key: &str| {
        record["eventSource"] = source.into();
        record["eventSourceArn"] = arn.into();
        record["eventSourceKey"] = key.into();
        record
    };
    let broker = "arn:aws:mq:eu-west-1:1:broker:shop:b-1";
    let list: fn(Value) -> Value = |record| json!([record]);
    let records: fn(Value) -> Value = |record| batch([record]);
    let of = |function, event, record: &Value, redelivered| Case {
        function,
        event,
        record: record.clone(),
        redelivered,
    };
    vec![
        of(by!(Sqs::new()), records, &fifo, BY_SQS),
        of(by!(pipe Sqs::new()), list, &fifo, BY_SQS),
        of(by!(ActiveMq::new()), |record| active_mq([record]), &active, BY_ACTIVE_MQ),
        of(
            by!(pipe ActiveMq::new()),
            list,
            &piped(active.clone(), "aws:amq", broker, "orders"),
            BY_ACTIVE_MQ,
        ),
        of(by!(RabbitMq::new()), |record| rabbit_mq([record]), &rabbit, BY_RABBIT_MQ),
        of(by!(RabbitMq::new()), |record| rabbit_mq([record]), &rabbit, BY_DEAD_LETTERS),
        of(
            by!(pipe RabbitMq::new()),
            list,
            &piped(rabbit.clone(), "aws:rmq", broker, "orders"),
            BY_RABBIT_MQ,
        ),
        of(by!(Sns::new()), records, &notification("n-1", "{}")["Records"][0], SAME),
        of(by!(S3::new()), records, &uploaded("a.pdf", "01"), SAME),
        of(by!(EventBridge::new()), |event| event, &bus_event("e-1", "Placed", &json!({})), SAME),
        of(by!(Kinesis::new()), records, &put(1, "k", "a", ""), SAME),
        of(by!(DynamoDbStream::new()), records, &change(1, "k", "a", ""), SAME),
        of(by!(DocumentDb::new()), |it| collection([it]), &document(1, "d-1", "a", ""), SAME),
        of(by!(Kafka::new()), |record| topic([record]), &message(0, 1, "a", ""), SAME),
    ]
}

fn changed(record: &Value, changes: &[(&str, &str)]) -> Value {
    let mut record = record.clone();
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        record.pointer_mut(parent).unwrap()[name] = serde_json::from_str(value).unwrap();
    }
    record
}

/// The paths of all members, that of the record itself first.
fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(if at.is_empty() { "@".to_owned() } else { at.to_owned() });
    for (name, member) in value.as_object().into_iter().flatten() {
        let dot = if at.is_empty() { "" } else { "." };
        paths(member, &format!("{at}{dot}\"{name}\""), found);
    }
}

#[tokio::test]
async fn no_key_reads_what_a_source_changes_when_it_delivers_a_record_again() {
    let mut refused = 0;
    for Case { function, event, record, redelivered } in cases() {
        let again = changed(&record, redelivered);
        let mut all = Vec::new();
        paths(&again, "", &mut all);
        for path in all {
            let world = World::instant();
            let Ok(function) = function(&world, &path) else {
                refused += 1;
                continue;
            };
            for record in [&record, &again] {
                // Members without a value are no keys.
                let _ = world.invoke(&function, &event(record.clone())).await;
            }
            assert!(world.ledger.total() <= 1, "`{path}` of {again}");
        }
    }
    assert!(refused >= 30, "{refused} keys that differ on each delivery");
}
