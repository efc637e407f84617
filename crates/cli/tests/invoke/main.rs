//! The command `invoke` as a user runs it, with a function that follows the script of each record.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../../../local/tests/common/mod.rs"]
mod common;
mod report;

#[path = "../ran/mod.rs"]
mod ran;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;
use tokio::io::AsyncBufReadExt as _;

use ran::{Ran, command, fed};

const SQS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/sqs.json");

/// The path of an event file. Each test has another `name` for its file.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("lambda-idempotency-{}-{name}", std::process::id()))
}

/// Writes an event file and delivers it.
async fn invoke(name: &str, event: &str, options: &[&str]) -> Ran {
    let file = path(name);
    std::fs::write(&file, event).unwrap();
    let mut invoke = command(["invoke", "--timeout", "60", "--visibility", "20ms"]);
    invoke.args(["--retry-delays", "1ms,1ms", "--binary"]).arg(common::binary().await);
    let ran = Ran::from(invoke.args(options).arg(&file));
    std::fs::remove_file(&file).unwrap();
    ran
}

fn messages(steps: &[(&str, &str)]) -> String {
    let record = |(id, step): &(&str, &str)| json!({ "messageId": id, "eventSource": "aws:sqs", "body": json!({ "do": step }).to_string() });
    json!({ "Records": steps.iter().map(record).collect::<Vec<_>>() }).to_string()
}

#[tokio::test]
async fn what_is_shown_of_a_delivery() {
    let lines = include_str!("shown.txt").lines().filter(|line| !line.starts_with('#'));
    let (mut event, mut options, mut ran, mut cases) = (String::new(), "", None::<Ran>, 0);
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, text) = line.split_once(": ").unwrap();
        let shown = ran.as_ref().map(|ran| (&ran.out, &ran.err));
        let says = match (name, shown) {
            ("out", Some((out, _))) => out.contains(text),
            ("err", Some((_, err))) => err.contains(text),
            ("not", Some((out, err))) => !out.contains(text) && !err.contains(text),
            ("options", _) => {
                options = text;
                continue;
            }
            ("exit", _) => {
                let options: Vec<_> = std::mem::take(&mut options).split_whitespace().collect();
                let code = text.parse().unwrap();
                ran = Some(invoke("shown", &event, &options).await.code(code));
                cases += 1;
                continue;
            }
            _ => {
                event = match name {
                    "sqs" => messages(&[("m1", text)]),
                    "http" => json!({ "requestContext": { "http": {} }, "do": text }).to_string(),
                    "direct" => json!({ "do": text }).to_string(),
                    _ => text.replace("\\n", "\n"),
                };
                continue;
            }
        };
        assert!(says, "{event}: {line}: {shown:?}");
    }
    assert!(cases > 20, "{cases}");
    Ran::from(&mut command(["invoke"])).refused("<EVENT.json|--sqs-body <FILE>>");
}

