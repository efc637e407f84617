//! Measures the orders function: memory, time and requests for batches of 10.
//!
//! ```console
//! $ cargo run --release -p lambda-idempotency-tests --example footprint
//! ```
//!
//! The function is built in release and runs as its own process, against the embedded DynamoDB on
//! the same machine. The requests are the library's and, for each fresh order, the handler's one; the
//! time is that of the whole invocation, as the Runtime API sees it, and depends on how fast this
//! machine is at being DynamoDB. Memory is the process's own: its peak (`VmHWM`), as Linux counts it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lambda_idempotency_local::{Build, Invocation, Local};
use lambda_idempotency_tests::{
    events::{batch_of, order},
    function, tables,
};

const BATCHES: usize = 200;
const RECORDS: usize = 10;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let binary = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => {
            let package = Some("orders".to_owned());
            let directory = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
            let build = Build {
                package,
                release: true,
                shows_progress: true,
                directory,
                ..Build::default()
            };
            build.run().await?
        }
    };
    let mut local = Local::builder(function(&binary).env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"));
    for table in tables() {
        local = local.table(table);
    }
    let local = local.start().await?;

    let size = std::fs::metadata(&binary)?.len();
    println!("{}: {:.1} MB\n", binary.display(), megabytes(size / 1024));
    println!(
        "{:<22} {:>10} {:>12} {:>10}",
        "batches of 10 records", "ms, median", "requests", "peak, MB"
    );
    // One of each to warm up: connections, allocator, the first page of everything.
    for (name, repeat) in [("the first", 1), ("fresh", BATCHES), ("duplicates", BATCHES)] {
        let mut runs = Vec::with_capacity(repeat);
        for number in 0..repeat {
            let kind = if name == "the first" { "first" } else { "order" };
            let names = (0..RECORDS).map(|record| format!("{kind}-{number}-{record}"));
            let event = batch_of(names.map(|name| order(&name)));
            runs.push(check(local.invoke(&event).await?, name)?);
        }
        let requests: u64 = runs.iter().map(|run| run.dynamodb.requests()).sum();
        let pid = runs.last().map(|run| run.pid).unwrap_or_default();
        println!(
            "{name:<22} {:>10.2} {:>12.1} {:>10.1}",
            median(runs.iter().map(|run| run.duration)).as_secs_f64() * 1000.0,
            requests as f64 / repeat as f64,
            megabytes(peak(pid)?),
        );
    }
    local.shutdown().await;
    Ok(())
}

/// Fails if a delivery failed, because its figures would be useless.
fn check(invocation: Invocation, name: &str) -> Result<Invocation, Box<dyn Error>> {
    let expected = if name == "duplicates" { "replayed" } else { "executed" };
    let told = invocation.records.iter();
    let right = told.filter(|record| record.outcome.as_str() == expected).count();
    if right != RECORDS {
        return Err(format!("{right} of {RECORDS} records were {expected}: {invocation:?}").into());
    }
    Ok(invocation)
}

fn median(durations: impl Iterator<Item = Duration>) -> Duration {
    let mut sorted: Vec<_> = durations.collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The peak memory of the process, in KiB.
fn peak(pid: u32) -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kib.ok_or("no VmHWM in /proc: this needs Linux")?.trim().parse()?)
}

/// KiB in MB of a million bytes.
fn megabytes(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}
