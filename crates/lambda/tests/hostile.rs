//! Events made to hurt: as large as Lambda lets them be, and of a shape that is bad for parsers.
//!
//! Each is processed by a process of its own, whose peak memory the system counts. It stays in
//! proportion to the event, and so does the time; the answer is an answer, not a crash.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::{
    env,
    fmt::Write as _,
    future::poll_fn,
    process::Command,
    time::{Duration, Instant},
};

use lambda_idempotency::{
    Call, Clock, Envelope, Failure, Idempotency, MemoryStore, Operation, PowertoolsKeys,
    clock::SystemClock,
};
use lambda_runtime::{Context, LambdaEvent};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tower_service::Service;

/// The most that Lambda takes as an event, synchronously.
const LARGEST: usize = 6 * 1024 * 1024;
const EVENT: &str = "HOSTILE_EVENT";
/// How much memory a byte of an event may take. A list of numbers of one digit takes 46 bytes for
/// each of its bytes, records of a hundred bytes take 46 as well, an order of a usual shape far less.
const MOST: usize = 64;
/// In seconds, unoptimised and on a busy machine; the longest takes seven. What is quadratic takes
/// many minutes.
const PATIENCE: usize = 90;

/// What an event is called, and how it is made.
type Hostile = (&'static str, fn() -> String);

/// Whose keys are made by readers of their own.
const LIBRARIES: [&str; 2] = ["powertools-python", "powertools-typescript"];
/// Ours, with an envelope around the payload.
const S3_IN_SQS: &str = "S3 in SQS";
/// What is in such an envelope.
const NOTIFICATIONS: &str = "many notifications in a body";
/// From here on there is one record, whose body is what hurts.
const FIRST_BODY: &str = "deep brackets in a body";

const EVENTS: [Hostile; 11] = [
    ("a record", || records(1, |_| 1)),
    ("many copies", || records(LARGEST, |_| 1)),
    ("many records", || records(LARGEST, |number| number)),
    ("many records that are none", || format!("{{\"Records\":[{}1]}}", "1,".repeat(LARGEST / 2))),
    ("deep brackets around it", || "[".repeat(LARGEST)),
    (FIRST_BODY, || body(&"[".repeat(LARGEST - 1000))),
    ("a long number", || body(&format!("{{\\\"id\\\":{}}}", "9".repeat(LARGEST - 1000)))),
    ("a list for a key", || {
        body(&format!("{{\\\"id\\\":[{}1]}}", "1,".repeat(LARGEST / 2 - 1000)))
    }),
    (NOTIFICATIONS, || {
        body(&format!(
            "{{\\\"Records\\\":[{}1]}}",
            "{\\\"s3\\\":{\\\"a\\\":1}},".repeat(LARGEST / 20)
        ))
    }),
    ("a member named often", || body(&format!("{{{}}}", "\\\"id\\\":1,".repeat(LARGEST / 10)))),
    ("many members", || {
        let mut members = String::new();
        for number in 0..LARGEST / 20 {
            let _ = write!(members, "\\\"{number:09}\\\":[],");
        }
        body(&format!("{{{members}\\\"id\\\":1}}"))
    }),
];

fn record(number: usize, body: &str) -> String {
    format!(
        r#"{{"messageId":"{number}","body":"{body}","eventSource":"aws:sqs","eventSourceARN":"q"}}"#
    )
}

/// As many records as there is room for.
fn records(room: usize, id: fn(usize) -> usize) -> String {
    let mut event = String::from("{\"Records\":[");
    for number in 0.. {
        event.push_str(&record(number, &format!("{{\\\"id\\\":{}}}", id(number))));
        if event.len() + 100 > room {
            break;
        }
        event.push(',');
    }
    event.push_str("]}");
    event
}

fn body(body: &str) -> String {
    format!("{{\"Records\":[{}]}}", record(1, body))
}

#[tokio::main(flavor = "current_thread")]
async fn process(keys: &str, event: String) {
    let handler = async |_: IgnoredAny, _: Call| Ok::<_, Failure>(());
    let idempotency = Idempotency::new(MemoryStore::new());
    let operation = Operation::new("hostile").key("id");
    let operation = match keys {
        "ours" => operation,
        S3_IN_SQS => operation.envelope(Envelope::S3),
        language => operation
            .powertools(PowertoolsKeys::of(language.parse().unwrap(), "p").accept_collisions()),
    };
    let mut function = idempotency.sqs(operation, handler).unwrap();
    let mut context = Context::default();
    context.deadline = SystemClock.now().plus(Duration::from_secs(3600)).as_millis();
    poll_fn(|cx| function.poll_ready(cx)).await.unwrap();
    // What is no JSON is refused by the runtime already.
    let Ok(payload) = RawValue::from_string(event) else { return };
    // An answer or an error: both are fine.
    let _ = function.call(LambdaEvent::new(payload, context)).await;
}

/// The peak of this process, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// What the other test starts: says the size of the event, the growth of the peak, and the seconds.
#[test]
#[ignore = "a part of the other test"]
fn one_event() {
    let name = env::var(EVENT).unwrap();
    let (keys, name) = name.split_once(": ").unwrap();
    let (_, make) = EVENTS.into_iter().find(|(event, _)| *event == name).unwrap();
    let event = make();
    let (size, before, begun) = (event.len(), peak(), Instant::now());
    process(keys, event);
    println!("figures {size} {} {}", peak() - before, begun.elapsed().as_secs());
}

#[test]
fn memory_and_time_stay_in_proportion_to_the_event() {
    let ours = EVENTS.map(|(event, _)| format!("ours: {event}"));
    // The readers of the others see the bodies only.
    let bodies = EVENTS.into_iter().skip_while(|(event, _)| *event != FIRST_BODY);
    let theirs = bodies.flat_map(|(event, _)| LIBRARIES.map(|of| format!("{of}: {event}")));
    let enveloped = format!("{S3_IN_SQS}: {NOTIFICATIONS}");
    for name in ours.into_iter().chain(theirs).chain([enveloped]) {
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "one_event", "--ignored", "--nocapture"])
            .env(EVENT, &name)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {}\n{said}", output.status);
        let figures = said.lines().find_map(|line| line.strip_prefix("figures ")).unwrap();
        let figures: Vec<usize> = figures.split(' ').map(|n| n.parse().unwrap()).collect();
        let [size, grown, seconds] = figures[..] else { panic!("{figures:?}") };
        println!("{name}: {size} bytes, {} MB more, {seconds} s", grown >> 20);
        assert!(grown <= size.max(100_000) * MOST, "{name}: {size} bytes took {grown} more");
        assert!(seconds <= PATIENCE, "{name}: {size} bytes took {seconds} s");
    }
}
