//! `lambda-idempotency invoke`: deliver events to a real function, on this machine.

mod arguments;
mod json;
mod output;
mod report;

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

pub(crate) use arguments::Arguments;
use lambda_idempotency_local::{DeliveryReport, EffectLine, Error, Event, Local, OutputLine};
use output::Output;
use report::{Rows, has_refused, is_silent, problem_lines, summary};

use crate::{
    failure::Failure,
    report::{StoryEffect, table},
    runtime::{INTERRUPTED, interrupted},
    terminal::{document, print, printable, tell},
};

/// Runs the command: 0 if every record was delivered in the end, 1 if not.
pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    // Nothing was seen yet: a signal just ends the command, and with it what it started.
    let ready = tokio::select! {
        biased;
        () = interrupted() => return Ok(ExitCode::from(INTERRUPTED)),
        ready = prepare(&arguments) => ready?,
    };
    let mut report = DeliveryReport::default();
    let delivery = deliver(&ready, arguments.repeat, &mut report);
    let is_whole = tokio::select! {
        done = delivery => done.map(|()| true)?,
        () = interrupted() => false,
    };
    let tables = tables(&arguments, &ready.local)?;
    ready.local.shutdown().await;
    if arguments.json {
        print(&document(&json::document(&report, &tables, is_whole)))?;
    } else {
        show(&report, &tables)?;
        // An empty batch has no records of which the function could log something.
        if is_whole && is_silent(&report) && !ready.events.iter().all(arguments::is_empty) {
            print(if ready.output.has_text_lines() { TEXT } else { SILENT })?;
        }
    }
    // Afterwards: what was seen is told, also where the page cannot be written.
    if let Some(path) = &arguments.report {
        let effects = std::mem::take(&mut *lock(&ready.effects));
        let story = report::story(&report, effects);
        crate::report::write(&report::run(&arguments, &report, &story, is_whole), path).await?;
    }
    if !is_whole {
        tell("\nInterrupted: this is what happened until then. Nothing else was delivered.");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let is_well = report.is_complete() && !has_refused(&report);
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A function that waits for its first event, and the events.
struct Ready {
    events: Vec<Event>,
    effects: Arc<Mutex<Vec<StoryEffect>>>,
    output: Arc<Output>,
    local: Local,
}

async fn prepare(arguments: &Arguments) -> Result<Ready, Failure> {
    crate::report::check(arguments.report.as_deref())?;
    let events = arguments::events(arguments)?;
    let binary = arguments.function.binary(None).await?;
    let level = arguments.function.env.iter().rfind(|(name, _)| name == "AWS_LAMBDA_LOG_LEVEL");
    let level = level.map(|(_, level)| level.clone());
    let output = Arc::new(Output::new(arguments.verbose, level));
    let effects = Arc::<Mutex<Vec<StoryEffect>>>::default();
    let (lines, ends) = (Arc::clone(&output), Arc::clone(&output));
    let seen = Arc::clone(&effects);
    let local = arguments::local(arguments, &binary)
        .on_output(move |line| match effect(&line) {
            Some(effect) => lock(&seen).push(effect),
            None => lines.take(line),
        })
        .on_invocation(move |invocation| ends.ended(&invocation.invocation))
        .start()
        .await?;
    if let Err(error) = local.warm().await {
        let is_mistaken = |line: &String| line.starts_with("Error: operation `");
        let may_lack = match &error {
            Error::NotReady { output, .. } => !output.iter().any(is_mistaken),
            _ => false,
        };
        let failure = Failure::from(error);
        return Err(if may_lack { failure.remedy(NOT_READY) } else { failure });
    }
    Ok(Ready { events, effects, output, local })
}

async fn deliver(ready: &Ready, repeat: u32, report: &mut DeliveryReport) -> Result<(), Error> {
    for _ in 0..repeat {
        for event in &ready.events {
            ready.local.deliver_event(event.clone(), report).await?;
        }
    }
    Ok(())
}

fn effect(line: &OutputLine) -> Option<StoryEffect> {
    let EffectLine { name, record: message, key_hash, .. } = EffectLine::parse(&line.text)?;
    Some(StoryEffect { at: Instant::now(), pid: line.pid, message, key_hash, name })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tables at the end. The table of orders, which this command makes without being asked, is for the example
/// function: another function leaves it empty, and its line would only puzzle.
fn tables(arguments: &Arguments, local: &Local) -> Result<Vec<Rows>, Failure> {
    let mut tables = Vec::new();
    for table in arguments.tables() {
        let items = local.dynamodb().items(table.name())?;
        let is_asked_for = arguments.names(&table) || table.name() == "idempotency";
        if is_asked_for || !items.is_empty() {
            tables.push(Rows { table, items });
        }
    }
    Ok(tables)
}

fn show(report: &DeliveryReport, tables: &[Rows]) -> Result<(), Failure> {
    for list in [report::deliveries(report), report::invocations(report)] {
        print(&format!("{}\n", table(&list)))?;
    }
    let problems = problem_lines(report).concat();
    if !problems.is_empty() {
        print(&printable(&problems))?;
    }
    print(&printable(&summary(report, tables)))?;
    Ok(())
}

const NOT_READY: &str =
    "Does its `main` serve a function? Does it need `--env NAME=VALUE`, or `--table NAME:KEY`?";

/// Shown if the function logged its records as text.
const TEXT: &str = "
note: the function logs text, which this report cannot read, so it does not say which records ran. Leave
      `AWS_LAMBDA_LOG_FORMAT=Text` out.";

/// Shown if the function logged nothing of its records.
const SILENT: &str = "
note: the function logged no line about any record, so this report cannot say which records ran. It needs a
      subscriber: add `lambda_runtime::tracing::init_default_subscriber();` at the beginning of `main`. A `RUST_LOG` of
      yours has to include `lambda_idempotency::record=debug`.
      A function with its own observer does not log these lines, nor are there lines for events without an operation.";
