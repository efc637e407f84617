//! The command `event`: its envelopes have the members that AWS's own samples have, and the function reads them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod ran;

use std::collections::BTreeSet;

use ran::{Ran, command, fed};
use serde_json::Value;

fn event(arguments: &[&str]) -> Value {
    Ran::from(command(["event"]).args(arguments)).code(0).json()
}

fn sample(name: &str) -> Value {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// The paths of all members of a document, without the positions in lists.
fn members(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let path = format!("{path}/{name}");
                members(value, &path, into);
                into.insert(path);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| members(value, path, into)),
        _ => {}
    }
}

/// A source, AWS's sample of it, and the members of that sample in which events differ from each other: those of its
/// payload and headers, and those that AWS leaves out in newer versions.
const SAMPLES: &[(&str, &str, &[&str])] = &[
    ("sqs", "crates/lambda/tests/events/sqsEvent.json", &["/Records/messageAttributes/"]),
    ("sqs-fifo", "crates/lambda/tests/events/own/sqsFifoGroups.json", &[]),
    ("sns", "crates/lambda/tests/events/snsEvent.json", &["/Records/Sns/MessageAttributes/"]),
    (
        "eventbridge",
        "crates/lambda/tests/events/eventBridgeEvent.json",
        &["/detail/", "/replay-name"],
    ),
    ("kinesis", "crates/lambda/tests/events/kinesisStreamEvent.json", &[]),
    (
        "dynamodb",
        "crates/lambda/tests/events/dynamoStreamEvent.json",
        &["/Records/dynamodb/Keys/", "/Records/dynamodb/NewImage/", "/Records/dynamodb/OldImage"],
    ),
    ("kafka", "crates/lambda/tests/events/kafkaEventMsk.json", &["/records/"]),
    ("s3", "crates/lambda/tests/events/s3Event.json", &[]),
    (
        "activemq",
        "crates/lambda/tests/events/activeMQEvent.json",
        &["/messages/properties/", "/messages/connectionId", "/messages/persistent"],
    ),
    ("rabbitmq", "crates/lambda/tests/events/rabbitMQEvent.json", &["/rmqMessagesByQueue/"]),
    (
        "documentdb",
        "crates/lambda/tests/events/aws_lambda_events/example-documentdb-insert-event.json",
        &["/events/event/fullDocument/"],
    ),
    ("http", "crates/lambda/tests/events/http/lambdaFunctionUrlEvent.json", &["/headers/"]),
    ("scheduler", "crates/lambda/tests/events/own/scheduler.json", &["/report"]),
    ("pipe", "crates/lambda/tests/events/own/pipeSqs.json", &[]),
];

#[test]
fn envelopes_have_all_members_of_awss_samples() {
    let compare = |made: &Value, sample: &Value, different: &[&str], at_least: usize| {
        let (mut has, mut expected) = (BTreeSet::new(), BTreeSet::new());
        members(made, "", &mut has);
        members(sample, "", &mut expected);
        expected.retain(|path| !different.iter().any(|prefix| path.starts_with(prefix)));
        let missing: Vec<_> = expected.difference(&has).collect();
        assert!(expected.len() >= at_least && missing.is_empty(), "{missing:?} in {made}");
    };
    for (source, file, different) in SAMPLES {
        compare(&event(&[source]), &sample(file), different, 2);
    }
    // The members that the prefixes above leave out, because their names hold the queue or topic.
    let first = |value: &Value| value.as_object().unwrap().values().next().unwrap()[0].clone();
    for (source, file, list, different) in [
        ("kafka", "kafkaEventMsk.json", "records", "/headers/"),
        ("rabbitmq", "rabbitMQEvent.json", "rmqMessagesByQueue", "/basicProperties/headers/"),
    ] {
        let sample = sample(&format!("crates/lambda/tests/events/{file}"));
        compare(&first(&event(&[source])[list]), &first(&sample[list]), &[different], 6);
    }
}

/// What `keys` finds in an event: source, id and payload of each record.
fn keys(event: &Value) -> Value {
    let name = format!("lambda-idempotency-event-{}.json", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, event.to_string()).unwrap();
    let ran = Ran::from(command(["keys", "--json"]).arg(&path));
    std::fs::remove_file(path).unwrap();
    ran.json()
}

#[test]
fn the_library_recognises_every_source_and_finds_the_payload() {
    for (source, recognised) in [
        ("sqs", "sqs"),
        ("sqs-fifo", "sqs"),
        ("sns", "sns"),
        ("sns-in-sqs", "sqs"),
        ("eventbridge", "eventbridge"),
        ("scheduler", "scheduler"),
        ("kinesis", "kinesis"),
        ("dynamodb", "dynamodb"),
        ("documentdb", "documentdb"),
        ("kafka", "kafka"),
        ("s3", "s3"),
        ("activemq", "activemq"),
        ("rabbitmq", "rabbitmq"),
        ("pipe", "pipe"),
        ("http", "http"),
        ("direct", "invoke"),
    ] {
        let body = if source == "s3" { "o-7" } else { r#"{"orderId":"o-7"}"# };
        let report = keys(&event(&[source, "--body", body]));
        let records = report["records"].as_array().unwrap();
        assert_eq!(records.len(), 1, "{source}");
        assert_eq!(records[0]["source"], recognised, "{source}");
        assert!(records[0].to_string().contains("o-7"), "{source}: {}", records[0]);
    }
}

#[test]
fn ids_are_new_unless_one_is_given() {
    let id = |arguments: &[&str]| event(arguments)["Records"][0]["messageId"].clone();
    assert_ne!(id(&["sqs"]), id(&["sqs"]));
    assert_eq!(id(&["sqs", "--id", "m-1"]), "m-1");
}

#[test]
fn each_body_is_a_record_and_one_may_come_from_standard_input() {
    let event = fed(&mut command(["event", "sqs", "--body", "first", "--body", "-"]), "second");
    let event = event.json();
    let bodies = [&event["Records"][0]["body"], &event["Records"][1]["body"]];
    assert_eq!(bodies, ["first", "second"]);
    assert_eq!(event["Records"][0]["md5OfBody"], "8b04d5e3775d298e78455efc5ca404d5");
}

#[test]
fn a_payload_that_the_source_cannot_carry_is_refused() {
    for (arguments, said) in [
        (["eventbridge", "--body", "text"].as_slice(), "not valid JSON"),
        (&["http", "--body", "a", "--body", "b"], "give `--body` once"),
        (&["dynamodb", "--body", "[]"], "a JSON object"),
        (&["documentdb", "--body", "7"], "a JSON object"),
        (&["sqs", "--body", "-", "--body", "-"], "more than once"),
        (&["sqs", "--body", "@/no/such/file"], "cannot read /no/such/file"),
    ] {
        Ran::from(command(["event"]).args(arguments)).refused(said);
    }
}
