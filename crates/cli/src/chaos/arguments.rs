//! The arguments of `chaos`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lambda_idempotency_chaos::{FaultKind, Mode, Settings, Template};
use lambda_idempotency_local::{Table, Target};

use crate::failure::Failure;

/// Run a real function under every fault, and audit what it did
///
/// With --sqs-body, it runs your own function, which gets messages of that shape and reports its effects. Without, it
/// builds the orders function whose orders say what goes wrong, and which can get more kinds of faults. It starts
/// several processes of it with a Lambda Runtime API and an embedded DynamoDB, and delivers batches in which orders
/// repeat. Meanwhile processes are killed and stopped, handlers fail, the store fails and clocks differ, as the seed
/// decides. Then it compares what the processes did (each effect is a line in a file), the store's records and the
/// answers to the queue.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// How many messages are sent; each is delivered at least once
    #[arg(long, value_name = "N", default_value = "10000", value_parser = at_least_one)]
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

    /// How effects are kept together with their completion: `transaction` commits both or neither
    #[arg(long, value_name = "claim|transaction", default_value_t = Mode::Claim, conflicts_with = "sqs_body")]
    mode: Mode,

    /// The kinds of faults to inject [default: all of the mode]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = clap::value_parser!(FaultKind))]
    faults: Option<Vec<FaultKind>>,

    /// Run your own function: a file with the body of an SQS message for it
    ///
    /// The function reports its effects with `lambda_idempotency::testing::effect(&call, "name")`.
    #[arg(long, value_name = "FILE", requires = "vary")]
    sqs_body: Option<PathBuf>,

    /// The member of the body in which messages of different work differ, such as `orderId` or `order.id`
    #[arg(long, value_name = "MEMBER", requires = "sqs_body")]
    vary: Option<String>,

    /// The cargo package of the function, built first, with --release if this command was
    #[arg(long, value_name = "NAME")]
    pub(crate) package: Option<String>,

    /// Which binary, if the package or the workspace has several
    #[arg(long, value_name = "NAME")]
    pub(crate) bin: Option<String>,

    /// The path of the built function; nothing is built then
    #[arg(long, value_name = "PATH", conflicts_with_all = ["package", "bin"])]
    pub(crate) binary: Option<PathBuf>,

    /// The function's timeout; messages are delivered again after three quarters of it
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = crate::arguments::time_to_work)]
    timeout: Duration,

    /// A further DynamoDB table of the function; may be repeated
    #[arg(long, value_name = "NAME:KEY[:TTL]", value_parser = crate::arguments::table)]
    table: Vec<Table>,

    /// An environment variable of the function; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::arguments::variable)]
    env: Vec<(String, String)>,

    /// Report the remaining messages as stuck if none is settled for this long
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = crate::arguments::time_to_work)]
    patience: Duration,

    /// Also write a page for a browser to this file: a timeline for each key, the effects and the faults
    #[arg(long, value_name = "FILE.html", conflicts_with = "minutes")]
    pub(crate) report: Option<PathBuf>,

    /// Print one JSON document for each run instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  A hundred thousand deliveries
    cargo run --release -p lambda-idempotency-cli -- chaos --deliveries 100000 --seed 7

  The same with effects in the transaction that completes their key: none may be doubled, whatever the cause
    lambda-idempotency chaos --mode transaction --deliveries 100000 --seed 7

  Your own function, in the directory of its package. Its handler calls testing::effect(&call, ..)
    lambda-idempotency chaos --sqs-body payment.json --vary paymentId --deliveries 2000 --report chaos.html

  Only processes that are killed or stopped
    lambda-idempotency chaos --faults kill,stop

  For an hour, with a new seed for each run
    lambda-idempotency chaos --minutes 60

  Show that it finds mistakes: the same function without protection, or with a key that misses duplicates
    lambda-idempotency chaos --env SCRIPTED_UNPROTECTED=1
    lambda-idempotency chaos --env ORDERS_SQS_KEY=record:messageId
    lambda-idempotency chaos --mode transaction --env SCRIPTED_OUTSIDE=1

Kinds of faults:
  kill, stop, throttle, error, drop, slow, outage: for any function
  timeout, fail, panic, dead-letter, skew: for a function that follows the scripts of the orders
  conflict: with --mode transaction

Exit code:
  0  every effect beyond the first has a cause that the documentation states (with --mode transaction there is none);
     nothing is lost or stuck
  1  a violation
  2  the run could not be carried out";

impl Arguments {
    /// Whether the function is the user's own, which follows no scripts.
    pub(crate) fn is_users_function(&self) -> bool {
        self.sqs_body.is_some()
    }

    /// Which function to build.
    pub(crate) fn target(&self) -> Target {
        Target { package: self.package.clone(), bin: self.bin.clone(), example: None }
    }

    pub(crate) fn settings(&self, binary: PathBuf) -> Result<Settings, Failure> {
        let mut settings = match (&self.sqs_body, &self.vary) {
            (Some(path), Some(vary)) => {
                let body = std::fs::read_to_string(path)
                    .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
                let template = Template::new(&body, vary).map_err(|error| {
                    Failure::from(error).remedy(
                        "Name with `--vary` the member that makes two messages different work.",
                    )
                })?;
                Settings::for_any_function(binary, template)
            }
            _ if self.mode == Mode::Transaction => Settings::transactional(binary),
            _ => Settings::new(binary),
        };
        settings.timeout = self.timeout;
        settings.visibility = self.timeout * 3 / 4;
        settings.tables.clone_from(&self.table);
        settings.story = self.report.is_some();
        settings.deliveries = self.deliveries;
        settings.seed = self.seed;
        settings.processes = self.processes;
        settings.patience = self.patience;
        settings.env.clone_from(&self.env);
        if let Some(faults) = &self.faults {
            settings.faults = faults.iter().copied().collect();
        }
        Ok(settings)
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "must be a number from 1".to_owned())
}

fn at_least_two(text: &str) -> Result<usize, String> {
    let wanted = "must be a number of at least 2: with one process there are no races";
    text.parse().ok().filter(|count| *count > 1).ok_or_else(|| wanted.to_owned())
}
