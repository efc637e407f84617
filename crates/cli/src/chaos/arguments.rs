//! The arguments of `chaos`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lambda_idempotency_chaos::{FaultKind, Settings};

/// Run a real function under every fault, and audit what it did
///
/// Builds the orders function whose orders say what goes wrong, starts several processes of it with a Lambda Runtime
/// API and an embedded DynamoDB, and delivers batches in which orders repeat. Meanwhile processes are killed and
/// stopped, handlers fail, the store fails and clocks differ, as the seed decides. Then it compares what the processes
/// did (each effect is a line in a file), the store's records and the answers to the queue.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// How many messages are sent; each is delivered at least once
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    deliveries: usize,

    /// The seed of all random choices in the schedule
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Run again, with the next seed, until this many minutes have passed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) minutes: u64,

    /// How many processes serve the queue at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = at_least_two)]
    processes: usize,

    /// The kinds of faults to inject [default: all]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = clap::value_parser!(FaultKind))]
    faults: Option<Vec<FaultKind>>,

    /// The cargo package of another function that follows the same scripts, built first, with --release if this command was
    #[arg(long, value_name = "NAME")]
    pub(crate) package: Option<String>,

    /// The path of the built function; nothing is built then
    #[arg(long, value_name = "PATH", conflicts_with = "package")]
    pub(crate) binary: Option<PathBuf>,

    /// An environment variable of the function; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::arguments::variable)]
    env: Vec<(String, String)>,

    /// Report the remaining messages as stuck if none is settled for this long
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = crate::arguments::duration)]
    patience: Duration,

    /// Print one JSON document for each run instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  A hundred thousand deliveries
    cargo run --release -p lambda-idempotency-cli -- chaos --deliveries 100000 --seed 7

  Only processes that are killed or stopped
    lambda-idempotency chaos --faults kill,stop

  For an hour, with a new seed for each run
    lambda-idempotency chaos --minutes 60

  Show that it finds mistakes: the same function without protection, or with a key that misses duplicates
    lambda-idempotency chaos --env SCRIPTED_UNPROTECTED=1
    lambda-idempotency chaos --env ORDERS_SQS_KEY=record:messageId

Kinds of faults:
  kill, stop, timeout, fail, panic, dead-letter, throttle, error, drop, slow, outage, skew

Exit code:
  0  every effect beyond the first has a cause that the documentation states; nothing is lost or stuck
  1  a violation
  2  the run could not be carried out";

impl Arguments {
    pub(crate) fn settings(&self, binary: PathBuf) -> Settings {
        let mut settings = Settings::new(binary);
        settings.deliveries = self.deliveries;
        settings.seed = self.seed;
        settings.processes = self.processes;
        settings.patience = self.patience;
        settings.env.clone_from(&self.env);
        if let Some(faults) = &self.faults {
            settings.faults = faults.iter().copied().collect();
        }
        settings
    }
}

fn at_least_two(text: &str) -> Result<usize, String> {
    let wanted = "must be a number of at least 2: with one process there are no races";
    text.parse().ok().filter(|count| *count > 1).ok_or_else(|| wanted.to_owned())
}
