//! The arguments of `invoke`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lambda_idempotency_local::Table;

use crate::arguments::{at_least, duration, table, time_to_work};
use crate::function::FunctionOptions;

/// Deliver events to a real function on this machine: no AWS account, no Docker
///
/// Builds the function, starts it with a Lambda Runtime API and an embedded DynamoDB, and delivers each event file as
/// AWS would: SQS records through a queue that redelivers what fails, streams and Kafka topics again from their
/// checkpoints, events of SNS, EventBridge, Scheduler, S3 and message brokers with retries, HTTP requests from a
/// client that tries again, any other event once. Then it shows the outcome of each delivery of each record, which it
/// reads from the function's log.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Event files, in the shape that the function gets; `-` is standard input
    #[arg(required_unless_present = "sqs_body", value_name = "EVENT.json")]
    pub(crate) events: Vec<PathBuf>,

    /// A file (`-`: standard input) with the body of an SQS message, without the envelope; may be repeated: the messages
    /// come in one batch
    #[arg(long, value_name = "FILE")]
    pub(crate) sqs_body: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) function: FunctionOptions,

    /// Deliver all files this often, which makes duplicates across invocations
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,

    /// The function's timeout: its process is killed when it takes longer
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = time_to_work)]
    pub(crate) timeout: Duration,

    /// How long a received SQS message stays invisible [default: the timeout]
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    pub(crate) visibility: Option<Duration>,

    /// How often an SQS message is received before it goes to the dead-letter queue
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_receive_count: u32,

    /// The most SQS messages in one invocation
    #[arg(long, value_name = "N", default_value = "10", value_parser = at_least::<1>)]
    pub(crate) batch_size: usize,

    /// How many processes of the function may run at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least::<1>)]
    pub(crate) concurrency: usize,

    /// The delays before the retries of an event of SNS, EventBridge and the like (AWS: 1m,2m)
    #[arg(long, value_name = "DELAYS", value_delimiter = ',', default_value = "1s,2s", value_parser = duration)]
    pub(crate) retry_delays: Vec<Duration>,

    /// A DynamoDB table to create beside `idempotency:id:expiration` and `orders:orderId`, or in place of the one of its
    /// name; may be repeated
    #[arg(long, value_name = "NAME:KEY[:TTL]", value_parser = table)]
    table: Vec<Table>,

    /// Set IDEMPOTENCY_STORE to this store, instead of IDEMPOTENCY_TABLE: postgres://.. or redis://..
    ///
    /// The function has to make its store by `Idempotency::from_env()`. The server has to be running; it keeps the
    /// records when the command has ended, and `records list --store URL` shows them.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,

    /// Also write a page for a browser to this file: a timeline for each key, the effects, and what became of records
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,

    /// Print one JSON document instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Print the summary only
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Show the function's output, with the library's lines; the output of a crashed process is always shown
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  Your own function, in the directory of its package: the body of a message is enough
    lambda-idempotency invoke --sqs-body order.json

  Twice, and as a page for a browser: the second delivery is answered without running anything
    lambda-idempotency invoke --sqs-body order.json --repeat 2 --report report.html

  In a workspace with several functions; its own table and settings
    lambda-idempotency invoke my-event.json --bin my-function \\
      --table claims:id:expiration --env IDEMPOTENCY_TABLE=claims --timeout 10

  For a script
    lambda-idempotency invoke my-event.json --json | jq .summary

Exit code:
  0  every record was done in the end
  1  something was dead-lettered or lost, or the library refused an HTTP request
  130  it was stopped (Ctrl-C); what was seen until then is shown
  2  it could not be tried: bad arguments, bad JSON, a failed build, a function that does not start";

impl Arguments {
    /// Whether the user named this table.
    pub(crate) fn names(&self, table: &Table) -> bool {
        self.table.iter().any(|named| named.name() == table.name())
    }

    pub(crate) fn tables(&self) -> Vec<Table> {
        let records = Table::new("idempotency", "id").ttl("expiration");
        let records = Some(records).filter(|_| self.store.is_none());
        let defaults = records.into_iter().chain([Table::new("orders", "orderId")]);
        defaults.filter(|table| !self.names(table)).chain(self.table.iter().cloned()).collect()
    }
}
