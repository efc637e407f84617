//! The events to deliver: files, and payloads for which this command makes the envelope.

use lambda_idempotency_local::{Event, Source, parse_event};
use serde_json::Value;

use super::Arguments;
use crate::event::{self, Stamp};
use crate::failure::Failure;
use crate::input;

/// Reads all events before anything is started, so that a wrong file name is reported at once.
pub(crate) fn read(arguments: &Arguments) -> Result<Vec<Event>, Failure> {
    let mut events = Vec::new();
    for path in &arguments.events {
        let name = match path.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => path.display().to_string(),
        };
        let event = parse_event(&name, &input::read(path)?)?;
        if is_unnamed(&event) {
            eprintln!("note: {name}: {UNNAMED}");
        }
        events.push(event);
    }
    let bodies = arguments.sqs_body.iter().map(|path| input::read(path));
    let bodies = bodies.collect::<Result<Vec<_>, _>>()?;
    if !bodies.is_empty() {
        let event = event::event(event::Source::Sqs, &bodies, &mut Stamp::now(None))?;
        events.push(parse_event("event", &event.to_string())?);
    }
    Ok(events)
}

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
        Event::Whole(Source::Direct, event) => Some(event.get("Records")?.as_array()?),
        _ => None,
    }
}
