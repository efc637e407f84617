//! Measures the library in whole functions, beside functions without it: `floor` does nothing for a record,
//! `by hand` makes a conditional put and an update for each.
//!
//! ```console
//! $ cargo bench -p lambda-idempotency-figures
//! $ cargo bench -p lambda-idempotency-figures -- --only fresh --only start --rounds 15
//! $ cargo bench -p lambda-idempotency-figures -- --beside target/before/measured
//! ```
//!
//! `bash tests/run figures` makes a whole run and records it in the guide, with `--record`.
//!
//! Each function is a process of its own, driven over the Runtime API; the embedded DynamoDB is another
//! process, behind the proxy that counts and delays requests. It is started anew for each scenario and size, because it
//! answers later the more items it has. The rounds of all functions alternate, so that
//! a busy machine slows all of them, and what is printed are medians over the rounds. The processor time is
//! that of the function's process alone, as Linux counts it for its threads. Compare ratios, not times:
//! those of a function `by hand` on the same runtime are in the column `x by hand`.
#![allow(clippy::disallowed_methods, reason = "it measures")]

mod calls;
mod database;
mod events;
mod memory;
mod options;
mod process;
mod record;
mod report;
mod rounds;
mod sample;
mod start;
mod windows;
mod worker;

use std::error::Error;

use options::Options;
use record::Record;
use rounds::Scenario;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use worker::Function;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::from_args()?;
    let functions = Function::all(&options);
    let record = &mut Record::new()?;
    // Lambda's limit of open files. The functions inherit it from this process, and the database raises its own.
    let limit = Rlimit { current: Some(1024), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit)?;
    println!("Medians of {} rounds.", options.rounds(1));
    for scenario in Scenario::ALL {
        if options.wants(scenario.name()) {
            rounds::measure(scenario, &functions, &options, record).await?;
        }
    }
    if options.wants("calls") {
        calls::measure(&options, record).await?;
    }
    if options.wants("windows") {
        windows::measure(&functions, &options, record).await?;
    }
    if options.wants("memory") {
        memory::measure(&functions, &options, record).await?;
    }
    if options.wants("start") {
        start::measure(&functions, &options, record).await?;
    }
    if let Some(file) = &options.record {
        record.write(file, options.rounds(1))?;
    }
    Ok(())
}
