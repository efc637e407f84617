//! The sources, and which of them an event comes from, by its shape.

use serde_json::Value;

use crate::error::Error;

/// Where a record comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A queue: redelivers what was not acknowledged.
    Sqs,
    /// A topic: an asynchronous invocation.
    Sns,
    /// An event bus: an asynchronous invocation.
    EventBridge,
    /// A schedule: an asynchronous invocation.
    Scheduler,
    /// A bucket's notifications: an asynchronous invocation.
    S3,
    /// A stream: delivered again from the checkpoint on.
    Kinesis,
    /// The stream of a table's changes: delivered again from the checkpoint on.
    DynamoDb,
    /// The stream of a cluster's changes: the whole batch is delivered again.
    DocumentDb,
    /// A topic's partitions: each is delivered again from its checkpoint on.
    Kafka,
    /// A broker: the whole batch comes again.
    ActiveMq,
    /// A broker: the whole batch comes again.
    RabbitMq,
    /// A pipe: if its source is a queue or a stream, it delivers the named records again, else the whole batch.
    Pipe,
    /// A client that waits for the answer, and sends its request again.
    Http,
    /// A direct, synchronous invocation: it is not retried.
    Invoke,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Sqs => "sqs",
            Self::Sns => "sns",
            Self::EventBridge => "eventbridge",
            Self::Scheduler => "scheduler",
            Self::S3 => "s3",
            Self::Kinesis => "kinesis",
            Self::DynamoDb => "dynamodb",
            Self::DocumentDb => "documentdb",
            Self::Kafka => "kafka",
            Self::ActiveMq => "activemq",
            Self::RabbitMq => "rabbitmq",
            Self::Pipe => "pipe",
            Self::Http => "http",
            Self::Invoke => "invoke",
        })
    }
}

/// An event, with the source that sends events of its shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Messages of a queue, or records of a stream's shards: [`Source::Sqs`], [`Source::Kinesis`] or
    /// [`Source::DynamoDb`].
    Polled(Source, Vec<Value>),
    /// The same, for a pipe.
    Pipe(Source, Vec<Value>),
    /// A topic's partitions, a notification, an event of a bus, a request or anything else.
    Whole(Source, Value),
}

impl Event {
    /// How many records it has; one if its shape has no records.
    pub fn records(&self) -> usize {
        match self {
            Self::Polled(_, records) | Self::Pipe(_, records) => records.len(),
            Self::Whole(source, event) => record_ids(*source, event).len().max(1),
        }
    }
}

/// Reads an event. `name` names it in errors, for example the name of its file.
///
/// ```
/// # use lambda_idempotency_local::{Event, Source, parse_event};
/// let event = parse_event("event", r#"{"detail-type":"OrderPlaced","source":"shop","detail":{}}"#)?;
/// assert!(matches!(event, Event::Whole(Source::EventBridge, _)));
/// # Ok::<(), lambda_idempotency_local::Error>(())
/// ```
///
/// # Errors
/// [`Error::Failed`]: it is not JSON; the error names the position.
pub fn parse_event(name: &str, text: &str) -> Result<Event, Error> {
    let event = serde_json::from_str(text).map_err(|error| {
        if text.trim().is_empty() {
            return Error::failed(format!("{name} is empty"));
        }
        let (line, column) = (error.line(), error.column());
        let reason = error.to_string().replace(&format!(" at line {line} column {column}"), "");
        Error::failed(format!("{name}:{line}:{column}: not valid JSON: {reason}"))
    })?;
    Ok(recognise(event))
}

fn recognise(mut event: Value) -> Event {
    if let Value::Array(items) = event {
        return recognise_list(items);
    }
    // SQS and its like write the field in camel case, SNS in Pascal case.
    let named = ["eventSource", "EventSource"].iter().find_map(|field| {
        let records = event.get("Records").and_then(Value::as_array)?;
        records.iter().find_map(|record| record.get(field)?.as_str()).map(str::to_owned)
    });
    let mut records = || match event.get_mut("Records").map(Value::take) {
        Some(Value::Array(records)) => records,
        _ => Vec::new(),
    };
    match named.as_deref() {
        Some("aws:sqs") => return Event::Polled(Source::Sqs, records()),
        Some("aws:kinesis") => return Event::Polled(Source::Kinesis, records()),
        Some("aws:dynamodb") => return Event::Polled(Source::DynamoDb, records()),
        Some("aws:sns") => return Event::Whole(Source::Sns, event),
        Some("aws:s3") => return Event::Whole(Source::S3, event),
        _ => {}
    }
    let outside = event.get("eventSource").and_then(Value::as_str).map(str::to_owned);
    let source = match outside.as_deref() {
        Some("aws:kafka" | "SelfManagedKafka" | "aws:SelfManagedKafka") => Source::Kafka,
        Some("aws:amq" | "aws:mq") => Source::ActiveMq,
        Some("aws:rmq") => Source::RabbitMq,
        Some("aws:docdb") => Source::DocumentDb,
        _ if is_http(&event) => Source::Http,
        _ if is_of_a_bus(&event) => Source::EventBridge,
        _ if has(&event, &["scheduleArn", "scheduledTime"]) => Source::Scheduler,
        _ => Source::Invoke,
    };
    Event::Whole(source, event)
}