#[tokio::test]
async fn an_event_or_a_body_comes_from_standard_input() {
    let event = messages(&[("m1", "succeed")]);
    for (arguments, text) in [(&["-"][..], &*event), (&["--sqs-body", "-"], r#"{"do":"succeed"}"#)]
    {
        let mut invoke = command(["invoke", "--timeout", "60", "--binary"]);
        let ran = fed(invoke.arg(common::binary().await).args(arguments), text);
        assert!(ran.out.contains("1 executed, "), "{}{}", ran.out, ran.err);
    }
    let twice = Ran::from(&mut command(["invoke", "--sqs-body", "-", "--sqs-body", "-"]));
    assert!(twice.err.contains("more than once"), "{}", twice.err);
}

/// As in `lambda-idempotency invoke .. 2>&1 | head -1`.
#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_failure_of_the_command() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut invoke = command(["invoke", "/no/such/event.json"]);
    assert_eq!(invoke.stderr(writer).status().unwrap().code(), Some(2));
}

/// Some editors begin a file with it.
#[tokio::test]
async fn a_byte_order_mark_is_no_part_of_an_event() {
    let event = format!("\u{feff}{}", messages(&[("m1", "succeed")]));
    invoke("marked", &event, &[]).await.code(0);
}

#[tokio::test]
async fn a_dead_letter_is_exit_code_1_and_json_says_which() {
    let event = messages(&[("good", "succeed"), ("bad", "report")]);
    let ran = invoke("dead", &event, &["--json", "--max-receive-count", "2"]).await.code(1);
    let report = ran.json();
    assert_eq!(report["summary"]["deliveries"], 3);
    assert_eq!(report["summary"]["dead_lettered"], 1);
    assert_eq!(report["dead_letters"][0]["record"], "bad");
    let last = &report["invocations"][1]["records"][0];
    assert_eq!(last["disposition"], "dead_lettered");
    assert_eq!(last["error_message"], "told to report");
}

#[tokio::test]
async fn a_function_that_does_not_start_is_reported_once_with_its_output() {
    let event = messages(&[("m1", "succeed")]);
    let ran = invoke("no-start", &event, &["--env", "FAIL_TO_START=told not to start"]).await;
    let ran = ran.refused("does not start: before it asked for an event, it exited");
    assert_eq!(ran.err.matches("told not to start").count(), 1, "{}", ran.err);
    assert!(ran.err.contains("--env NAME=VALUE") && ran.out.is_empty(), "{}", ran.err);
    // A mistake in a setting does not need a variable, nor does a function that is not there.
    let mistake = "FAIL_TO_START=operation `place` has an invalid expression in `.key(..)`";
    let ran = invoke("mistake", &event, &["--env", mistake]).await.refused("invalid expression");
    assert!(!ran.err.contains("--env NAME=VALUE"), "{}", ran.err);
    let missing = Ran::from(&mut command(["invoke", "--binary", "/no/such/function", SQS]));
    let missing = missing.refused("cannot start the function /no/such/function");
    assert!(!missing.err.contains("--env NAME=VALUE"), "{}", missing.err);
}

#[tokio::test]
async fn bodies_are_delivered_in_one_batch() {
    let bodies = [r#"{"do":"succeed"}"#, r#"{"do":"report"}"#];
    let mut invoke = command(["invoke", "--timeout", "60", "--visibility", "20ms", "--json"]);
    invoke.args(["--max-receive-count", "1", "--binary"]).arg(common::binary().await);
    for (number, body) in bodies.iter().enumerate() {
        let file = path(&format!("body-{number}"));
        std::fs::write(&file, body).unwrap();
        invoke.arg("--sqs-body").arg(file);
    }
    let report = Ran::from(&mut invoke).json();
    for number in 0..bodies.len() {
        std::fs::remove_file(path(&format!("body-{number}"))).unwrap();
    }
    let invocation = &report["invocations"][0];
    assert_eq!(invocation["source"], "sqs");
    let outcomes = [0, 1].map(|at| invocation["records"][at]["outcome"].as_str().unwrap());
    assert_eq!(outcomes, ["executed", "failed"]);
}

/// The signal of a terminal that is closed, or another one under `nohup`, whose commands stay.
#[cfg(unix)]
fn hangup() -> &'static str {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if ignored.is_some_and(|mask| mask & 1 == 1) { "-QUIT" } else { "-HUP" }
}

/// Delivers a record that is settled, and one that never ends; stops the command then.
#[cfg(unix)]
async fn stopped(signal: &str, options: &[&str]) -> (Ran, String) {
    let file = path(&format!("stopped{}", options.len()));
    std::fs::write(&file, messages(&[("m1", "succeed"), ("m2", "sleep")])).unwrap();
    let invoke = ["invoke", "--timeout", "60", "--batch-size", "1", "--verbose", "--binary"];
    let mut command = tokio::process::Command::from(command(invoke));
    command.arg(common::binary().await).arg(&file).args(options);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().unwrap();
    let mut lines = tokio::io::BufReader::new(child.stderr.take().unwrap()).lines();
    // The first invocation has ended then: one process gets both records.
    let sleeping = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if line.contains("sleeping") {
            break line;
        }
    };
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    // It was killed before; the system may take a moment, and whoever adopts it may leave it unburied.
    let function = sleeping.split(['[', ']']).nth(1).unwrap().parse().unwrap();
    let begun = std::time::Instant::now();
    while common::is_running(function) {
        assert!(begun.elapsed().as_secs() < 20, "the function goes on");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    std::fs::remove_file(&file).unwrap();
    let rest = lines.next_line().await.unwrap().unwrap_or_default();
    let told = lines.next_line().await.unwrap().unwrap_or_default();
    (output.into(), rest + &told)
}

#[cfg(unix)]
#[tokio::test]
async fn a_stopped_command_shows_what_was_seen_so_far() {
    let (ran, told) = stopped("-INT", &[]).await;
    let shown = ran.code(130).out;
    assert!(shown.contains("1 delivery: 1 executed"), "{shown}");
    assert!(told.contains("Interrupted"), "it does not say that it is not all");
    // Its terminal was closed.
    let report = stopped(hangup(), &["--json"]).await.0.code(130).json();
    assert_eq!((&report["complete"], &report["summary"]["executed"]), (&json!(false), &json!(1)));
}

/// Several, because chance decides what a command does first.
#[cfg(unix)]
#[test]
fn a_signal_ends_commands_that_wait_for_their_input() {
    let start = |arguments: &&[&str]| {
        let mut command = command(*arguments);
        command.args(["--binary", "/"]).stdin(Stdio::piped()).spawn().unwrap()
    };
    let invoke = [&["invoke", "-"][..]; 8];
    let mut started: Vec<_> = invoke.iter().map(start).collect();
    std::thread::sleep(std::time::Duration::from_secs(1));
    for (child, signal) in
        started.iter_mut().zip(["-TERM", "-INT", hangup(), "-QUIT"].iter().cycle())
    {
        Command::new("kill").args([signal, &*child.id().to_string()]).status().unwrap();
        let begun = std::time::Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed().as_secs() < 20, "it goes on");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn what_to_build_is_said_when_it_is_not_clear() {
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for (directory, options, said, remedy) in [
        ("/", &[][..], "could not find `Cargo.toml`", "--bin NAME"),
        (repository, &[], "orders", "--bin NAME"),
        (".", &["--package", "no-such-package"], "no-such-package", "--package NAME"),
        (".", &["--bin", "no-such-binary"], "no-such-binary", "--package NAME"),
        (".", &["--example", "no-such-example"], "no-such-example", "--package NAME"),
    ] {
        let mut invoke = command(["invoke", SQS]);
        Ran::from(invoke.args(options).current_dir(directory)).refused(said).refused(remedy);
    }
}

#[cfg(not(any(feature = "chaos", feature = "records")))]
#[test]
fn a_command_that_is_not_compiled_in_names_its_feature() {
    for (arguments, said, feature) in [
        (["chaos", "--deliveries", "3"], "`chaos` is not compiled in", "--features chaos"),
        (["records", "list", "--unsent"], "`records` is not compiled in", "--features records"),
    ] {
        Ran::from(&mut command(arguments)).refused(said).refused(feature);
    }
}
