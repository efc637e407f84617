//! `lambda-idempotency invoke`: deliver events to a real function, on this machine.

mod arguments;
mod json;
mod output;
mod progress;
mod table;
mod totals;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use lambda_idempotency_local::{
    AsyncConfig, Build, DeliveryReport, Event, FunctionConfig, Local, SqsConfig, parse_event,
};

pub(crate) use arguments::Arguments;

use crate::failure::Failure;
use output::Output;
use progress::Progress;
use totals::Rows;

/// Runs the command: 0 if every record was delivered in the end, 1 if not.
pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let events = read(&arguments.events).await?;
    let binary = binary(&arguments).await?;
    let progress = Arc::new(Progress::new(records(&events) * u64::from(arguments.repeat)));
    let output = Arc::new(Output::new(arguments.verbose, Arc::clone(&progress)));
    let local = start(&arguments, &binary, &progress, &output).await?;
    if let Err(error) = local.warm().await {
        output.last_words();
        return Err(Failure::from(error).remedy(
            "The function's output is above. Does it need a variable (`--env NAME=VALUE`) or a table (`--table NAME:KEY`)?",
        ));
    }
    let deliveries = async {
        let mut report = DeliveryReport::default();
        for _ in 0..arguments.repeat {
            for event in &events {
                report.extend(local.deliver_event(event.clone()).await?);
            }
        }
        Ok::<_, lambda_idempotency_local::Error>(report)
    };
    let report = progress.during(deliveries, arguments.quiet || arguments.json).await?;

    let mut tables = Vec::new();
    for table in arguments.tables() {
        let items = local.dynamodb().items(table.name())?;
        tables.push(Rows { table, items });
    }
    local.shutdown().await;

    if arguments.json {
        print(&format!("{:#}", json::document(&report, &tables)));
    } else {
        if !arguments.quiet {
            print(&format!("{}\n\n{}\n", table::records(&report), table::invocations(&report)));
            let problems = table::problems(&report);
            if !problems.is_empty() {
                print(&problems);
            }
        }
        print(&table::summary(&report, &tables));
        if table::is_silent(&report) {
            print(SILENT);
        }
    }
    Ok(if report.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shown if the function logged nothing of its records.
const SILENT: &str = "
note: the function logged no line about any record, so this report cannot say which records ran. It needs a
      subscriber: add `lambda_runtime::tracing::init_default_subscriber();` at the beginning of `main`.
      A function with its own observer does not log these lines, nor are there lines for events without an operation.";

/// Prints to stdout. An error is ignored, because the reader may have closed the pipe (`| head`).
fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Reads all events before anything is started, so that a wrong file name is reported at once.
async fn read(paths: &[PathBuf]) -> Result<Vec<Event>, Failure> {
    let mut events = Vec::new();
    for path in paths {
        let text = tokio::fs::read_to_string(path)
            .await
            .map_err(|error| Failure::from(format!("cannot read {}: {error}", path.display())))
            .map_err(|failure| {
                failure.remedy("The directory `events` has samples of each source.")
            })?;
        events.push(parse_event(&path.display().to_string(), &text)?);
    }
    Ok(events)
}

fn records(events: &[Event]) -> u64 {
    events.iter().map(|event| event.records() as u64).sum()
}

/// The path of the function's binary: the one given, or the package's after building it.
async fn binary(arguments: &Arguments) -> Result<PathBuf, Failure> {
    if let Some(binary) = &arguments.binary {
        return Ok(binary.clone());
    }
    let package = &arguments.package;
    let build = match (&arguments.bin, &arguments.example) {
        (Some(bin), _) => Build::binary(package, bin),
        (None, Some(example)) => Build::example(package, example),
        (None, None) => Build::package(package),
    };
    let build = build.release(arguments.release).quiet(arguments.quiet);
    build.run().await.map_err(|error| {
        Failure::from(error).remedy(
            "Run this in the cargo workspace of the function and name its package with `--package NAME`\n  \
             (and one of several binaries with `--bin NAME`), or give a built binary with `--binary PATH`.",
        )
    })
}

async fn start(
    arguments: &Arguments,
    binary: &Path,
    progress: &Arc<Progress>,
    output: &Arc<Output>,
) -> Result<Local, Failure> {
    let mut function = FunctionConfig::new(binary)
        .timeout(arguments.timeout)
        .env("IDEMPOTENCY_TABLE", "idempotency")
        .env("ORDERS_TABLE", "orders")
        // The user has the events on this machine, so error messages may show parts of them.
        .env("IDEMPOTENCY_LOG_ERROR_MESSAGES", "1");
    for (name, value) in &arguments.env {
        function = function.env(name, value);
    }
    let sqs = SqsConfig {
        visibility: arguments.visibility,
        batch_size: arguments.batch_size,
        max_receive_count: arguments.max_receive_count,
        ..SqsConfig::default()
    };
    let (lines, progress, ends) = (Arc::clone(output), Arc::clone(progress), Arc::clone(output));
    let mut builder = Local::builder(function)
        .sandboxes(arguments.concurrency)
        .sqs(sqs)
        .asynchronous(AsyncConfig { retry_delays: arguments.retry_delays.clone() })
        .on_output(move |line| lines.take(line))
        .on_invocation(move |invocation| {
            ends.ended(&invocation.invocation);
            progress.advance(invocation);
        });
    for table in arguments.tables() {
        builder = builder.table(table);
    }
    Ok(builder.start().await?)
}
