//! `lambda-idempotency event`: makes an event of a payload, as Lambda hands it to a function.

use std::{
    path::Path,
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use clap::{Args, ValueEnum};
use md5::{Digest as _, Md5};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    failure::Failure,
    terminal::{document, print, read},
};

/// The payload of an event for which the user gave none.
const SAMPLE: &str = r#"{"orderId":"o-1001","customer":"c-17","sku":"tea-assam-250","quantity":2}"#;

/// Runs the command: prints the event.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut payloads =
        arguments.body.iter().map(|body| payload(body)).collect::<Result<Vec<_>, _>>()?;
    if payloads.is_empty() {
        payloads.push(SAMPLE.to_owned());
    }
    let mut event = event(arguments.source, &payloads, &mut Stamp::now(arguments.id.clone()))?;
    if let Some(path) = &arguments.path {
        if arguments.source != Source::Http || !path.starts_with('/') {
            return Err("`--path` is for `event http`, and begins with `/`".into());
        }
        for place in ["/rawPath", "/requestContext/http/path"] {
            if let Some(member) = event.pointer_mut(place) {
                *member = json!(path);
            }
        }
    }
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

/// Make an event of a payload, in the envelope in which Lambda hands it to a function
///
/// Prints the event. Ids are new each time, so two events are two messages; `--id` makes the same message again.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The service that sends the event
    #[arg(value_enum)]
    pub(crate) source: Source,

    /// The payload: the text itself, `@FILE`, or `-` for standard input; may be repeated, for more records
    ///
    /// It is the body of a message, the message of a notification, the detail of an event, the data of a record, the new
    /// image of an item, the body of a request, or the input of a schedule. For S3 it is the key of the object, URL-encoded as S3 sends it. Without
    /// it, the event has a sample order.
    #[arg(long, value_name = "PAYLOAD", allow_hyphen_values = true)]
    pub(crate) body: Vec<String>,

    /// The id of the first record [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,

    /// The path of the request, for `http` [default: /orders]
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  An SQS event with one message
    lambda-idempotency event sqs --body '{\"orderId\":\"o-1\"}' > event.json

  Three messages in one batch, two of them the same work; which keys do they get?
    lambda-idempotency event sqs --body '{\"orderId\":1}' --body '{\"orderId\":1}' --body '{\"orderId\":2}' > event.json
    lambda-idempotency keys event.json --operation place --key orderId

  An event of EventBridge whose detail is in a file, delivered to your function
    lambda-idempotency event eventbridge --body @order.json > event.json
    lambda-idempotency invoke event.json";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Source {
    /// Messages of a queue
    Sqs,
    /// Messages of a FIFO queue, all in one message group
    SqsFifo,
    /// Notifications of a topic
    Sns,
    /// A notification of a topic in messages of a queue
    SnsInSqs,
    /// An event of a bus; several payloads make the list that a custom bus sends
    #[value(name = "eventbridge")]
    EventBridge,
    /// A schedule's invocation, with the payload as its input
    Scheduler,
    /// Records of a Kinesis stream
    Kinesis,
    /// Inserted items of a table's stream
    #[value(name = "dynamodb")]
    DynamoDb,
    /// Inserted documents of a cluster's change stream
    #[value(name = "documentdb")]
    DocumentDb,
    /// Records of a partition of a topic
    Kafka,
    /// Objects that were stored, by their keys
    S3,
    /// Text messages of an ActiveMQ queue
    #[value(name = "activemq")]
    ActiveMq,
    /// Messages of a RabbitMQ queue
    #[value(name = "rabbitmq")]
    RabbitMq,
    /// Messages of a queue through a pipe
    Pipe,
    /// A POST request to a function URL, with an Idempotency-Key
    Http,
    /// The payload alone: a direct invocation
    Invoke,
}

/// Members of a record, by their places in it, that differ from those of the sample.
type Members = Vec<(&'static str, Value)>;

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../../events/", $name, ".json"))
    };
}

