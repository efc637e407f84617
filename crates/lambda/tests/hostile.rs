//! Hostile events: as large as Lambda allows, and in shapes that are expensive to parse.
//!
//! Each is handled in a separate process, of which the operating system reports the peak memory and the processor's time.
//! Both must stay proportional to the event's size, and the function must answer and not crash.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::{env, fmt::Write as _, future::poll_fn, process::Command, time::Duration};

use lambda_idempotency::{
    Call, Failure, Idempotency, MemoryStore, Operation,
    clock::{Clock, SystemClock},
    keys::powertools::PowertoolsKeys,
    source::{Envelope, Kafka, Sqs},
};
use lambda_runtime::{Context, LambdaEvent};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tower_service::Service;

/// The largest event of a synchronous invocation, in bytes.
const LARGEST: usize = 6 * 1024 * 1024;
const EVENT: &str = "HOSTILE_EVENT";
/// The bytes of memory that each byte of an event may take. The shortest records, notifications of twenty
/// bytes, take 68; records of a hundred bytes take 46; an ordinary order takes far less.
const MOST: usize = 72;

/// How many times as long as an event of ordinary records another one may occupy the processor. Of this size, quadratic
/// code takes thousands of times as long.
const MOST_TIME: u64 = 30;
const ORDINARY: &str = "ours: many records";

