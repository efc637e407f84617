//! The arguments of `chaos`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lambda_idempotency_chaos::{FaultKind, Settings, Template};
use lambda_idempotency_local::Table;

use crate::arguments::{at_least, table, time_to_work};
use crate::failure::Failure;
use crate::function::FunctionOptions;
use crate::input;

/// Run a real function under every fault, and audit what it did
///
/// With --sqs-body or --event, it runs your own function, which gets messages of that shape and reports its effects. Without, it
/// builds the orders function whose orders say what goes wrong, and which can get more kinds of faults. It starts
/// several processes of it with a Lambda Runtime API and an embedded DynamoDB, and delivers batches in which orders
/// repeat. Meanwhile processes are killed and stopped, handlers fail, the store fails and clocks differ, as the seed
/// decides. Then it compares what the processes did (each effect is a line in a file), the store's records and the
/// answers to the source.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// How many messages are sent; each is delivered at least once
    #[arg(long, value_name = "N", default_value = "10000", value_parser = at_least::<1>)]
    deliveries: usize,

    /// The seed of all random choices in the schedule
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// How many processes serve the queue at a time: with one there are no races
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = at_least::<1>)]
    processes: usize,

    /// The kinds of faults to inject [default: all that the function can get]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = clap::value_parser!(FaultKind))]
    faults: Option<Vec<FaultKind>>,

    /// Run your own function: a file (`-`: standard input) with the body of an SQS message for it
    ///
    /// The function reports its effects with `lambda_idempotency::testing::effect(&call, "name")`.
    #[arg(long, value_name = "FILE", requires = "vary", group = "own")]
    sqs_body: Option<PathBuf>,

    /// The same with another source: a file (`-`: standard input) with an event that has one record
    ///
    /// Of SQS (standard or FIFO), SNS, EventBridge, Kinesis or a DynamoDB stream; `lambda-idempotency event` makes one.
    /// Every message is this record with another id and another payload. A queue's and a stream's batches have up to
    /// ten; where order counts, the audit compares it.
    #[arg(long, value_name = "EVENT.json", requires = "vary", group = "own")]
    event: Option<PathBuf>,

    /// The member of the payload in which messages of different work differ, such as `orderId` or `order.id`
    #[arg(long, value_name = "MEMBER", requires = "own")]
    vary: Option<String>,

    #[command(flatten)]
    pub(crate) function: FunctionOptions,

    /// The function's timeout; messages are delivered again after three quarters of it
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = time_to_work)]
    timeout: Duration,

    /// A further DynamoDB table of the function; may be repeated
    #[arg(long, value_name = "NAME:KEY[:TTL]", value_parser = table)]
    table: Vec<Table>,

    /// Report the remaining messages as stuck if none is settled for this long
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = time_to_work)]
    patience: Duration,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  Your own function, in the directory of its package. Its handler calls testing::effect(&call, ..)
    lambda-idempotency chaos --sqs-body payment.json --vary paymentId --deliveries 2000

  Your own function with another source: a stream, a FIFO queue, a topic, a bus
    lambda-idempotency event kinesis --body @payment.json > event.json
    lambda-idempotency chaos --event event.json --vary paymentId --deliveries 2000

  The orders function, with more kinds of faults
    lambda-idempotency chaos --deliveries 100000 --seed 7

  Show that it finds mistakes: the same function without protection
    lambda-idempotency chaos --env SCRIPTED_UNPROTECTED=1

Kinds of faults:
  kill, stop, throttle, error, drop, slow, outage: for any function
  timeout, fail, panic, dead-letter, skew: for a function that follows the scripts of the orders

Exit code:
  0  every effect beyond the first has a cause that the documentation states; nothing is lost or stuck
  1  a violation
  2  the run could not be carried out";

const TEMPLATE: &str = "`--vary` names the member that makes two messages different work, and
  `lambda-idempotency event kinesis --body @payment.json > event.json` makes an event.";

impl Arguments {
    /// Whether the function is the user's own, which follows no scripts.
    pub(crate) fn is_users_function(&self) -> bool {
        self.sqs_body.is_some() || self.event.is_some()
    }

    /// The message of the user's function, if it is one.
    fn template(&self) -> Result<Option<Template>, Failure> {
        let Some(vary) = &self.vary else { return Ok(None) };
        let template = match (&self.sqs_body, &self.event) {
            (Some(path), _) => Template::new(&input::read(path)?, vary),
            (None, Some(path)) => Template::of_event(&input::read(path)?, vary),
            (None, None) => return Ok(None),
        };
        template.map(Some).map_err(|error| Failure::from(error).remedy(TEMPLATE))
    }

    /// The settings, without the binary.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let binary = PathBuf::new();
        let mut settings = match self.template()? {
            Some(template) => Settings::for_any_function(binary, template),
            None => Settings::new(binary),
        };
        settings.timeout = self.timeout;
        settings.visibility = self.timeout * 3 / 4;
        settings.tables.clone_from(&self.table);
        settings.deliveries = self.deliveries;
        settings.seed = self.seed;
        settings.processes = self.processes;
        settings.patience = self.patience;
        settings.env.clone_from(&self.function.env);
        if let Some(faults) = &self.faults {
            settings.faults = faults.iter().copied().collect();
        }
        Ok(settings)
    }
}
