//! The events to deliver: files, and payloads for which this command makes the envelope.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use lambda_idempotency_local::{Event, Source, parse_event};
use serde_json::Value;

use super::Arguments;
use crate::event::{self, Stamp};
use crate::failure::Failure;

/// Reads all events before anything is started, so that a wrong file name is reported at once.
pub(crate) async fn read(arguments: &Arguments) -> Result<Vec<Event>, Failure> {
    check(arguments)?;
    let mut events = Vec::new();
    for path in &arguments.events {
        let text = text(path).await?;
        let name = match is_standard_input(path) {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let event = parse_event(&name, &text)?;
        if is_unnamed(&event) {
            eprintln!("note: {name}: {UNNAMED}");
        }
        events.push(event);
    }
    for (source, paths) in
        [(event::Source::Sqs, &arguments.sqs_body), (event::Source::Sns, &arguments.sns_message)]
    {
        events.extend(envelope(source, paths).await?);
    }
    Ok(events)
}

/// How many records the events have.
pub(crate) fn records(events: &[Event]) -> u64 {
    events.iter().map(|event| event.records() as u64).sum()
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

async fn envelope(source: event::Source, paths: &[PathBuf]) -> Result<Option<Event>, Failure> {
    if paths.is_empty() {
        return Ok(None);
    }
    let mut payloads = Vec::new();
    for path in paths {
        payloads.push(text(path).await?);
    }
    let event = event::event(source, &payloads, &mut Stamp::now(None))?;
    Ok(Some(parse_event("event", &event.to_string())?))
}

/// `-`, as for the other commands.
fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// It can be read once only.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let paths = [&arguments.events, &arguments.sqs_body, &arguments.sns_message];
    let times = paths.into_iter().flatten().filter(|path| is_standard_input(path)).count();
    if times > 1 {
        return Err(Failure::from(
            "standard input (`-`) is given more than once, and can be read once",
        ));
    }
    Ok(())
}

async fn text(path: &Path) -> Result<String, Failure> {
    let (name, read) = if is_standard_input(path) {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        ("standard input".to_owned(), read.map(|_| text))
    } else {
        (path.display().to_string(), tokio::fs::read_to_string(path).await)
    };
    read.map_err(|error| {
        Failure::from(format!("cannot read {name}: {error}"))
            .remedy("`lambda-idempotency event sqs --body '...' > event.json` makes an event.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_does_not_name_its_source_is_noticed() {
        for (text, unnamed) in [
            (r#"{"Records":[{"messageId":"m","body":"{}"}]}"#, true),
            (r#"{"Records":[{"eventSource":"aws:sqs","body":"{}"}]}"#, false),
            (r#"{"Records":[{"eventSource":"aws:ses"}]}"#, false),
            (r#"{"Records":[]}"#, false),
            ("{}", false),
        ] {
            assert_eq!(is_unnamed(&parse_event("event", text).unwrap()), unnamed, "{text}");
        }
    }

    #[test]
    fn only_a_batch_without_records_is_empty() {
        for (text, empty) in
            [(r#"{"Records":[]}"#, true), (r#"{"Records":[7]}"#, false), ("{}", false)]
        {
            assert_eq!(is_empty(&parse_event("event", text).unwrap()), empty, "{text}");
        }
    }
}
