//! The command `keys` as a user runs it: the key of each record, records with equal keys, warnings, and events without a key.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod output;
#[path = "../ran/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod ran;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use ran::{Ran, fed};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The command in the workspace.
pub(crate) fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = ran::command(["keys"]);
    command.args(arguments).current_dir(root());
    command
}

pub(crate) fn keys<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    Ran::from(&mut command(arguments))
}

/// Runs the command with these events in files; `{0}` and `{1}` in the arguments are their paths.
pub(crate) fn keys_of(name: &str, events: &[Value], arguments: &[&str]) -> Ran {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = |at: usize| folder.join(format!("keys-{name}-{at}.json")).display().to_string();
    for (at, event) in events.iter().enumerate() {
        std::fs::write(path(at), event.to_string()).unwrap();
    }
    keys(arguments.iter().map(|argument| match *argument {
        "{0}" => path(0),
        "{1}" => path(1),
        other => other.to_owned(),
    }))
}

pub(crate) fn messages(bodies: &[Value]) -> Value {
    let record = |(at, body): (usize, &Value)| {
        json!({
            "messageId": format!("m-{at}"), "eventSource": "aws:sqs", "body": body.to_string(),
            "receiptHandle": "r", "attributes": { "ApproximateReceiveCount": "1" },
            "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders",
        })
    };
    json!({ "Records": bodies.iter().enumerate().map(record).collect::<Vec<_>>() })
}

/// A request to a load balancer.
pub(crate) fn request(key: &str, body: &str) -> Value {
    json!({
        "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:1:a" } },
        "httpMethod": "POST", "path": "/charges", "queryStringParameters": {},
        "headers": { "host": "lb.example.com", "idempotency-key": key, "authorization": "s3cr3t" },
        "body": body, "isBase64Encoded": false,
    })
}

#[test]
fn the_key_is_the_one_that_the_function_claims() {
    // Keys of scheme 1, and key hashes that `invoke` showed for the example function.
    let event = messages(&[json!({ "id": "o-1" })]);
    let ran = keys_of("golden", &[event], &["{0}", "--operation", "op", "--key", "id", "--json"]);
    let report = ran.json();
    let golden = "op#b998c98c30b1c69205576c101bcd7c8e40faf5162574232a28d4717966bc0471";
    assert_eq!(report["records"][0]["key"], golden);
    assert_eq!(report["records"][0]["canonical"], "\"o-1\"");
    let arguments = ["--operation", "place-order", "--key", "orderId", "--json"];
    let report = keys(["events/sqs-duplicates.json"].into_iter().chain(arguments)).json();
    let hashes = ["c886be2b", "760a40cf", "c886be2b", "96a66670", "96a66670", "08cb5c5e"];
    for (record, hash) in report["records"].as_array().unwrap().iter().zip(hashes) {
        assert!(record["key_hash"].as_str().unwrap().starts_with(hash), "{record}");
    }
}

#[test]
fn without_an_expression_the_limits_of_the_default_are_shown() {
    let ran = keys(["events/sqs-duplicates.json", "events/sns.json"]);
    assert_eq!(ran.code, Some(0));
    for said in [
        "Without a key expression, sqs is known by",
        "redrive",
        "Without a key expression, sns is known by",
        "a publisher that publishes twice",
        "7 records: 6 keys, 1 duplicate",
        "None was given",
    ] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    let named = keys(["events/sns.json", "--key", "orderId", "--operation", "place"]);
    assert!(!named.out.contains("Without a key") && !named.out.contains("None was given"));
}

#[test]
fn records_with_one_key_are_found_in_an_event_and_against_another() {
    let [first, second] = [
        messages(&[
            json!({ "id": 1, "n": 1 }),
            json!({ "id": 2, "n": 1 }),
            json!({ "id": 1, "n": 1 }),
        ]),
        messages(&[json!({ "n": 1, "id": 2 }), json!({ "id": 1, "n": 9 }), json!({ "id": 3 })]),
    ];
    let arguments = ["{0}", "--against", "{1}", "--key", "id", "--json"];
    let report = keys_of("against", &[first.clone(), second.clone()], &arguments).json();
    let shared = report["shared_keys"].as_array().unwrap();
    assert_eq!(shared.len(), 2);
    assert_eq!(
        (&shared[0]["records"], &shared[0]["payloads_differ"]),
        (&json!([1, 3, 5]), &json!(true))
    );
    assert_eq!(
        (&shared[1]["records"], &shared[1]["payloads_differ"]),
        (&json!([2, 4]), &json!(false))
    );
    assert_eq!(report["records"][3]["against"], true);
    assert_eq!(report["summary"]["duplicates"], 3);
    let text = keys_of("against-text", &[first.clone(), second.clone()], &arguments[..5]).out;
    assert!(text.contains("#1 #3 #5") && text.contains("BUT THEIR PAYLOADS DIFFER"), "{text}");
    assert!(text.contains("3 records, to compare with"), "{text}");

    let compared = ["{0}", "--against", "{1}", "--key", "id", "--fingerprint", "n", "--json"];
    let ran = keys_of("mismatch", &[first.clone(), second.clone()], &compared);
    assert_eq!(ran.code, Some(1), "#6 has no fingerprint, so it is refused");
    let report = ran.json();
    assert_eq!(report["shared_keys"][0]["records"], json!([1, 3]));
    assert_eq!(report["shared_keys"][0]["mismatched"], json!([5]));
    assert_eq!(report["summary"]["mismatches"], 1);
    let text = keys_of("mismatch-text", &[first, second], &compared[..7]).out;
    assert!(text.contains("#5") && text.contains("refused as a mismatch"), "{text}");
}

