//! `lambda-idempotency chaos`: runs a function under faults, and audits what it did.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use lambda_idempotency_chaos as chaos;
use lambda_idempotency_chaos::{FaultKind, Offence, Report, Settings, Template};
use lambda_idempotency_local::{Build, Table};

use crate::{
    arguments::{at_least, table, time_to_work},
    audit::{Progress, Summary, counts},
    failure::Failure,
    function::FunctionOptions,
    terminal::{self, document, print},
};

/// Runs the command: 0 if there is no violation, 1 if there is one.
pub(crate) async fn run(mut arguments: Arguments) -> Result<ExitCode, Failure> {
    let mut settings = arguments.settings()?;
    settings.check()?;
    arguments.function.release |= !cfg!(debug_assertions);
    let scripted = Build {
        package: Some("lambda-idempotency-tests".to_owned()),
        bin: Some("scripted_orders".to_owned()),
        ..Build::default()
    };
    let scripted = (!arguments.is_users_function()).then_some((scripted, CLONE));
    settings.binary = arguments.function.binary(scripted).await?;
    let done = Progress::new(settings.deliveries as u64, "messages");
    let ran = chaos::run(&settings, |ended| done.set(ended as u64));
    let report = done.during(ran, arguments.json).await?;
    print(&if arguments.json {
        document(&serde_json::to_value(&report)?)
    } else {
        format!("{}\n", summary(&report))
    })?;
    let is_right = report.findings.violations.is_empty();
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The remedy if the scripted orders function is not here.
const CLONE: &str = "Run this in a clone of the repository, which has the scripted orders function, or run your own function with
  `--sqs-body FILE --vary MEMBER` or `--event EVENT.json --vary MEMBER`.";

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
    /// The source is SQS (standard or FIFO), SNS, EventBridge, Kinesis or a DynamoDB stream; `lambda-idempotency event` makes one.
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

    /// Report the remaining messages as stuck if none is acknowledged or dead-lettered for this long
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
            (Some(path), _) => Template::new(&terminal::read(path)?, vary),
            (None, Some(path)) => Template::of_event(&terminal::read(path)?, vary),
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

/// Everything that the report shows.
pub(crate) fn summary(report: &Report) -> Summary<'_> {
    let faults: Vec<_> = report.faults.iter().map(|kind| kind.as_str()).collect();
    let findings = &report.findings;
    let violations: u64 = findings.violations.iter().map(|violation| violation.times).sum();
    Summary {
        subtitle: format!(
            "seed {}, schedule {}, {} processes, source {}, {:.1} s, faults: {}",
            report.seed,
            report.schedule,
            report.processes,
            report.source,
            report.seconds,
            faults.join(", ")
        ),
        numbers: vec![
            (report.messages as u64, "messages"),
            (report.probes as u64, "sent once more, for keys held at the end"),
            (report.keys as u64, "pieces of work"),
            (report.deliveries, "deliveries"),
            (report.returned, "returned to the source"),
            (report.acknowledged as u64, "messages acknowledged"),
            (report.dead_lettered as u64, "messages dead-lettered, as scripted"),
            (report.invocations as u64, "invocations"),
            (report.requests, "store requests"),
            (report.injected.values().sum(), "faults injected"),
            (report.executions as u64, "handlers started"),
            (findings.effects, "effects"),
            (findings.doubled.values().sum(), "effects again, with a cause"),
            (findings.stale, "of these, a fence would refuse"),
            (findings.count(Offence::Lost), "lost"),
            (findings.count(Offence::Stuck), "stuck"),
            (findings.count(Offence::Doubled), "doubled without a cause"),
            (violations, "violations, all kinds"),
        ],
        findings,
        lists: vec![
            counts("Faults injected", &["fault", "times"], &report.injected),
            counts("Deliveries by outcome", &["outcome", "deliveries"], &report.outcomes),
            counts("Effects that happened again", &["observed cause", "times"], &findings.doubled),
        ],
        verdict: verdict(report, violations),
    }
}

fn verdict(report: &Report, violations: u64) -> String {
    if report.given_up {
        return "UNFINISHED: no message was acknowledged or dead-lettered for a long time, so the run was given up. A machine that has no \
                processor time for the function does that: use a longer timeout, or more patience."
            .to_owned();
    }
    match violations {
        0 => "No message was lost or stuck, and every effect that happened again has a cause that was observed.".to_owned(),
        count => format!("{count} violation(s) of what the library promises: see above."),
    }
}