/// The name of an event, and the function that makes it.
type Hostile = (&'static str, fn() -> String);

/// Powertools in these languages has other keys, and their own code reads the documents.
const LANGUAGES: [&str; 2] = ["powertools-python", "powertools-typescript"];
/// Our own keys, with an envelope around the payload.
const S3_IN_SQS: &str = "S3 in SQS";
/// Our own keys, with each record kept that has a byte at most: none is.
const KEPT: &str = "kept";
/// The event of a topic, which each of its records keeps as a whole.
const TOPIC: &str = "many records of a topic";
/// The event for such an envelope.
const NOTIFICATIONS: &str = "many notifications in a body";
/// This event and those after it have one record, with a hostile body.
const FIRST_BODY: &str = "deep brackets in a body";

const EVENTS: [Hostile; 12] = [
    ("a record", || records(1, |_| 1)),
    ("many copies", || records(LARGEST, |_| 1)),
    ("many records", || records(LARGEST, |number| number)),
    (TOPIC, topic),
    ("many numbers instead of records", || {
        format!("{{\"Records\":[{}1]}}", "1,".repeat(LARGEST / 2))
    }),
    ("deep brackets around the event", || "[".repeat(LARGEST)),
    (FIRST_BODY, || body(&"[".repeat(LARGEST - 1000))),
    ("a long number", || body(&format!("{{\\\"id\\\":{}}}", "9".repeat(LARGEST - 1000)))),
    ("a list as a key", || body(&format!("{{\\\"id\\\":[{}1]}}", "1,".repeat(LARGEST / 2 - 1000)))),
    (NOTIFICATIONS, || {
        body(&format!(
            "{{\\\"Records\\\":[{}1]}}",
            "{\\\"s3\\\":{\\\"a\\\":1}},".repeat(LARGEST / 20)
        ))
    }),
    ("many members with one name", || {
        body(&format!("{{{}}}", "\\\"id\\\":1,".repeat(LARGEST / 10)))
    }),
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

/// As many records as fit into `room` bytes.
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

fn topic() -> String {
    let record = |offset| {
        format!(r#"{{"topic":"t","partition":0,"offset":{offset},"timestamp":1,"value":"MQ=="}}"#)
    };
    let records: Vec<_> = (0..LARGEST / 80).map(record).collect();
    format!(
        r#"{{"eventSource":"aws:kafka","bootstrapServers":"b","records":{{"t-0":[{}]}}}}"#,
        records.join(",")
    )
}

fn body(body: &str) -> String {
    format!("{{\"Records\":[{}]}}", record(1, body))
}

#[tokio::main(flavor = "current_thread")]
async fn process(keys: &str, event: String) {
    let handler = async |_: IgnoredAny, _: Call| Ok::<_, Failure>(());
    let idempotency = Idempotency::new(MemoryStore::new());
    let operation = Operation::new("hostile").key("id");
    let source = match keys {
        S3_IN_SQS => Sqs::new().envelope(Envelope::S3),
        KEPT => Sqs::new().recoverable(1),
        _ => Sqs::new(),
    };
    let operation = match keys {
        "ours" | S3_IN_SQS | KEPT => operation,
        language => operation
            .powertools(PowertoolsKeys::of(language.parse().unwrap(), "p").accept_collisions()),
    };
    let builder = idempotency.function().on(source, &operation, handler);
    let topic = Operation::new("topic");
    let mut function = builder.on(Kafka::new().recoverable(1), &topic, handler).build().unwrap();
    let mut context = Context::default();
    context.deadline = SystemClock.now().plus(Duration::from_secs(3600)).as_millis();
    poll_fn(|cx| function.poll_ready(cx)).await.unwrap();
    // The runtime refuses text that is not JSON before it calls the function.
    let Ok(payload) = RawValue::from_string(event) else { return };
    // An answer or an error: both are fine.
    let _ = function.call(LambdaEvent::new(payload, context)).await;
}

/// The peak memory of this process, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// How long this thread occupied the processor, in milliseconds.
fn occupied() -> u64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    times.split(' ').next().unwrap().parse::<u64>().unwrap() / 1_000_000
}

/// `check` starts this one in its own process. It prints the size of the event, the growth
/// of the peak memory, and the milliseconds.
#[test]
#[ignore = "`check` starts it"]
fn one_event() {
    let name = env::var(EVENT).unwrap();
    let (keys, name) = name.split_once(": ").unwrap();
    let (_, make) = EVENTS.into_iter().find(|(event, _)| *event == name).unwrap();
    let event = make();
    let (size, before, began) = (event.len(), peak(), occupied());
    process(keys, event);
    println!("figures {size} {} {}", peak() - before, occupied() - began);
}

// Two tests, so that two processors have work.

#[test]
fn memory_and_time_are_proportional_to_the_event() {
    let ordinary = check(ORDINARY, u64::MAX);
    for (event, _) in EVENTS {
        check(&format!("ours: {event}"), ordinary);
    }
    check(&format!("{S3_IN_SQS}: {NOTIFICATIONS}"), ordinary);
    check(&format!("{KEPT}: many records"), ordinary);
}

#[test]
fn memory_and_time_for_powertools_keys_are_proportional_to_the_event() {
    let ordinary = check(ORDINARY, u64::MAX);
    // The code for Powertools keys reads only the bodies.
    for (event, _) in EVENTS.into_iter().skip_while(|(event, _)| *event != FIRST_BODY) {
        for language in LANGUAGES {
            check(&format!("{language}: {event}"), ordinary);
        }
    }
}

/// Handles an event in a process of its own, checks the figures that it prints, and returns the milliseconds.
fn check(name: &str, ordinary: u64) -> u64 {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "one_event", "--ignored", "--nocapture"])
        .env(EVENT, name)
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name}: {}\n{output_text}", output.status);
    let figures = output_text.lines().find_map(|line| line.strip_prefix("figures ")).unwrap();
    let figures: Vec<&str> = figures.split(' ').collect();
    let [size, grown] = [0, 1].map(|at| figures[at].parse::<usize>().unwrap());
    let took: u64 = figures[2].parse().unwrap();
    println!("{name}: {size} bytes, {} MB more, {took} ms", grown >> 20);
    assert!(grown <= size.max(100_000) * MOST, "{name}: {size} bytes took {grown} bytes of memory");
    let most = ordinary.max(1).saturating_mul(MOST_TIME);
    assert!(took <= most, "{name}: {size} bytes took {took} ms, and ordinary records {ordinary}");
    took
}