#[test]
fn parts_are_shown_by_name() {
    let event = messages(&[json!({ "tenant": "acme", "order": { "id": 42 } })]);
    let arguments = ["{0}", "--key", "[tenant, order.id]"];
    let text = keys_of("parts", &[event], &arguments).out;
    for said in ["tenant = \"acme\"", "order.id = 42", "[\"acme\",42]"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn a_key_can_be_on_the_record_around_the_payload() {
    let report = keys(["events/sns.json", "--key", "record:Sns.MessageId", "--json"]).json();
    let announced = &report["records"][0];
    assert_eq!(announced["view"], "record");
    assert_eq!(announced["expression"], "Sns.MessageId");
}

#[test]
fn requests_have_the_key_that_their_client_chose() {
    let events = [request("\"k-1\"", "EUR 5.00"), request("k-1", "EUR 6.00")];
    let ran = keys_of("http", &events, &["{0}", "{1}", "--json"]);
    let report = ran.json();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(report["records"][0]["source"], "http");
    assert_eq!(report["records"][0]["identity"][2], "k-1");
    assert_eq!(report["shared_keys"][0]["mismatched"], json!([2]), "the second request differs");
    assert!(!ran.out.contains("s3cr3t"), "credentials are not shown");
    let mut without = request("", "");
    without["headers"].as_object_mut().unwrap().remove("idempotency-key");
    let ran = keys_of("http-none", &[without], &["{0}"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("400") && ran.out.contains("idempotency-key"), "{}", ran.out);
}

#[test]
fn a_request_without_a_caller_has_no_key() {
    let mut anonymous = request("k-1", "");
    anonymous["headers"].as_object_mut().unwrap().remove("authorization");
    let ran = keys_of("http-nobody", &[anonymous], &["{0}"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains(".all_callers_are_one()"), "{}", ran.out);
}

#[test]
fn a_key_of_all_that_there_is_gets_a_warning() {
    let warned = |key: &str| {
        let report = keys(["events/sqs.json", "--key", key, "--json"]).json();
        report["warnings"].as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>()
    };
    let whole = warned("@");
    assert!(whole.len() == 1 && whole[0].contains("the whole payload"), "{whole:?}");
    let record = warned("record:@");
    assert!(record.len() == 1 && record[0].contains("the whole record"), "{record:?}");
    assert_eq!(warned("record:messageId"), Vec::<String>::new());
    let text = keys(["events/sqs.json", "--key", "@"]).out;
    assert!(text.contains("warning") && text.contains("the whole payload"), "{text}");
}

#[test]
fn a_record_without_a_key_is_exit_code_1_with_the_functions_message() {
    let ran = keys(["events/sqs-missing-key.json", "events/sqs-bad-body.json", "--key", "orderId"]);
    assert_eq!(ran.code, Some(1));
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("no idempotency key under `orderId`: it selects nothing (or null)"));
    assert!(words.contains("the payload is not valid JSON"), "{words}");
    assert!(words.ends_with("6 records: 3 keys, 0 duplicates, 0 mismatches, 3 without a key"));
}

#[test]
fn a_bad_expression_is_exit_code_2_with_a_caret_for_any_event() {
    for event in ["events/sqs.json", "events/sqs-empty-batch.json"] {
        let ran = keys([event, "--key", "order.{"]).refused("at offset 7");
        assert!(ran.err.contains("\n  order.{\n         ^\n"), "{}", ran.err);
        assert_eq!(ran.out, "");
        assert!(!ran.err.contains("because"), "the mistake is named once: {}", ran.err);
    }
}

#[test]
fn an_unreadable_event_is_exit_code_2() {
    keys(["no-such-file.json"]).refused("cannot read no-such-file.json");
    fed(&mut command(["-", "--key", "id"]), "{\n  \"Records\": [}\n")
        .refused("-: the event is not JSON (line 2, column 15)");
}
