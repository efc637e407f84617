//! The command `keys` as a user runs it: the key of each record, and records with equal keys.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The output and the exit code of the command.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn command<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"));
    command.arg("keys").args(arguments).current_dir(root());
    command
}

fn run(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Runs the command in the workspace.
fn keys<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    run(command(arguments))
}

/// Runs the command with these events in files; `{0}` and `{1}` in the arguments are their paths.
fn keys_of(name: &str, events: &[Value], arguments: &[&str]) -> Ran {
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

fn messages(bodies: &[Value]) -> Value {
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
fn request(key: &str, body: &str) -> Value {
    json!({
        "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:1:a" } },
        "httpMethod": "POST", "path": "/charges", "queryStringParameters": {},
        "headers": { "host": "lb.example.com", "idempotency-key": key, "authorization": "s3cr3t" },
        "body": body, "isBase64Encoded": false,
    })
}

/// Every file that ends in `.json`, in a folder and its subfolders.
fn samples(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 5, "{folder} has samples");
    found
}

#[test]
fn every_sample_is_shown_within_100_columns() {
    let events = samples("events").into_iter().chain(samples("crates/lambda/tests/events"));
    let mut shown = 0;
    for path in events {
        let ran = keys([path.as_os_str(), "--full".as_ref()]);
        // Some samples of requests have placeholders for their host.
        if ran.code == Some(2) && path.to_str().unwrap().contains("/http/") {
            assert!(
                ran.err.contains("lambda_http cannot convert the event to a request"),
                "{}",
                ran.err
            );
            assert_eq!((ran.err.lines().count(), &*ran.out), (1, ""), "{}", ran.err);
            continue;
        }
        assert!(matches!(ran.code, Some(0 | 1)), "{}: {}", path.display(), ran.err);
        let summary = ran.out.lines().last().unwrap();
        assert_eq!(ran.code == Some(0), summary.ends_with(" 0 without a key"), "{summary}");
        for line in ran.out.lines() {
            assert!(line.chars().count() <= 100, "{}: {line}", path.display());
            assert_eq!(line, line.trim_end(), "{}", path.display());
        }
        shown += 1;
    }
    assert!(shown > 60, "{shown} samples");
}

