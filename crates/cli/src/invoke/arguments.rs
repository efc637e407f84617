//! The arguments of `invoke`, and what they name: events, and the function with its settings.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{ArgGroup, Args};
use lambda_idempotency_local::{
    Event, FunctionConfig, Local, LocalBuilder, Source, SqsConfig, Table, parse_event,
};
use serde_json::Value;

use crate::{
    arguments::{at_least, duration, table, time_to_work},
    event::{self, Stamp},
    failure::Failure,
    function::FunctionOptions,
    terminal,
};

/// Deliver events to a real function on this machine: no AWS account, no Docker
///
/// Builds the function, starts it with a Lambda Runtime API and an embedded DynamoDB, and delivers each event file as
/// AWS would: SQS records through a queue that redelivers what fails, streams and Kafka topics again from their
/// checkpoints, events of SNS, EventBridge, Scheduler, S3 and message brokers with retries, HTTP requests from a
/// client that tries again, any other event once. Then it shows the outcome of each delivery of each record, which it
/// reads from the function's log: a delivery that was `replayed` was answered from an earlier completion of its key, one
/// that was `coalesced` by a record of the same batch, and the key of a `busy` one was being processed.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
#[command(group(ArgGroup::new("delivered").args(["events", "sqs_body"]).required(true).multiple(true)))]
pub(crate) struct Arguments {
    /// Event files, in the shape that the function gets; `-` is standard input
    #[arg(value_name = "EVENT.json")]
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

    /// The function's timeout: its process is killed when it takes longer. A request of HTTP whose handler is slower gets a
    /// 504 and, while that claim stands, a 409
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

    /// Also write a page for a browser to this file: a timeline for each key, with its effects, and what became of records
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,

    /// Print one JSON document instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Show the function's output, with the library's line of each record, also of those of which AWS gets none: with
    /// `--env AWS_LAMBDA_LOG_LEVEL=INFO`, only what AWS gets. The output of a crashed process is always shown
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
  0  every record was done in the end; a request may also be declined by the handler
  1  something was dead-lettered, a caller got an error, or an HTTP request was refused
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

/// A local Lambda with the settings that the arguments ask for.
pub(crate) fn local(arguments: &Arguments, binary: &Path) -> LocalBuilder {
    let mut function = FunctionConfig::new(binary)
        .timeout(arguments.timeout)
        .env("ORDERS_TABLE", "orders")
        // The user has the events on this machine, so error messages may show parts of them.
        .env("IDEMPOTENCY_LOG_ERROR_MESSAGES", "1");
    function = match &arguments.store {
        Some(store) => function.env("IDEMPOTENCY_STORE", store),
        None => function.env("IDEMPOTENCY_TABLE", "idempotency"),
    };
    if arguments.report.is_some() {
        function = function.env("IDEMPOTENCY_REPORT_EFFECTS", "1");
    }
    for (name, value) in &arguments.function.env {
        function = function.env(name, value);
    }
    let sqs = SqsConfig {
        visibility: arguments.visibility,
        batch_size: arguments.batch_size,
        max_receive_count: arguments.max_receive_count,
    };
    let local = Local::builder(function)
        .sandboxes(arguments.concurrency)
        .sqs(sqs)
        .retry_delays(arguments.retry_delays.clone());
    arguments.tables().into_iter().fold(local, LocalBuilder::table)
}

/// Reads all events before anything is started, so that a wrong file name is reported at once.
pub(crate) fn events(arguments: &Arguments) -> Result<Vec<Event>, Failure> {
    let mut events = Vec::new();
    for path in &arguments.events {
        let name = match path.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => path.display().to_string(),
        };
        let event = parse_event(&name, &terminal::read(path)?)
            .map_err(|error| Failure::from(format!("{error}; {NO_EVENT}")))?;
        if is_unnamed(&event) {
            terminal::tell(format_args!("note: {name}: {UNNAMED}"));
        }
        events.push(event);
    }
    let bodies = arguments.sqs_body.iter().map(|path| terminal::read(path));
    let bodies = bodies.collect::<Result<Vec<_>, _>>()?;
    if !bodies.is_empty() {
        let event = event::event(event::Source::Sqs, &bodies, &mut Stamp::now(None))?;
        events.push(parse_event("event", &event.to_string())?);
    }
    Ok(events)
}

/// The remedy for a body that was given as an event.
pub(crate) const NO_EVENT: &str =
    "if it is the body of a message: `--sqs-body FILE`; to make an event of a body:
  `lambda-idempotency event SOURCE --body @FILE`";

/// Whether an event has an empty list of records, so that the function has nothing to log.
pub(crate) fn is_empty(event: &Event) -> bool {
    list(event).is_some_and(<[Value]>::is_empty)
}

const UNNAMED: &str = "no record in `Records` says which service it is from (`eventSource`; for SNS,
      `EventSource`), so the event is delivered once, as a direct invocation. Add it to the records, or make the
      event with `lambda-idempotency event sqs --body '...'`.";

/// Whether an event looks like a batch, but does not say from which service.
fn is_unnamed(event: &Event) -> bool {
    let names = |record: &Value| {
        ["eventSource", "EventSource"].iter().any(|name| record.get(name).is_some())
    };
    list(event).is_some_and(|records| !records.is_empty() && !records.iter().any(names))
}

/// The list `Records` of an event that was not recognised.
fn list(event: &Event) -> Option<&[Value]> {
    match event {
        Event::Whole(Source::Invoke, event) => Some(event.get("Records")?.as_array()?),
        _ => None,
    }
}
