//! A function that does what each record says, for the tests of this crate.
//!
//! A record's text (the body of an SQS message, or a whole unknown event) holds `{"do": "<step>"}`:
//!
//! - `succeed`: the record is executed;
//! - `report`: it is reported in `batchItemFailures`, with an error that says `told to report` where the environment
//!   asks for what errors say;
//! - `reject`: it is permanently failed, which is reported as long as it is delivered; `divert`: a sink has it; `sink`: a
//!   sink failed;
//! - `large`: its result is too large to be kept; `no table`: the store has no table; `late`: it
//!   is stopped, and its key is busy then;
//! - `fail`: the function returns an error;
//! - `refuse`: the answer is one of the library to an HTTP request; `stray`: it is a 404 of the function's own;
//!   `again`: it is a 409 at first;
//! - `unknown`: the error is the library's for an event of no source that the function handles;
//! - `overflow`: its answer is larger than Lambda allows;
//! - `sleep`: it writes the line `sleeping`, and sleeps for an hour;
//! - `abort`: the process aborts.

#![allow(clippy::indexing_slicing, reason = "indexing a JSON value cannot panic")]

use std::{collections::BTreeSet, sync::Mutex, time::Duration};

use lambda_runtime::{Diagnostic, Error, LambdaEvent, service_fn, tracing};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    if let Ok(mistake) = std::env::var("FAIL_TO_START") {
        eprintln!("Error: {mistake}");
        std::process::exit(1);
    }
    eprintln!("started");
    lambda_runtime::run(service_fn(handle)).await
}

async fn handle(event: LambdaEvent<Value>) -> Result<Value, Diagnostic> {
    let mut failures = Vec::new();
    for (source, record, script) in records(&event.payload) {
        let step = script.get("do").and_then(Value::as_str).unwrap_or("succeed");
        match step {
            "refuse" => {
                let kind = "https://docs.rs/lambda-idempotency/latest/lambda_idempotency/guide/sources/http/index.html#key";
                let problem = json!({ "type": kind, "title": "The request has no key", "detail": "Send one." });
                return Ok(json!({ "statusCode": 400, "body": problem.to_string() }));
            }
            "overflow" => return Ok(Value::from("o".repeat(6_291_555))),
            "stray" => return Ok(json!({ "statusCode": 404 })),
            "again" if is_first(&record) => return Ok(json!({ "statusCode": 409 })),
            "fail" => return Err(Error::from("told to fail").into()),
            "unknown" => {
                let error_type = "Idempotency.UnknownEvent".to_owned();
                return Err(Diagnostic { error_type, error_message: String::new() });
            }
            "sleep" => {
                eprintln!("sleeping");
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
            "abort" => std::process::abort(),
            _ => {}
        }
        let is_failed = ["report", "reject", "divert", "sink", "no table", "late"].contains(&step);
        let outcome = match step {
            "reject" if !is_first(&record) => "permanently_failed",
            "no table" => "unavailable",
            "late" if is_first(&record) => "timed_out",
            "late" => "busy",
            _ if is_failed => "failed",
            _ => "executed",
        };
        if is_failed && step != "divert" {
            failures.push(json!({ "itemIdentifier": record }));
        }
        tracing::info!(
            target: "lambda_idempotency::record",
            source,
            record,
            operation = "scripted",
            key_hash = "0123456789abcdef",
            outcome,
            ms = 1.5,
            failed_attempts = 0,
            lost_attempts = 0,
            problem = match outcome {
                "failed" => Some("the handler failed with a text (failure 1 for this key)"),
                "permanently_failed" => Some("an earlier delivery failed permanently"),
                "timed_out" => Some("the handler was stopped at the invocation's deadline"),
                "busy" => Some("another worker is processing the same key"),
                "unavailable" => Some("table claims does not exist in region us-east-1, or is not active"),
                _ => (step == "large").then_some("TooLarge"),
            },
            error_message = (outcome == "failed" && shows_error_messages()).then_some("told to report"),
            request_id = event.context.request_id,
            "record done"
        );
        macro_rules! sink {
            ($($said:tt)*) => {
                tracing::warn!(target: "lambda_idempotency::record", source, record, operation = "scripted", $($said)*)
            };
        }
        match step {
            "divert" => sink!("record diverted"),
            "sink" => sink!(
                problem = "the sink failed",
                error_message = "told to keep nothing",
                "record not diverted"
            ),
            _ => {}
        }
    }
    Ok(json!({ "batchItemFailures": failures, "deadline": event.context.deadline }))
}

/// Source, id and script of each record.
fn records(event: &Value) -> Vec<(&'static str, String, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match event.get("Records").and_then(Value::as_array) {
        Some(records) => {
            let script = |body: &Value| serde_json::from_str(&text(body)).unwrap_or_default();
            let of = |record: &Value| ("sqs", text(&record["messageId"]), script(&record["body"]));
            records.iter().map(of).collect()
        }
        None => vec![("invoke", "event".to_owned(), event.clone())],
    }
}

/// Whether the record was not rejected before.
fn is_first(record: &str) -> bool {
    static REJECTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    REJECTED.lock().is_ok_and(|mut rejected| rejected.insert(record.to_owned()))
}

fn shows_error_messages() -> bool {
    std::env::var("IDEMPOTENCY_LOG_ERROR_MESSAGES").is_ok_and(|value| value == "1")
}
