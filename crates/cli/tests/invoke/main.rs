//! The command `invoke` as a user runs it, with a function that follows the script of each record.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../../../local/tests/common/mod.rs"]
mod common;
mod report;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tokio::io::AsyncBufReadExt as _;

/// Writes an event file and delivers it. Each test has another `name` for its file.
async fn invoke(name: &str, event: &str, options: &[&str]) -> (Output, PathBuf) {
    let file =
        std::env::temp_dir().join(format!("lambda-idempotency-{}-{name}.json", std::process::id()));
    std::fs::write(&file, event).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"))
        .args([
            "invoke",
            "--timeout",
            "60",
            "--visibility",
            "20ms",
            "--retry-delays",
            "1ms,1ms",
            "--binary",
        ])
        .arg(common::binary().await)
        .args(options)
        .arg(&file)
        .output()
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    (output, file)
}

fn messages(steps: &[(&str, &str)]) -> String {
    let record = |(id, step): &(&str, &str)| json!({ "messageId": id, "eventSource": "aws:sqs", "body": json!({ "do": step }).to_string() });
    json!({ "Records": steps.iter().map(record).collect::<Vec<_>>() }).to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn success_is_a_table_and_exit_code_0() {
    let (output, _) = invoke("success", &messages(&[("m1", "succeed")]), &["--repeat", "2"]).await;
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(shown.contains("2 deliveries: 2 executed"), "{shown}");
    assert!(shown.contains("table idempotency: 0 rows"), "{shown}");
    assert!(!shown.contains("table orders"), "it is the example's: {shown}");
}

#[tokio::test]
async fn an_event_or_a_body_comes_from_standard_input() {
    let event = messages(&[("m1", "succeed")]);
    for (arguments, text) in [(&["-"][..], &*event), (&["--sqs-body", "-"], r#"{"do":"succeed"}"#)]
    {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"))
            .args(["invoke", "--timeout", "60", "--binary"])
            .arg(common::binary().await)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let shown = self::text(&output.stdout);
        assert!(shown.contains("1 executed, "), "{shown}{}", self::text(&output.stderr));
    }
    let mut twice = Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"));
    let output = twice.args(["invoke", "--sqs-body", "-", "--sqs-body", "-"]).output().unwrap();
    assert!(text(&output.stderr).contains("more than once"), "{}", text(&output.stderr));
}

#[tokio::test]
async fn a_dead_letter_is_exit_code_1_and_json_says_which() {
    let event = messages(&[("good", "succeed"), ("bad", "report")]);
    let (output, _) = invoke("dead", &event, &["--json", "--max-receive-count", "2"]).await;
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["summary"]["deliveries"], 3);
    assert_eq!(report["summary"]["dead_lettered"], 1);
    assert_eq!(report["dead_letters"][0]["record"], "bad");
    assert_eq!(report["invocations"][1]["records"][0]["disposition"], "dead_lettered");
}

#[tokio::test]
async fn a_handlers_error_message_is_shown_unless_that_is_switched_off() {
    let event = messages(&[("m1", "report")]);
    let once = ["--max-receive-count", "1"];
    let (output, _) = invoke("said", &event, &once).await;
    let shown = text(&output.stdout);
    assert!(shown.contains("failed, record m1: the handler failed with a message"), "{shown}");
    assert!(shown.contains("\n    told to report\n"), "{shown}");
    let (output, _) = invoke("said-json", &event, &[once[0], once[1], "--json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["invocations"][0]["records"][0]["error_message"], "told to report");
    let off = [once[0], once[1], "--env", "IDEMPOTENCY_LOG_ERROR_MESSAGES=0"];
    let (output, _) = invoke("unsaid", &event, &off).await;
    assert!(!text(&output.stdout).contains("told to report"), "{}", text(&output.stdout));
}

#[tokio::test]
async fn a_crash_shows_the_last_lines_of_the_output() {
    let (output, _) = invoke("crash", r#"{"do":"abort"}"#, &[]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("started"), "{}", text(&output.stderr));
}

#[tokio::test]
async fn a_function_that_does_not_start_is_reported_once_with_its_output() {
    let event = messages(&[("m1", "succeed")]);
    let (output, _) = invoke("no-start", &event, &["--env", "FAIL_TO_START=1"]).await;
    let shown = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    assert!(shown.contains("does not start: before it asked for an event, it exited"), "{shown}");
    assert_eq!(shown.matches("told not to start").count(), 1, "{shown}");
    assert!(shown.contains("--env NAME=VALUE") && output.stdout.is_empty(), "{shown}");
}

#[test]
fn a_function_that_is_not_there_is_not_said_to_need_something() {
    let output = Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"))
        .args(["invoke", "--binary", "/no/such/function"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/sqs.json"))
        .output()
        .unwrap();
    let shown = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    assert!(shown.contains("cannot start the function /no/such/function"), "{shown}");
    assert!(!shown.contains("--env NAME=VALUE"), "{shown}");
}

#[tokio::test]
async fn a_function_without_a_log_gets_a_note() {
    let event = messages(&[("m1", "succeed")]);
    let (output, _) = invoke("silent", &event, &["--env", "AWS_LAMBDA_LOG_LEVEL=ERROR"]).await;
    let shown = text(&output.stdout);
    assert!(shown.contains("0 dead-lettered, 1 acknowledged"), "{shown}");
    assert!(shown.contains("init_default_subscriber"), "{shown}");
    let (output, _) = invoke("loud", &event, &[]).await;
    assert!(!text(&output.stdout).contains("note:"), "{}", text(&output.stdout));
}

#[tokio::test]
async fn malformed_json_is_exit_code_2_with_its_position() {
    let (output, file) = invoke("malformed", "{\n  \"Records\": [}\n", &[]).await;
    assert_eq!(output.status.code(), Some(2));
    let shown = text(&output.stderr);
    assert!(shown.contains(&format!("{}:2:15: not valid JSON", file.display())), "{shown}");
}

#[tokio::test]
async fn verbose_shows_the_librarys_lines_as_well() {
    let event = messages(&[("m1", "succeed")]);
    let (output, _) = invoke("verbose", &event, &["--verbose"]).await;
    let shown = text(&output.stderr);
    assert!(shown.contains("started") && shown.contains("record settled"), "{shown}");
    let (output, _) = invoke("calm", &event, &[]).await;
    assert!(!text(&output.stderr).contains("record settled"), "{}", text(&output.stderr));
}

#[tokio::test]
async fn an_empty_batch_gets_no_note_about_a_subscriber() {
    let (output, _) = invoke("empty", r#"{"Records":[]}"#, &[]).await;
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(!shown.contains("note:"), "{shown}");
}

#[tokio::test]
async fn records_that_do_not_name_their_source_get_a_hint() {
    let event = r#"{"Records":[{"messageId":"m1","body":"{}"}]}"#;
    let (output, _) = invoke("unnamed", event, &[]).await;
    let shown = text(&output.stderr);
    assert!(shown.contains("no record in `Records` says which service"), "{shown}");
    assert!(shown.contains("lambda-idempotency event sqs"), "{shown}");
}

#[tokio::test]
async fn bodies_are_delivered_in_one_batch() {
    let file = |name: &str, payload: &str| {
        let name = format!("lambda-idempotency-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, payload).unwrap();
        path
    };
    let (first, second) = (file("b1", r#"{"do":"succeed"}"#), file("b2", r#"{"do":"report"}"#));
    let output = Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"))
        .args(["invoke", "--timeout", "60", "--visibility", "20ms", "--json", "--binary"])
        .arg(common::binary().await)
        .args([Path::new("--sqs-body"), &first, Path::new("--sqs-body"), &second])
        .args([Path::new("--max-receive-count"), Path::new("1")])
        .output()
        .unwrap();
    for path in [first, second] {
        std::fs::remove_file(path).unwrap();
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let invocation = &report["invocations"][0];
    assert_eq!(invocation["source"], "sqs");
    let outcomes = [0, 1].map(|at| invocation["records"][at]["outcome"].as_str().unwrap());
    assert_eq!(outcomes, ["executed", "failed"]);
}

/// Delivers a record that is settled, and one that never ends; stops the command then.
#[cfg(unix)]
async fn stopped(options: &[&str]) -> (Output, String) {
    let name = format!("lambda-idempotency-{}-stopped{}.json", std::process::id(), options.len());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, messages(&[("m1", "succeed"), ("m2", "sleep")])).unwrap();
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"));
    command.args(["invoke", "--timeout", "60", "--batch-size", "1", "--verbose", "--binary"]);
    command.arg(common::binary().await).arg(&file).args(options);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut lines = tokio::io::BufReader::new(child.stderr.take().unwrap()).lines();
    // The first invocation has ended then: one process gets both records.
    while !lines.next_line().await.unwrap().unwrap().contains("sleeping") {}
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    std::fs::remove_file(&file).unwrap();
    let rest = lines.next_line().await.unwrap().unwrap_or_default();
    let told = lines.next_line().await.unwrap().unwrap_or_default();
    (output, rest + &told)
}

#[cfg(unix)]
#[tokio::test]
async fn a_stopped_command_shows_what_was_seen_so_far() {
    let (output, told) = stopped(&[]).await;
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{shown}");
    assert!(shown.contains("1 delivery: 1 executed"), "{shown}");
    assert!(told.contains("Interrupted"), "it does not say that it is not all");
    let (output, _) = stopped(&["--json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["complete"], &report["summary"]["executed"]), (&json!(false), &json!(1)));
}

/// Several, because chance decides what a command does first.
#[cfg(unix)]
#[test]
fn a_signal_ends_commands_that_wait_for_their_input() {
    let start = |arguments: &&[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"));
        command.args(*arguments).args(["--binary", "/"]).stdin(Stdio::piped()).spawn().unwrap()
    };
    let invoke = [&["invoke", "-"][..]; 4];
    let chaos = [&["chaos", "--vary", "orderId", "--sqs-body", "-"][..]; 4];
    let mut started: Vec<_> = invoke.iter().chain(&chaos).map(start).collect();
    std::thread::sleep(std::time::Duration::from_secs(1));
    for child in &mut started {
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        let begun = std::time::Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed().as_secs() < 20, "it goes on");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn without_a_package_or_with_several_binaries_the_error_says_what_to_name() {
    let event = concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/sqs.json");
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for (directory, said) in [("/", "could not find `Cargo.toml`"), (repository, "orders")] {
        let output = Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"))
            .current_dir(directory)
            .args(["invoke", event])
            .output()
            .unwrap();
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{shown}");
        assert!(shown.contains(said) && shown.contains("--bin NAME"), "{shown}");
    }
}

#[tokio::test]
async fn an_unknown_cargo_target_is_exit_code_2_with_a_remedy() {
    for (unknown, options) in [
        ("no-such-package", ["--package", "no-such-package"].as_slice()),
        ("no-such-binary", &["--bin", "no-such-binary"]),
        ("no-such-example", &["--example", "no-such-example"]),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"))
            .arg("invoke")
            .args(options)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/sqs.json"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let shown = text(&output.stderr);
        assert!(shown.contains(unknown) && shown.contains("--package NAME"), "{shown}");
    }
}