/// An event of this source with a record for each payload.
///
/// # Errors
/// A payload that the source cannot carry: several where it sends one, or not JSON where it sends JSON.
pub(crate) fn event(
    source: Source,
    payloads: &[String],
    stamp: &mut Stamp,
) -> Result<Value, String> {
    // The sample, and where its records are; none where the event is one record.
    let (sample, records) = match source {
        Source::Sqs | Source::SnsInSqs => (sample!("sqs"), Some("/Records")),
        Source::SqsFifo => (sample!("sqs-fifo"), Some("/Records")),
        Source::Sns => (sample!("sns"), Some("/Records")),
        Source::Kinesis => (sample!("kinesis"), Some("/Records")),
        Source::DynamoDb => (sample!("dynamodb"), Some("/Records")),
        Source::S3 => (sample!("s3"), Some("/Records")),
        Source::DocumentDb => (sample!("documentdb"), Some("/events")),
        Source::Kafka => (sample!("kafka"), Some("/records/orders-0")),
        Source::ActiveMq => (sample!("activemq"), Some("/messages")),
        Source::RabbitMq => (sample!("rabbitmq"), Some("/rmqMessagesByQueue/orders::~1")),
        Source::Pipe => (sample!("pipe"), Some("")),
        Source::EventBridge => (sample!("eventbridge"), None),
        Source::Http => (sample!("http"), None),
        Source::Scheduler => return scheduled(only(payloads)?, stamp),
        Source::Invoke => return json_of(only(payloads)?),
    };
    let mut event = json_of(sample)?;
    let list = records.and_then(|place| event.pointer_mut(place)?.as_array_mut());
    let record = list.and_then(|list| list.first().cloned()).unwrap_or_else(|| event.clone());
    let made = payloads.iter().map(|payload| {
        let mut record = record.clone();
        for (place, value) in members(source, payload, stamp)? {
            if let Some(member) = record.pointer_mut(place) {
                *member = value;
            }
        }
        Ok(record)
    });
    let made = made.collect::<Result<Vec<Value>, String>>()?;
    match records {
        Some(place) => {
            if let Some(list) = event.pointer_mut(place) {
                *list = made.into();
            }
            Ok(event)
        }
        // A custom bus sends a list.
        None if source == Source::EventBridge && made.len() > 1 => Ok(made.into()),
        None => only(&made).cloned(),
    }
}