/// Bare lists come from a pipe or from a custom event bus.
fn recognise_list(items: Vec<Value>) -> Event {
    let named = items.iter().find_map(|item| item.get("eventSource")?.as_str());
    let source = match named {
        Some("aws:sqs") => return Event::Pipe(Source::Sqs, items),
        Some("aws:kinesis") => return Event::Pipe(Source::Kinesis, items),
        Some("aws:dynamodb") => return Event::Pipe(Source::DynamoDb, items),
        Some(_) => Source::Pipe,
        None if items.iter().any(is_of_a_bus) => Source::EventBridge,
        None => Source::Invoke,
    };
    Event::Whole(source, Value::Array(items))
}

fn is_of_a_bus(event: &Value) -> bool {
    has(event, &["detail-type", "source", "detail"])
}

fn has(event: &Value, fields: &[&str]) -> bool {
    fields.iter().all(|field| event.get(field).is_some())
}

/// API Gateway's two versions, function URLs and load balancers.
fn is_http(event: &Value) -> bool {
    let context = event.get("requestContext");
    context
        .is_some_and(|context| has(event, &["httpMethod", "path"]) || context.get("http").is_some())
}

/// The ids of the records in an event that is invoked whole; `None` for one that has none.
pub(crate) fn record_ids(source: Source, event: &Value) -> Vec<Option<String>> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let lists = |member: &str| {
        let lists = event.get(member).and_then(Value::as_object);
        let lists = lists.into_iter().flat_map(|lists| lists.values());
        lists.flat_map(|one| list(Some(one))).collect()
    };
    let one_or_list = || event.as_array().cloned().unwrap_or_else(|| vec![event.clone()]);
    let (records, ids): (_, &[&str]) = match source {
        Source::EventBridge => (one_or_list(), &["/id"]),
        Source::Scheduler => (one_or_list(), &["/scheduledTime"]),
        Source::Sns => (list(event.get("Records")), &["/Sns/MessageId"]),
        // Objects and Kafka's records have no id: the lines that the function logs name them, in order.
        Source::S3 => (list(event.get("Records")), &[]),
        Source::Pipe => (list(Some(event)), &["/messageID", "/basicProperties/messageId"]),
        Source::ActiveMq => (list(event.get("messages")), &["/messageID"]),
        Source::DocumentDb => (list(event.get("events")), &["/event/_id/_data"]),
        Source::RabbitMq => (lists("rmqMessagesByQueue"), &["/basicProperties/messageId"]),
        Source::Kafka => (lists("records"), &[]),
        // The function's line names it.
        Source::Http => return vec![None],
        _ => return Vec::new(),
    };
    let id =
        |record: &Value| ids.iter().find_map(|at| record.pointer(at)?.as_str().map(str::to_owned));
    records.iter().map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_recognised_by_their_shape() {
        let source = |text: &str| match parse_event("event", text).unwrap() {
            Event::Pipe(..) => Source::Pipe,
            Event::Polled(source, _) | Event::Whole(source, _) => source,
        };
        for (text, expected) in [
            (r#"{"Records":[{"eventSource":"aws:sqs","messageId":"m"}]}"#, Source::Sqs),
            (r#"{"Records":[{"EventSource":"aws:sns","Sns":{"MessageId":"m"}}]}"#, Source::Sns),
            (r#"{"detail-type":"t","source":"s","detail":{}}"#, Source::EventBridge),
            (r#"[{"detail-type":"t","source":"s","detail":{}}]"#, Source::EventBridge),
            (r#"{"Records":[{"eventSource":"aws:kinesis"}]}"#, Source::Kinesis),
            (r#"{"Records":[{"eventSource":"aws:dynamodb"}]}"#, Source::DynamoDb),
            (r#"{"Records":[{"eventSource":"aws:s3","s3":{}}]}"#, Source::S3),
            (r#"{"eventSource":"aws:kafka","records":{}}"#, Source::Kafka),
            (r#"{"eventSource":"aws:rmq","rmqMessagesByQueue":{}}"#, Source::RabbitMq),
            (r#"{"eventSource":"aws:docdb","events":[]}"#, Source::DocumentDb),
            (r#"{"httpMethod":"POST","path":"/","requestContext":{"elb":{}}}"#, Source::Http),
            (r#"{"version":"2.0","requestContext":{"http":{"method":"POST"}}}"#, Source::Http),
            (r#"{"scheduleArn":"a","scheduledTime":"t"}"#, Source::Scheduler),
            (r#"{"Records":[]}"#, Source::Invoke),
            (r#"{"Records":[{"eventSource":"aws:other"}]}"#, Source::Invoke),
            ("{}", Source::Invoke),
            ("[1]", Source::Invoke),
            ("null", Source::Invoke),
        ] {
            assert_eq!(source(text), expected, "{text}");
        }
        for piped in ["sqs", "kinesis", "dynamodb", "kafka", "amq", "rmq"] {
            assert_eq!(source(&format!(r#"[7,{{"eventSource":"aws:{piped}"}}]"#)), Source::Pipe);
        }
    }

    #[test]
    fn a_malformed_record_is_kept_among_the_others() {
        let text = r#"{"Records":[{"body":"no id"},7,{"eventSource":"aws:sqs","messageId":"m"}]}"#;
        let Event::Polled(_, records) = parse_event("event", text).unwrap() else {
            panic!("not recognised")
        };
        assert_eq!(records.len(), 3);
        assert_eq!(records[1], 7);
    }

    #[test]
    fn a_json_error_names_its_position() {
        let error = parse_event("events/x.json", "{\n  \"a\": ,\n}").unwrap_err();
        assert_eq!(error.to_string(), "events/x.json:2:8: not valid JSON: expected value");
    }
}
