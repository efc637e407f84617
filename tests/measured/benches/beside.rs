//! Measures a function with the library beside the same protection by hand, and prints one table in Markdown:
//!
//! ```console
//! $ cargo bench -p lambda-idempotency-measured --bench beside
//! ```
//!
//! Each function is a process of its own, driven over the Runtime API. The embedded DynamoDB is in this process, behind
//! proxies that count requests. The rounds of both functions alternate, so that a busy machine slows both, and medians
//! are printed: compare the two columns, not the times. Processor time is that of the function's process alone.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::{error::Error, fs, process::Command, time::Duration};

use lambda_idempotency_local::{
    DynamoDb, Fault, FunctionConfig, InvocationResult, Local, Proxy, Table,
};
use lambda_idempotency_measured::{batch, request};
use serde_json::Value;

const SIZES: [usize; 4] = [1, 10, 100, 1000];
const DELAYS: [u64; 2] = [0, 5];
/// After one that opens the connections.
const ROUNDS: usize = 7;
const TABLE: &str = "idempotency";
const LONG: Duration = Duration::from_secs(300);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    println!("{}\n", machine()?);
    println!("By hand / this library, for new records:\n");
    let columns = "more for each request | processor, us a record | ratio | requests a record | duration, ms | peak memory, MB |";
    println!("| records at a time | {columns}\n|--:|--:|--:|--:|--:|--:|--:|");
    for delay in DELAYS {
        for size in SIZES {
            println!("| {size} {}", row("queue", size, delay).await?);
        }
    }
    println!("\nOne at a time:\n\n| | {columns}\n|---|--:|--:|--:|--:|--:|--:|");
    for (name, work) in [
        ("an HTTP request", "http"),
        ("a record whose effect is in the transaction of its completion", "transaction"),
    ] {
        println!("| {name} {}", row(work, 1, 5).await?);
    }
    Ok(())
}

/// When, what and where this is.
fn machine() -> Result<String> {
    let info = fs::read_to_string("/proc/cpuinfo")?;
    let names = info.lines().filter_map(|line| line.strip_prefix("model name"));
    let names: Vec<_> = names.map(|name| name.trim_start_matches(['\t', ':', ' '])).collect();
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(format!(
        "Measured on {}, commit {}, {} x {}, {}, medians of {ROUNDS} rounds, load {} before it.",
        said("date", &["-u", "+%F"])?,
        said("git", &["rev-parse", "--short", "HEAD"])?,
        names.len(),
        names.first().ok_or("no processor")?,
        said("rustc", &["--version"])?,
        load.split(' ').next().unwrap_or_default(),
    ))
}

