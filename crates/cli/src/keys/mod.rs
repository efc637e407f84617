//! `lambda-idempotency keys`: shows which key each record of an event gets, without a claim or a call.

mod arguments;
mod json;
mod operations;
mod redelivery;
mod report;
mod scoped;
mod text;

use std::process::ExitCode;

use lambda_http::Context;
use lambda_idempotency::{
    Idempotency, MemoryStore, Operation,
    http::Http,
    inspect::{self, InspectError, Record, View},
};

pub(crate) use arguments::{Arguments, KeyOptions};

use crate::{
    failure::Failure,
    input::read,
    terminal::{document, print},
};
use operations::Operations;
use report::{File, Numbered, Report};
use scoped::HTTP;

/// Runs the command: 0 if every record has a key, 1 if not.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let report = Inspection::new(&arguments.keys)?.report(arguments)?;
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
pub(crate) fn records_of(options: &KeyOptions, event: &str) -> Result<Vec<Record>, Failure> {
    let records = Inspection::new(options)?.records(event)??;
    let is_unnamed = |record: &Record| scoped::of(&options.operation, record.source).is_none();
    if options.powertools.is_none() && records.iter().any(is_unnamed) {
        let failure = Failure::from("every key contains the operation's name, and none was given");
        return Err(failure.remedy("Name the operation with --operation."));
    }
    Ok(records)
}

/// Events on their way to a report.
struct Inspection<'a> {
    options: &'a KeyOptions,
    operations: Operations<'a>,
    context: Context,
}

impl<'a> Inspection<'a> {
    fn new(options: &'a KeyOptions) -> Result<Self, Failure> {
        let mut context = Context::default();
        context.request_id.clone_from(&options.request_id);
        context.tenant_id.clone_from(&options.tenant);
        Ok(Self { options, operations: Operations::new(options)?, context })
    }

    fn report(mut self, arguments: &Arguments) -> Result<Report, Failure> {
        let (mut files, mut changing, mut number) = (Vec::new(), Vec::new(), 0);
        let events = arguments.events.iter().map(|path| (path, false));
        let others = arguments.against.iter().map(|path| (path, true));
        for (path, is_other) in events.chain(others) {
            let event = read(path)?;
            let in_file = |error| Failure::from(format!("{}: {error}", path.display()));
            let found = self.records(&event)?.map_err(in_file)?;
            let records = found.into_iter().map(|record| {
                number += 1;
                Numbered { number, record }
            });
            let file = File { path: path.clone(), is_other, records: records.collect() };
            changing.extend(self.changing(&event, &file)?);
            files.push(file);
        }
        let mut warnings = self.operations.warnings()?;
        warnings.extend(whole(&files));
        warnings.extend(when_received_again(&changing));
        Ok(Report::new(files, warnings))
    }

    /// The records of an event, with their keys under the operation of its source. The inner error is
    /// the event's.
    fn records(&mut self, event: &str) -> Result<Result<Vec<Record>, InspectError>, Failure> {
        let source = match self.source(event) {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(Ok(Vec::new())),
            Err(error) => return Ok(Err(error)),
        };
        let (operation, settings) = self.operations.of(source)?;
        Ok(match source {
            HTTP => self.request(event, &operation).map(|request| request.into_iter().collect()),
            _ => inspect::invocation(event, &settings, Some(&operation), &self.context),
        })
    }

    /// Where an event is from; `None` if it has no records.
    fn source(&self, event: &str) -> Result<Option<&'static str>, InspectError> {
        let plain = Operation::new("plain");
        if let Some(request) = self.request(event, &plain)? {
            return Ok(Some(request.source));
        }
        let records = inspect::event(event, None)?;
        Ok(records.first().map(|record| record.source))
    }

    /// The HTTP request that an event holds, if it does.
    fn request(&self, event: &str, operation: &Operation) -> Result<Option<Record>, InspectError> {
        let idempotency = Idempotency::new(MemoryStore::new());
        let options = self.options;
        let shared = options.all_callers_are_one;
        // An operation that takes its key from the body ignores the header, and one whose keys are in the header has no
        // others for another path.
        let layer = if operation.producer().is_ok() {
            let http = Http::by_body();
            let http = if shared { http.all_callers_are_one() } else { http };
            let by_path = options.one_key_for_each_path;
            idempotency
                .http(operation, if by_path { http.one_key_for_each_path() } else { http })?
        } else {
            let http = Http::by_header().header(options.header.clone());
            idempotency.http(operation, if shared { http.all_callers_are_one() } else { http })?
        };
        // `lambda_http` panics at some events; the user gets an error message instead of the panic.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let found = layer.inspect(event, &self.context);
        std::panic::set_hook(hook);
        found
    }

    /// The records whose key changes when their queue delivers them again.
    fn changing(&mut self, event: &str, file: &File) -> Result<Vec<usize>, Failure> {
        let Some((before, after)) = redelivery::of_messages(event) else { return Ok(Vec::new()) };
        let (Ok(before), Ok(after)) = (self.records(&before)?, self.records(&after)?) else {
            return Ok(Vec::new());
        };
        let key = |record: &Record| record.key.as_ref().map(|key| key.key.clone());
        let pairs = file.records.iter().zip(before.iter().zip(&after));
        let changing = pairs.filter(|(_, (before, after))| key(before) != key(after));
        Ok(changing.map(|(record, _)| record.number).collect())
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

/// A warning about keys that change with each delivery.
fn when_received_again(records: &[usize]) -> Option<String> {
    let (first, more) = (records.first()?, records.len() - 1);
    let who = if more == 0 { format!("#{first}") } else { format!("#{first} and {more} more") };
    Some(format!(
        "the key of {who} changes with each delivery, since `receiptHandle` or \
         `attributes.ApproximateReceiveCount` is in it: the message would be processed each time"
    ))
}
