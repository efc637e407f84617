//! Recognising an event by its shape.

use serde_json::Value;

use super::Source;
use crate::InvalidEvent;

/// An event, and who would have sent it.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Messages for a queue.
    Sqs(Vec<Value>),
    /// A notification, an event of a bus or anything else: invoked as it is.
    Whole(Source, Value),
}

/// Reads an event. `name` is what an error calls it, such as the name of its file.
///
/// ```
/// # use lambda_idempotency_local::{Event, Source, parse_event};
/// let event = parse_event("event", r#"{"detail-type":"OrderPlaced","source":"shop","detail":{}}"#)?;
/// assert!(matches!(event, Event::Whole(Source::EventBridge, _)));
/// # Ok::<(), lambda_idempotency_local::InvalidEvent>(())
/// ```
pub fn parse_event(name: &str, text: &str) -> Result<Event, InvalidEvent> {
    let event: Value =
        serde_json::from_str(text).map_err(|error| InvalidEvent::new(name, &error))?;
    Ok(recognise(event))
}

fn recognise(mut event: Value) -> Event {
    let is = |field: &str, name: &str| {
        let records = event.get("Records").and_then(Value::as_array);
        records.is_some_and(|records| {
            records.iter().any(|record| record.get(field).is_some_and(|value| value == name))
        })
    };
    // SQS writes the field in camel case, SNS in Pascal case.
    if is("eventSource", "aws:sqs") {
        return match event.get_mut("Records").map(Value::take) {
            Some(Value::Array(records)) => Event::Sqs(records),
            _ => Event::Whole(Source::Direct, event),
        };
    }
    let source = if is("EventSource", "aws:sns") {
        Source::Sns
    } else if ["detail-type", "source", "detail"].iter().all(|field| event.get(field).is_some()) {
        Source::EventBridge
    } else {
        Source::Direct
    };
    Event::Whole(source, event)
}

/// The ids of the records in an event that is invoked whole; `None` for one that has none.
pub(crate) fn record_ids(source: Source, event: &Value) -> Vec<Option<String>> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    match source {
        Source::Sqs | Source::Direct => Vec::new(),
        Source::EventBridge => vec![text(event.get("id"))],
        Source::Sns => {
            let records = event
                .get("Records")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default();
            records.iter().map(|record| text(record.pointer("/Sns/MessageId"))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_recognised() {
        let source = |text: &str| match parse_event("event", text).unwrap() {
            Event::Sqs(_) => Source::Sqs,
            Event::Whole(source, _) => source,
        };
        assert_eq!(
            source(r#"{"Records":[{"eventSource":"aws:sqs","messageId":"m"}]}"#),
            Source::Sqs
        );
        assert_eq!(
            source(r#"{"Records":[{"EventSource":"aws:sns","Sns":{"MessageId":"m"}}]}"#),
            Source::Sns
        );
        assert_eq!(source(r#"{"detail-type":"t","source":"s","detail":{}}"#), Source::EventBridge);
        for other in [
            r#"{"Records":[]}"#,
            r#"{"Records":[{"eventSource":"aws:kinesis"}]}"#,
            "{}",
            "[1]",
            "null",
        ] {
            assert_eq!(source(other), Source::Direct, "{other}");
        }
    }

    #[test]
    fn a_malformed_record_stays_among_the_others() {
        let text = r#"{"Records":[{"body":"no id"},7,{"eventSource":"aws:sqs","messageId":"m"}]}"#;
        let Event::Sqs(records) = parse_event("event", text).unwrap() else {
            panic!("not recognised")
        };
        assert_eq!(records.len(), 3);
        assert_eq!(records[1], 7);
    }

    #[test]
    fn an_error_names_the_place() {
        let error = parse_event("events/x.json", "{\n  \"a\": ,\n}").unwrap_err();
        assert_eq!(error.to_string(), "events/x.json:2:8: not valid JSON: expected value");
    }
}