fn members(source: Source, payload: &str, stamp: &mut Stamp) -> Result<Members, String> {
    let (now, time) = (stamp.now_ms, json!(stamp.time()));
    Ok(match source {
        Source::Sqs | Source::Pipe => message(payload, stamp),
        Source::SqsFifo => {
            let mut members = message(payload, stamp);
            let sequence = format!("1887{:016}", stamp.sequence());
            members.push(("/attributes/MessageDeduplicationId", json!(stamp.id())));
            members.push(("/attributes/SequenceNumber", json!(sequence)));
            members
        }
        Source::SnsInSqs => message(&notification(payload, stamp)?, stamp),
        Source::Sns => vec![
            ("/Sns/MessageId", json!(stamp.id())),
            ("/Sns/Message", json!(payload)),
            ("/Sns/Timestamp", time),
        ],
        Source::EventBridge => {
            vec![("/id", json!(stamp.id())), ("/time", time), ("/detail", json_of(payload)?)]
        }
        Source::Kinesis => {
            let sequence = format!("4964{:052}", stamp.sequence());
            let sequence = stamp.given().unwrap_or(sequence);
            vec![
                ("/eventID", json!(format!("shardId-000000000000:{sequence}"))),
                ("/kinesis/sequenceNumber", json!(sequence)),
                ("/kinesis/data", json!(BASE64_STANDARD.encode(payload))),
                ("/kinesis/approximateArrivalTimestamp", json!(now as f64 / 1000.0)),
            ]
        }
        Source::DynamoDb => {
            let Value::Object(item) = json_of(payload)? else {
                return Err("the payload of a DynamoDB record is an item: a JSON object".to_owned());
            };
            let image = item.into_iter().map(|(name, value)| (name, attribute(value)));
            let image: Map<String, Value> = image.collect();
            let keys: Map<String, Value> = image.clone().into_iter().take(1).collect();
            let image = Value::Object(image);
            vec![
                ("/eventID", json!(stamp.id().replace('-', ""))),
                ("/dynamodb/ApproximateCreationDateTime", json!((now / 1000) as f64)),
                ("/dynamodb/Keys", Value::Object(keys)),
                ("/dynamodb/SizeBytes", json!(image.to_string().len())),
                ("/dynamodb/NewImage", image),
                ("/dynamodb/SequenceNumber", json!(format!("1{:024}", stamp.sequence()))),
            ]
        }
        Source::S3 => vec![
            ("/eventTime", time),
            ("/s3/object/key", json!(payload)),
            ("/s3/object/sequencer", json!(format!("00{:016X}", stamp.sequence()))),
        ],
        Source::DocumentDb => {
            let Value::Object(mut document) = json_of(payload)? else {
                return Err(
                    "the payload of a DocumentDB event is a document: a JSON object".to_owned()
                );
            };
            let id = json!({ "$oid": format!("{:024x}", stamp.sequence()) });
            document.insert("_id".to_owned(), id.clone());
            vec![
                ("/event/_id/_data", json!(format!("01{:036x}", stamp.sequence()))),
                ("/event/clusterTime/$timestamp/t", json!(now / 1000)),
                ("/event/documentKey/_id", id),
                ("/event/fullDocument", document.into()),
            ]
        }
        Source::Kafka => vec![
            ("/offset", json!(stamp.sequence())),
            ("/timestamp", json!(now)),
            ("/value", json!(BASE64_STANDARD.encode(payload))),
        ],
        Source::ActiveMq => {
            let broker = "b-9bcfa592-423a-4942-879d-eb284b418fc8-1.mq.eu-west-1.amazonaws.com";
            vec![
                ("/messageID", json!(format!("ID:{broker}-{}", stamp.id()))),
                ("/data", json!(BASE64_STANDARD.encode(payload))),
                ("/timestamp", json!(now)),
                ("/brokerInTime", json!(now)),
                ("/brokerOutTime", json!(now + 1)),
            ]
        }
        Source::RabbitMq => vec![
            ("/basicProperties/messageId", json!(stamp.id())),
            ("/basicProperties/bodySize", json!(payload.len())),
            ("/data", json!(BASE64_STANDARD.encode(payload))),
        ],
        Source::Http => vec![
            ("/headers/content-length", json!(payload.len().to_string())),
            ("/headers/idempotency-key", json!(stamp.id())),
            ("/requestContext/requestId", json!(stamp.id())),
            ("/requestContext/time", time),
            ("/requestContext/timeEpoch", json!(now)),
            ("/body", json!(payload)),
        ],
        Source::Scheduler | Source::Invoke => Members::new(),
    })
}

fn message(body: &str, stamp: &mut Stamp) -> Members {
    let digest = Md5::digest(body.as_bytes());
    let md5: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let now = stamp.now_ms;
    let handle = BASE64_STANDARD.encode(stamp.sequence().to_string());
    vec![
        ("/messageId", json!(stamp.id())),
        ("/receiptHandle", json!(format!("AQEB{handle}"))),
        ("/body", json!(body)),
        ("/md5OfBody", json!(md5)),
        ("/attributes/SentTimestamp", json!(now.to_string())),
        ("/attributes/ApproximateFirstReceiveTimestamp", json!((now + 6).to_string())),
    ]
}

