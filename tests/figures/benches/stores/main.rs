//! Measures the library with each of its stores, in real servers that this benchmark starts, beside a function that does
//! nothing and one that sends a bare statement for each record.
//!
//! ```console
//! $ cargo bench -p lambda-idempotency-figures --bench stores -- --store redis --store postgres --store dynamodb
//! $ cargo bench -p lambda-idempotency-figures --bench stores -- --store redis --rounds 15 --size 100
//! ```
//!
//! Without `--store` it measures nothing, so that `cargo bench -p lambda-idempotency-figures` measures what it always
//! has. Functions and servers are processes of their own, and a proxy between them counts requests. The rounds of
//! the functions alternate, and medians are printed. The processor time of a server is that of all its processes.
//! Redis keeps no file here, as a cache without one; PostgreSQL writes its log to the disk.
#![allow(clippy::disallowed_methods, reason = "it measures")]

#[path = "../figures/events.rs"]
#[allow(dead_code, reason = "the other benchmark uses the rest")]
mod events;
mod function;
#[path = "../figures/process.rs"]
mod process;
mod rounds;
mod server;

use std::error::Error;

use rounds::Scenario;
use server::Server;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What to measure.
struct Options {
    stores: Vec<String>,
    rounds: usize,
    sizes: Vec<usize>,
}

impl Options {
    fn from_args() -> Result<Self> {
        let mut options = Self { stores: Vec::new(), rounds: 7, sizes: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
            match argument.as_str() {
                "--store" => options.stores.push(value()?),
                "--rounds" => options.rounds = value()?.parse()?,
                "--size" => options.sizes.push(value()?.parse()?),
                _ => {} // of the other benchmark
            }
        }
        if options.sizes.is_empty() {
            options.sizes = vec![1, 100, 1000];
        }
        Ok(options)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::from_args()?;
    for store in &options.stores {
        let server = Server::start(store).await?;
        println!("\n{store}: medians of {} rounds\n", options.rounds);
        println!(
            "| | requests / record | function, CPU us / record | server, CPU us / record | server, us / write | x bare \
             | p50 ms | peak MB |\n|---|--:|--:|--:|--:|--:|--:|--:|"
        );
        for scenario in Scenario::ALL {
            for size in &options.sizes {
                rounds::measure(&server, scenario, *size, options.rounds).await?;
            }
        }
    }
    Ok(())
}
