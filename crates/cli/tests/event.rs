//! The command `event`: the library recognises its envelopes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod ran;

use ran::{Ran, command, fed};
use serde_json::Value;

fn event(arguments: &[&str]) -> Value {
    Ran::from(command(["event"]).args(arguments)).code(0).json()
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
    for source in [
        "sqs",
        "sqs-fifo",
        "sns",
        "sns-in-sqs",
        "eventbridge",
        "scheduler",
        "kinesis",
        "dynamodb",
        "documentdb",
        "kafka",
        "s3",
        "activemq",
        "rabbitmq",
        "pipe",
        "http",
        "invoke",
    ] {
        let recognised = if source.contains("sqs") { "sqs" } else { source };
        let body = if source == "s3" { "o-7" } else { r#"{"orderId":"o-7"}"# };
        let report = keys(&event(&[source, "--body", body]));
        let records = report["records"].as_array().unwrap();
        assert_eq!(records.len(), 1, "{source}");
        assert_eq!(records[0]["source"], recognised, "{source}");
        assert!(records[0].to_string().contains("o-7"), "{source}: {}", records[0]);
    }
}

#[test]
fn ids_are_new_and_the_path_is_that_of_the_sample_unless_given() {
    let id = |arguments: &[&str]| event(arguments)["Records"][0]["messageId"].clone();
    assert_ne!(id(&["sqs"]), id(&["sqs"]));
    assert_eq!(id(&["sqs", "--id", "m-1"]), "m-1");
    let http = event(&["http", "--path", "/charges"]);
    assert_eq!([&http["rawPath"], &http["requestContext"]["http"]["path"]], ["/charges"; 2]);
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
        (&["sqs", "--path", "/charges"], "`--path` is for `event http`"),
        (&["sqs", "--body", "@/no/such/file"], "cannot read /no/such/file"),
    ] {
        Ran::from(command(["event"]).args(arguments)).refused(said);
    }
}
