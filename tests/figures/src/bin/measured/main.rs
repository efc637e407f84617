//! The functions that the benchmark compares, in one binary, so that they start with the same relocations.
//!
//! `VARIANT` selects one: `floor` does nothing for a record, `by-hand` claims and completes it with a put and
//! an update, `protected` uses the library, `run` and `run-many` call its functions of these names. `RUNTIME` is `current_thread` or `multi_thread`. With `STAMP`, the
//! handler's result is the time at which it returned, in microseconds, and is kept.

mod by_hand;
mod calls;
mod floor;
mod protected;

use lambda_runtime::Error;
use serde::Deserialize;

fn main() -> Result<(), Error> {
    let mut runtime = match variable("RUNTIME").as_str() {
        "multi_thread" => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    runtime.enable_all().build()?.block_on(async {
        match variable("VARIANT").as_str() {
            "floor" => floor::serve().await,
            "by-hand" => by_hand::serve().await,
            "run" => calls::serve(false).await,
            "run-many" => calls::serve(true).await,
            _ => protected::serve().await,
        }
    })
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

/// The time in microseconds since the epoch.
#[allow(clippy::disallowed_methods, reason = "it measures")]
fn micros() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(u64::MAX))
}

/// What the functions without the library read of an event from SQS.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SqsEvent {
    records: Vec<SqsRecord>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SqsRecord {
    message_id: String,
    body: String,
}

/// The part of an order that names it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: String,
}
