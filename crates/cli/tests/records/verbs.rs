//! Every verb with one store, each by a key and by an event.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

/// A store and its options: `records` runs a command with this exit code, `hold` makes a claim of the key.
pub(crate) async fn every_verb(
    store: &str,
    options: &[&str],
    records: impl Fn(i32, &[&str]) -> Value,
    hold: impl AsyncFn(&str),
) {
    let event = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("verbs-{store}.json"));
    let record = json!({
        "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders",
        "messageId": "m", "body": r#"{"orderId":"o-1"}"#,
    });
    fs::write(&event, json!({ "Records": [record] }).to_string()).unwrap();
    let event = event.to_str().unwrap();
    let run = |code: i32, arguments: &[&str]| records(code, &[arguments, &["--json"]].concat());
    let by_event = [&["--event", event], options].concat();
    let shown = run(1, &[&["show"][..], &by_event].concat());
    let key = shown["records"][0]["key"].as_str().unwrap().to_owned();
    for target in [&[&*key][..], &by_event] {
        let on =
            |code: i32, verb: &[&str]| run(code, &[verb, target].concat())["records"][0].clone();
        let redrive =
            || run(0, &[&["redrive", event, "--yes"], options].concat())["records"][0].clone();
        let said = |found: Value, member: &str, is: &str| assert_eq!(found[member], is, "{found}");
        assert_eq!(on(1, &["show"])["key"], *key);
        said(redrive(), "result", "nothing");
        hold(&key).await;
        said(on(0, &["show"]), "state", "in-progress");
        said(on(1, &["free", "--yes"]), "result", "refused");
        said(on(1, &["release", "--yes"]), "result", "refused");
        said(on(0, &["release", "--even-if-held", "--yes"]), "result", "done");
        said(redrive(), "result", "done");
        said(on(0, &["show"]), "state", "released");
        said(run(0, &["list"])["records"][0].clone(), "key", &key);
        said(on(0, &["free", "--yes"]), "result", "done");
    }
}
