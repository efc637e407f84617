//! `lambda-idempotency event`: makes an event of a payload, as Lambda hands it to a function.

mod arguments;
mod envelope;
mod stamp;

use std::path::Path;
use std::process::ExitCode;

pub(crate) use arguments::{Arguments, Source};
pub(crate) use envelope::event;
pub(crate) use stamp::Stamp;

use crate::failure::Failure;
use crate::input::read;
use crate::terminal::{document, print};

/// The payload of an event for which the user gave none.
const SAMPLE: &str = r#"{"orderId":"o-1001","customer":"c-17","sku":"tea-assam-250","quantity":2}"#;

/// Runs the command: prints the event.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut payloads =
        arguments.body.iter().map(|body| payload(body)).collect::<Result<Vec<_>, _>>()?;
    if payloads.is_empty() {
        payloads.push(SAMPLE.to_owned());
    }
    let event = event(arguments.source, &payloads, &mut Stamp::now(arguments.id.clone()))?;
    print(&document(&event))?;
    Ok(ExitCode::SUCCESS)
}

/// The payload itself, `@FILE`, or `-` for standard input.
fn payload(argument: &str) -> Result<String, Failure> {
    match argument.strip_prefix('@') {
        Some(path) => read(Path::new(path)),
        None if argument == "-" => read(Path::new(argument)),
        None => Ok(argument.to_owned()),
    }
}
