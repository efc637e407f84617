//! `lambda-idempotency keys`: shows which key each record of an event gets, without a claim or a call.

mod arguments;
mod json;
mod report;
mod text;

use std::process::ExitCode;

use arguments::UNNAMED;
pub(crate) use arguments::{Arguments, KeyOptions, Stored};
use lambda_http::Context;
use lambda_idempotency::{
    Idempotency, MemoryStore, Operation,
    http::{Http, HttpLayer},
    keys::inspect::{self, AnySource, InspectError, Record, View},
};
use report::{File, Numbered, Report};

use crate::{
    failure::Failure,
    terminal::{document, print, read},
};

/// Runs the command: 0 if every record has a key, 1 if not.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let report = Inspection::new(&arguments.keys, &Stored::default())?.report(arguments)?;
    let shown = if arguments.json {
        document(&json::document(&report))
    } else {
        text::page(&report, arguments)
    };
    print(&shown)?;
    let is_complete = report.totals().without_key == 0;
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The records of an event with their keys, for the commands that look them up. Without the name of the operation the keys
/// would be those of other work.
#[cfg(feature = "records")]
pub(crate) fn records_of(
    options: &KeyOptions,
    stored: &Stored,
    event: &str,
) -> Result<Vec<Record>, Failure> {
    if options.operation.is_none() && stored.powertools.is_none() {
        let failure = Failure::from("every key contains the operation's name, and none was given");
        return Err(failure.remedy("Name the operation with --operation."));
    }
    Ok(Inspection::new(options, stored)?.records(event)?)
}

/// Events on their way to a report.
struct Inspection {
    operation: Operation,
    source: AnySource,
    context: Context,
}

impl Inspection {
    fn new(options: &KeyOptions, stored: &Stored) -> Result<Self, Failure> {
        let (operation, source) = arguments::operation(options, stored)?;
        Ok(Self { operation, source, context: Context::default() })
    }

    fn report(self, arguments: &Arguments) -> Result<Report, Failure> {
        let (mut files, mut number) = (Vec::new(), 0);
        let events = arguments.events.iter().map(|path| (path, false));
        let others = arguments.against.iter().map(|path| (path, true));
        for (path, is_other) in events.chain(others) {
            let event = read(path)?;
            let in_file = |error| Failure::from(format!("{}: {error}", path.display()));
            let found = self.records(&event).map_err(in_file)?;
            let records = found.into_iter().map(|record| {
                number += 1;
                Numbered { number, record }
            });
            files.push(File { path: path.clone(), is_other, records: records.collect() });
        }
        let warnings = whole(&files).into_iter().collect();
        Ok(Report::new(files, warnings))
    }

    /// The records of an event, with their keys.
    fn records(&self, event: &str) -> Result<Vec<Record>, InspectError> {
        if let Some(request) = self.request(event)? {
            return Ok(vec![request]);
        }
        inspect::invocation(event, &self.source, Some(&self.operation), &self.context)
    }

    /// The HTTP request that an event holds, if it does.
    fn request(&self, event: &str) -> Result<Option<Record>, InspectError> {
        // An operation has one layer.
        let idempotency = || Idempotency::new(MemoryStore::new());
        let is_request = idempotency().http(&Operation::new(UNNAMED), Http::by_header())?;
        let is_request = self.inspected(&is_request, event)?.is_some();
        if !is_request {
            return Ok(None);
        }
        // An operation that takes its key from the body ignores the header.
        let layer = if self.operation.producer().is_ok() {
            idempotency().http(&self.operation, Http::by_body())?
        } else {
            idempotency().http(&self.operation, Http::by_header())?
        };
        self.inspected(&layer, event)
    }

    fn inspected(&self, layer: &HttpLayer, event: &str) -> Result<Option<Record>, InspectError> {
        // `lambda_http` panics at some events; the user gets an error message instead of the panic.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let found = layer.inspect(event, &self.context);
        std::panic::set_hook(hook);
        found
    }
}

/// A warning about keys that are the whole payload or record.
fn whole(files: &[File]) -> Option<String> {
    let records = files.iter().flat_map(|file| &file.records);
    let mut paths = records.filter_map(|record| record.record.key.as_ref()?.path.as_ref());
    let path = paths.find(|path| path.expression.trim() == "@")?;
    let what = match path.view {
        View::Payload => "payload",
        View::Record => "record",
    };
    Some(format!(
        "key expression: `@` is the whole {what}: whatever differs in it, such as the time at which \
         it was sent, makes it other work"
    ))
}