fn said(command: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(command).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("{command} {arguments:?}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

async fn row(work: &'static str, size: usize, delay: u64) -> Result<String> {
    // A new one for each size, because it answers later the more items it has.
    let database = DynamoDb::start().await?;
    database.create_table(&Table::new(TABLE, "id").ttl("expiration"))?;
    database.create_table(&Table::new("effects", "id"))?;
    if delay > 0 {
        database.faults().add(Fault::delay(Duration::from_millis(delay)));
    }
    let by_hand = Worker::start(&database, work, true).await?;
    let protected = Worker::start(&database, work, false).await?;
    let mut samples: [Vec<Sample>; 2] = Default::default();
    for round in 0..=ROUNDS {
        for (worker, samples) in [&by_hand, &protected].into_iter().zip(&mut samples) {
            let sample = worker.measure(size, round).await?;
            samples.extend((round > 0).then_some(sample));
        }
    }
    let memory = [megabytes(by_hand.pid)?, megabytes(protected.pid)?];
    let [hand, ours] = samples.each_ref().map(|samples| Sample {
        micros: median(samples.iter().map(|it| it.micros)),
        requests: median(samples.iter().map(|it| it.requests)),
        millis: median(samples.iter().map(|it| it.millis)),
    });
    by_hand.local.shutdown().await;
    protected.local.shutdown().await;
    Ok(format!(
        "| {delay} ms | {:.0} / {:.0} | {:.2} | {:.2} / {:.2} | {:.1} / {:.1} | {:.1} / {:.1} |",
        hand.micros,
        ours.micros,
        ours.micros / hand.micros,
        hand.requests,
        ours.requests,
        hand.millis,
        ours.millis,
        memory[0],
        memory[1],
    ))
}

/// What one round of one function showed.
struct Sample {
    /// Processor time of a record.
    micros: f64,
    /// Requests of a record.
    requests: f64,
    /// The median duration of an invocation.
    millis: f64,
}

/// A function that runs, in one process, with a proxy of its own.
struct Worker {
    local: Local,
    proxy: Proxy,
    pid: u32,
    work: &'static str,
    is_by_hand: bool,
}

impl Worker {
    /// Starts the process and waits until it asks for an event.
    async fn start(database: &DynamoDb, work: &'static str, is_by_hand: bool) -> Result<Self> {
        let proxy = database.proxy().await?;
        let mut config = FunctionConfig::new(env!("CARGO_BIN_EXE_measured"))
            .timeout(LONG)
            .init_timeout(LONG)
            .env("WORK", work)
            .env("IDEMPOTENCY_TABLE", TABLE)
            .env("AWS_ENDPOINT_URL_DYNAMODB", proxy.url());
        if is_by_hand {
            config = config.env("BY_HAND", "1");
        }
        let others = children()?;
        let errors = |line: lambda_idempotency_local::OutputLine| {
            if !line.is_record && !line.text.contains(r#""level":"INFO""#) {
                eprintln!("{}", line.text);
            }
        };
        let local = Local::builder(config).on_output(errors).start().await?;
        local.warm().await?;
        let pid = children()?.into_iter().find(|child| !others.contains(child));
        Ok(Self { local, proxy, pid: pid.ok_or("the function has ended")?, work, is_by_hand })
    }

    /// Invokes the function some times, one after the other, with records of this round.
    async fn measure(&self, size: usize, round: usize) -> Result<Sample> {
        let invocations = if size < 100 { 60 } else { 2000 / size };
        let name = |event: usize| format!("{}-{round}-{event}", self.is_by_hand);
        let events: Vec<Value> = (0..invocations)
            .map(|event| match self.work {
                "http" => request(&name(event)),
                _ => batch((0..size).map(|record| format!("{}-{record}", name(event)))),
            })
            .collect();
        let (micros, requests) = (processor_micros(self.pid)?, self.proxy.usage().requests());
        let mut took = Vec::with_capacity(invocations);
        for event in &events {
            took.push(self.invoke(event).await?.as_secs_f64() * 1000.0);
        }
        let records = (invocations * size) as f64;
        Ok(Sample {
            micros: (processor_micros(self.pid)? - micros) / records,
            requests: (self.proxy.usage().requests() - requests) as f64 / records,
            millis: median(took),
        })
    }

    /// Invokes the function once, and fails if a record did.
    async fn invoke(&self, event: &Value) -> Result<Duration> {
        let invocation = self.local.invoke(event).await?;
        let InvocationResult::Response(response) = &invocation.result else {
            return Err(invocation.result.to_string().into());
        };
        let failures = response.get("batchItemFailures").and_then(Value::as_array);
        let is_done = match self.work {
            "http" => response.get("statusCode").is_some_and(|status| *status == 201),
            _ => failures.is_some_and(Vec::is_empty),
        };
        if !is_done {
            return Err(format!("records failed: {response}").into());
        }
        Ok(invocation.duration)
    }
}

/// The processor time of a process up to now, by its threads. Both functions have one thread.
fn processor_micros(pid: u32) -> Result<f64> {
    let mut nanos = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let schedule = fs::read_to_string(task?.path().join("schedstat"))?;
        nanos += schedule.split(' ').next().unwrap_or_default().parse::<f64>()?;
    }
    Ok(nanos / 1000.0)
}

/// The peak of a process's resident memory.
fn megabytes(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no peak")?;
    let kib = peak.trim().strip_suffix(" kB").ok_or("no size")?;
    Ok(kib.parse::<f64>()? * 1024.0 / 1e6)
}

/// The processes that this one has started and that have not ended.
fn children() -> Result<Vec<u32>> {
    let mut children = Vec::new();
    for task in fs::read_dir("/proc/self/task")? {
        let list = fs::read_to_string(task?.path().join("children"))?;
        children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Ok(children)
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