/// The body that SNS sends to a queue: as to a function, with small differences in the names of two members.
fn notification(message: &str, stamp: &mut Stamp) -> Result<String, String> {
    let mut event = event(Source::Sns, &[message.to_owned()], stamp)?;
    let sns = event.pointer_mut("/Records/0/Sns").map(Value::take).unwrap_or_default();
    let members = sns.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| !["Subject", "MessageAttributes"].contains(&&***name));
    let members = members.map(|(name, value)| (name.replace("Url", "URL"), value.clone()));
    Ok(Value::Object(members.collect()).to_string())
}

/// The input of a schedule, with the two members that say which occurrence of the schedule this is.
fn scheduled(input: &str, stamp: &Stamp) -> Result<Value, String> {
    let mut input = json_of(input)?;
    let Value::Object(members) = &mut input else {
        return Err(
            "the input of a schedule has to be a JSON object, because it holds the schedule's ARN"
                .to_owned(),
        );
    };
    let arn = json_of(sample!("scheduler"))?.get("scheduleArn").cloned();
    let second = stamp.time().split('.').next().unwrap_or_default().to_owned();
    members.insert("scheduleArn".to_owned(), arn.unwrap_or_default());
    members.insert("scheduledTime".to_owned(), json!(format!("{second}Z")));
    Ok(input)
}

/// A value as an attribute of an item.
fn attribute(value: Value) -> Value {
    match value {
        Value::String(text) => json!({ "S": text }),
        Value::Number(number) => json!({ "N": number.to_string() }),
        Value::Bool(bool) => json!({ "BOOL": bool }),
        Value::Null => json!({ "NULL": true }),
        Value::Array(list) => json!({ "L": list.into_iter().map(attribute).collect::<Vec<_>>() }),
        Value::Object(map) => {
            let map = map.into_iter().map(|(name, value)| (name, attribute(value)));
            json!({ "M": map.collect::<Map<_, _>>() })
        }
    }
}

fn json_of(payload: &str) -> Result<Value, String> {
    serde_json::from_str(payload).map_err(|error| {
        format!("this source sends JSON, and the payload is not valid JSON: {error}")
    })
}

fn only<T>(payloads: &[T]) -> Result<&T, String> {
    match payloads {
        [one] => Ok(one),
        _ => Err("this source sends one payload in an event: give `--body` once".to_owned()),
    }
}

/// Makes ids, sequence numbers and times.
#[derive(Debug)]
pub(crate) struct Stamp {
    /// Milliseconds since 1970.
    pub(crate) now_ms: u64,
    /// The id of the next record, if it is given.
    next: Option<String>,
    /// How many sequence numbers were made.
    made: u64,
}

impl Stamp {
    /// The present, and this id for the first record.
    pub(crate) fn now(first_id: Option<String>) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the sender of an event has a real clock")]
        let now = SystemTime::now();
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { now_ms, next: first_id, made: 0 }
    }

    /// The id of the next record: the given one, or a new one.
    pub(crate) fn id(&mut self) -> String {
        self.next.take().unwrap_or_else(|| Uuid::new_v4().to_string())
    }

    /// The given id, if no record has it yet.
    pub(crate) fn given(&mut self) -> Option<String> {
        self.next.take()
    }

    /// A number that grows from record to record, and from one use of the command to the next.
    pub(crate) fn sequence(&mut self) -> u64 {
        self.made += 1;
        self.now_ms * 1000 + self.made
    }

    /// The time as `2026-11-21T09:07:12.418Z`.
    pub(crate) fn time(&self) -> String {
        let (seconds, ms) = (self.now_ms / 1000, self.now_ms % 1000);
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{ms:03}Z", seconds % 60)
    }
}

/// Year, month and day of a number of days since 1970, by counting.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_aws_writes_it() {
        let at = |now_ms| Stamp { now_ms, next: None, made: 0 }.time();
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(1_709_210_096_007), "2024-02-29T12:34:56.007Z");
        assert_eq!(at(1_798_761_599_999), "2026-12-31T23:59:59.999Z");
        assert_eq!(at(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }
}
