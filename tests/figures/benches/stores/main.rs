//! Measures the library with each of its stores, in real servers that this benchmark starts, beside a function that does
//! nothing and functions that send plain statements.
//!
//! ```console
//! $ cargo bench -p lambda-idempotency-figures --bench stores -- --store redis --store postgres --store dynamodb
//! $ cargo bench -p lambda-idempotency-figures --bench stores -- --store redis --rounds 15 --size 100
//! $ cargo bench -p lambda-idempotency-figures --bench stores -- --record
//! ```
//!
//! Without `--store` it measures nothing, so that `cargo bench -p lambda-idempotency-figures` measures what it always
//! has. With `--record` it measures all stores, and writes the figures to `tests/figures/stores.tsv` and into the page
//! about stores. Functions and servers are processes of their own, and a proxy between them counts requests. The rounds of
//! the functions alternate, and medians are printed. The processor time of a server is that of all its processes.
//! Redis keeps no file here, as a cache without one; PostgreSQL writes its log to the disk.
#![allow(clippy::disallowed_methods, reason = "it measures")]

#[path = "../figures/events.rs"]
#[allow(dead_code, reason = "the other benchmark uses the rest")]
mod events;
mod function;
#[path = "../../../../crates/postgres/tests/postgres/server.rs"]
#[allow(dead_code, clippy::expect_used, clippy::panic, reason = "tests use the rest")]
mod postgres;
#[path = "../figures/process.rs"]
mod process;
#[path = "../../../../crates/redis/tests/redis/server.rs"]
#[allow(dead_code, clippy::unwrap_used, clippy::panic, reason = "tests use the rest")]
mod redis_server;
mod rounds;
mod server;
mod table;

use std::error::Error;
use std::process::Command;
use std::{fs, path::Path};

use rounds::Scenario;
use server::Server;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What to measure.
struct Options {
    stores: Vec<String>,
    rounds: usize,
    sizes: Vec<usize>,
    /// Whether to keep the figures.
    record: bool,
}

impl Options {
    fn from_args() -> Result<Self> {
        let mut options = Self { stores: Vec::new(), rounds: 7, sizes: Vec::new(), record: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
            match argument.as_str() {
                "--store" => options.stores.push(value()?),
                "--rounds" => options.rounds = value()?.parse()?,
                "--size" => options.sizes.push(value()?.parse()?),
                "--record" => options.record = true,
                "--help" => return Err(HELP.into()),
                _ => {} // of the other benchmark
            }
        }
        if options.record {
            options.stores = ["redis", "postgres", "dynamodb"].map(str::to_owned).into();
        }
        if options.sizes.is_empty() {
            options.sizes = vec![1, 100, 1000];
        }
        Ok(options)
    }
}

const HELP: &str =
    "--store redis|postgres|dynamodb (several), --size RECORDS (several), --rounds N, --record";
const ATTEMPTS: usize = 3;
const FIGURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stores.tsv");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stores.md");

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::from_args()?;
    let how = how(&options)?;
    let mut recorded = format!("# {how}\n{}\n", table::HEADER);
    for store in &options.stores {
        let server = Server::start(store).await?;
        println!("# {how}\n{}", table::HEADER);
        for scenario in Scenario::ALL {
            for size in &options.sizes {
                let lines = measure(&server, scenario, *size, options.rounds).await?;
                println!("{}", lines.join("\n"));
                recorded.extend(lines.into_iter().map(|line| line + "\n"));
            }
        }
    }
    if options.record {
        record(&recorded)?;
    }
    Ok(())
}

/// Measures again if a record failed: a machine that is busy may not answer in time. What fails each time is recorded
/// without figures, and does not spoil the others.
async fn measure(
    server: &Server,
    scenario: Scenario,
    size: usize,
    rounds: usize,
) -> Result<Vec<String>> {
    for attempt in 1..=ATTEMPTS {
        match rounds::measure(server, scenario, size, (attempt, rounds)).await {
            Ok(lines) => return Ok(lines),
            Err(error) => eprintln!("{}, {size} {}: {error}", server.name(), scenario.name()),
        }
    }
    let nothing = "\t-".repeat(table::FIGURES);
    Ok(vec![format!("{}\tstored\t{}\t{size}{nothing}", server.name(), scenario.name())])
}

/// How the figures were measured.
fn how(options: &Options) -> Result<String> {
    let build = if cfg!(debug_assertions) { "a debug build" } else { "a release build" };
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split(' ').next().unwrap_or_default();
    let processors = std::thread::available_parallelism()?;
    let servers = ["redis-server", "postgres"].map(version).join(", ");
    let commit = said("git", &["describe", "--always", "--dirty", "--exclude=*"])?;
    let date = said("date", &["-u", "+%F"])?;
    Ok(format!(
        "Medians of {} rounds with {build} of commit {commit}, {date}, on {processors} processors, whose load was {load} before; \
         {servers}.",
        options.rounds
    ))
}

fn said(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("{program} {arguments:?} has ended with {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// What a server says of its version.
fn version(program: &str) -> String {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debian = debian.map(|version| version.path().join("bin").join(program));
    let paths = std::iter::once(program.into()).chain(debian);
    let mut said = paths.filter_map(|path| Command::new(path).arg("--version").output().ok());
    let said = said.next().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let said = said.unwrap_or_default();
    let number = said.split_whitespace().find_map(|word| {
        let number = word.trim_start_matches("v=");
        number.starts_with(|first: char| first.is_ascii_digit()).then(|| number.to_owned())
    });
    let name = if program == "postgres" { "PostgreSQL" } else { "Redis" };
    format!("{name} {}", number.unwrap_or_else(|| "of an unknown version".to_owned()))
}

/// Keeps the figures, and writes them into the page.
fn record(figures: &str) -> Result<()> {
    fs::write(FIGURES, figures)?;
    let page = fs::read_to_string(Path::new(PAGE))?;
    let (before, rest) = page.split_once(table::BEGIN).ok_or("the page has no place for them")?;
    let (_, after) = rest.split_once(table::END).ok_or("the page has no end of them")?;
    Ok(fs::write(PAGE, format!("{before}{}{after}", table::guide(figures)?))?)
}