#[test]
fn identities_are_those_of_the_wrapper() {
    let folder = "crates/lambda/tests/events";
    let expected = std::fs::read_to_string(root().join(folder).join("expected.txt")).unwrap();
    let (mut sample, mut checked) = (String::new(), 0);
    let mut wanted: Vec<(String, Vec<String>)> = Vec::new();
    for line in expected.lines() {
        match line.strip_prefix("  ") {
            None => wanted.push((line.to_owned(), Vec::new())),
            Some(record) => wanted.last_mut().unwrap().1.push(record.to_owned()),
        }
    }
    for (name, lines) in wanted {
        sample.clone_from(&name);
        // The last line is the number of calls of the handler.
        let (_, lines) = lines.split_last().unwrap();
        let path = format!("{folder}/{name}");
        let found = keys([path.as_str(), "--json"]).json();
        let found: Vec<_> = found["records"].as_array().unwrap().iter().collect();
        assert_eq!(found.len(), lines.len(), "{sample}");
        for (record, line) in found.iter().zip(lines) {
            let (source, identity) = line.split_once(": ").unwrap();
            assert_eq!(record["source"], source, "{sample}");
            if let Some(parts) = record["identity"].as_array() {
                let parts: Vec<_> = parts.iter().map(|part| part.as_str().unwrap()).collect();
                assert_eq!(parts.join(" | "), identity, "{sample}");
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "{checked} identities");
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
fn powertools_keys_are_those_of_powertools() {
    let event = messages(&[json!({ "order_id": "A-1", "ts": 1 })]);
    let ran = keys_of(
        "powertools",
        &[event],
        &[
            "{0}",
            "--key",
            "order_id",
            "--powertools",
            "powertools-python",
            "--prefix",
            "orders-fn.app.process",
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("orders-fn.app.process#35e4083ba11d7d06184c72e37b6428b7"));
    assert!(!ran.out.contains("--operation"), "no key has an operation: {}", ran.out);
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
    let arguments = ["{0}", "--key", "[tenant, order.id, coupon]", "--optional", "coupon"];
    let text = keys_of("parts", std::slice::from_ref(&event), &arguments).out;
    for said in ["tenant = \"acme\"", "order.id = 42", "coupon = null", "[\"acme\",42,~]"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let readable = ["{0}", "--key", "[tenant, order.id]", "--readable", "--operation", "place"];
    let text = keys_of("readable", &[event], &readable).out;
    assert!(text.contains("place#~/acme/+42"), "{text}");
}

#[test]
fn each_source_can_have_its_own_key() {
    let ran = run({
        let mut command = command([
            "events/sqs.json",
            "events/sns.json",
            "--key-from-env",
            "sqs=TEST_SQS_KEY",
            "--key",
            "sns=record:Sns.MessageId",
            "--operation",
            "sqs=queued",
            "--operation",
            "announced",
            "--json",
        ]);
        command.env("TEST_SQS_KEY", "orderId");
        command
    });
    let report = ran.json();
    let [queued, announced] = [0, 1].map(|at| report["records"][at].clone());
    assert_eq!((&queued["view"], &queued["canonical"]), (&json!("payload"), &json!("\"o-1001\"")));
    assert!(queued["key"].as_str().unwrap().starts_with("queued#"));
    assert_eq!(
        (&announced["view"], &announced["expression"]),
        (&json!("record"), &json!("Sns.MessageId"))
    );
    assert!(announced["key"].as_str().unwrap().starts_with("announced#"));

    let unset = keys(["events/sqs.json", "--key-from-env", "TEST_UNSET_KEY"]);
    assert_eq!(unset.code, Some(2));
    assert!(unset.err.contains("TEST_UNSET_KEY, which is not set"), "{}", unset.err);
    let unknown = keys(["events/sqs.json", "--key", "squs=orderId"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("there is no source `squs`"), "{}", unknown.err);
}

#[test]
fn envelopes_are_removed() {
    let event = "crates/lambda/tests/events/snsSqsEvent.json";
    let text = keys([event, "--key", "message", "--envelope", "sns"]).out;
    assert!(text.contains("the payload, out of sns, by message"), "{text}");
    assert!(
        text.contains("message = \"hello world\"") && text.contains("sns | arn:aws:sns:"),
        "{text}"
    );
    let wrong = keys(["events/sqs.json", "--envelope", "sns"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.out.contains("the payload is not an SNS notification"), "{}", wrong.out);
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
fn requests_without_a_caller_have_a_key_only_if_all_callers_are_one() {
    let mut anonymous = request("k-1", "");
    anonymous["headers"].as_object_mut().unwrap().remove("authorization");
    let ran = keys_of("http-nobody", &[anonymous.clone()], &["{0}"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains(".all_callers_are_one()"), "{}", ran.out);
    let ran = keys_of("http-nobody", &[anonymous], &["{0}", "--all-callers-are-one"]);
    assert_eq!(ran.code, Some(0), "{}", ran.out);
}

#[test]
fn each_path_of_requests_has_its_own_key_on_request() {
    let item = |path: &str| {
        let mut event = request("k-1", r#"{"sku":"s-1"}"#);
        event["path"] = json!(path);
        event
    };
    let carts = [item("/carts/1/items"), item("/carts/2/items")];
    for (more, distinct) in [(&[][..], false), (&["--one-key-for-each-path"][..], true)] {
        let arguments = [&["{0}", "{1}", "--json", "--key", "sku"][..], more].concat();
        let ran = keys_of("http-paths", &carts, &arguments);
        let report = ran.json();
        let keys = [0, 1].map(|at| report["records"][at]["key"].as_str().unwrap());
        assert_eq!(keys[0] != keys[1], distinct, "{more:?}: {}", ran.err);
    }
}

#[test]
fn a_key_from_the_invocation_needs_its_request_id() {
    let ran = keys(["events/unknown.json"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("--request-id"), "{}", ran.out);
    let with = |more: &[&str]| {
        let arguments = ["events/unknown.json", "--request-id", "r-1", "--json"];
        let ran = keys(arguments.iter().chain(more));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.json()["records"][0]["key"].clone()
    };
    assert_ne!(with(&[]), with(&["--tenant", "acme"]));
}

#[test]
fn expressions_that_collide_or_change_get_warnings() {
    let warned = |key: &str| {
        let report = keys(["events/sqs.json", "--key", key, "--json"]).json();
        report["warnings"].as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>()
    };
    let folding = warned("join('-', [customer, to_string(quantity)])");
    assert_eq!(folding.len(), 2, "{folding:?}");
    assert!(folding[0].contains("`join` at offset 4") && folding[1].contains("`to_string`"));
    let whole = warned("@");
    assert!(whole.len() == 1 && whole[0].contains("the whole payload"), "{whole:?}");
    let record = warned("record:@");
    assert!(record.len() == 2 && record[1].contains("changes with each delivery"), "{record:?}");
    let received = warned("record:[messageId, attributes.ApproximateReceiveCount]");
    assert!(received.len() == 1 && received[0].contains("changes with each"), "{received:?}");
    assert_eq!(warned("record:messageId"), Vec::<String>::new());
    let text = keys(["events/sqs.json", "--key", "to_string(quantity)", "--quiet"]).out;
    assert!(text.contains("warning") && text.contains("`to_string` at offset 9"), "{text}");
}

#[test]
fn a_record_without_a_key_is_exit_code_1_with_the_functions_message() {
    let ran = keys(["events/sqs-missing-key.json", "events/sqs-bad-body.json", "--key", "orderId"]);
    assert_eq!(ran.code, Some(1));
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("no idempotency key under `orderId`: it selects nothing (or null)"));
    assert!(words.contains("the payload is not valid JSON"), "{words}");
    assert!(words.ends_with("6 records: 3 keys, 0 duplicates, 0 mismatches, 3 without a key"));
    for policy in ["run-unprotected", "skip"] {
        let arguments =
            ["events/sqs-missing-key.json", "--key", "orderId", "--missing-key", policy];
        let ran = keys(arguments);
        assert_eq!(ran.code, Some(1));
        assert!(ran.out.contains("no key; the operation "), "{}", ran.out);
    }
}

#[test]
fn a_bad_expression_is_exit_code_2_with_a_caret_for_any_event() {
    for event in ["events/sqs.json", "events/sqs-empty-batch.json"] {
        let ran = keys([event, "--key", "order.{"]);
        assert_eq!((ran.code, &*ran.out), (Some(2), ""));
        assert!(ran.err.contains("at offset 7"), "{}", ran.err);
        assert!(ran.err.contains("\n  order.{\n         ^\n"), "{}", ran.err);
        assert!(!ran.err.contains("because"), "the mistake is named once: {}", ran.err);
    }
    let ran = keys(["events/sqs.json", "--key", "sns=nope(id)"]);
    assert_eq!(ran.code, Some(2), "a mistake is found although no event needs the expression");
    assert!(ran.err.contains("nope"), "{}", ran.err);
}

#[test]
fn an_unreadable_event_is_exit_code_2() {
    let ran = keys(["no-such-file.json"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("cannot read no-such-file.json"), "{}", ran.err);
    let mut child = command(["-", "--key", "id"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\n  \"Records\": [}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let ran = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(ran.contains("-: the event is not JSON (line 2, column 15)"), "{ran}");
}

#[test]
fn a_secret_comes_from_the_environment() {
    let with = |secret: Option<&str>| {
        let mut command = command(["events/sqs.json", "--secret-from-env", "TEST_SECRET"]);
        command.env_remove("TEST_SECRET").envs(secret.map(|secret| ("TEST_SECRET", secret)));
        run(command)
    };
    let ran = with(Some("a secret of 16 bytes and more"));
    assert!(ran.out.contains("operation#hmac-"), "{}", ran.out);
    assert!(!ran.out.contains("16 bytes"), "the secret is not shown");
    for (secret, problem) in [(None, "TEST_SECRET"), (Some("short"), "has 5 bytes")] {
        let ran = with(secret);
        assert_eq!(ran.code, Some(2));
        assert!(ran.err.contains(problem), "{}", ran.err);
    }
}

#[test]
fn control_characters_of_an_event_are_not_printed() {
    let event = messages(&[json!("\u{1b}[2J\u{7}")]);
    let mut event = event;
    event["Records"][0]["body"] = "\u{1b}[2J\u{7}".into();
    let ran = keys_of("cursor", &[event], &["{0}"]);
    assert!(ran.out.contains("[2J") && !ran.out.contains(['\u{1b}', '\u{7}']), "{:?}", ran.out);
}

#[test]
fn the_help_says_that_payloads_are_shown() {
    let ran = keys(["--help"]);
    assert!(ran.out.contains("IT PRINTS PAYLOADS AND RAW KEYS"), "{}", ran.out);
    assert!(ran.out.contains("Exit code:"), "{}", ran.out);
    let words: Vec<_> = ran.out.split([' ', ',', '.', '\n']).collect();
    for source in lambda_idempotency::inspect::sources().chain(["http"]) {
        assert!(words.contains(&source), "{source}: {}", ran.out);
    }
}

/// Splits a command line as a shell does, for the command lines of the README.
fn words(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    let words = quoted.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

#[test]
fn the_readme_shows_what_the_command_prints() {
    let readme = std::fs::read_to_string(root().join("crates/cli/README.md")).unwrap();
    let blocks: Vec<_> = readme.split("```console\n$ lambda-idempotency keys ").skip(1).collect();
    assert!(blocks.len() >= 3, "{} examples", blocks.len());
    for block in blocks {
        let (block, _) = block.split_once("\n```").unwrap();
        let (line, shown) = block.split_once('\n').unwrap();
        let ran = keys(words(line));
        assert_eq!(ran.out.trim_end(), shown, "{line}");
    }
}
