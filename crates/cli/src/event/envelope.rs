//! The envelopes of all sources: those of the samples in `events`, with other payloads, ids and times. A test compares
//! them with AWS's own samples.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use md5::{Digest as _, Md5};
use serde_json::{Map, Value, json};

use super::{Source, Stamp};

/// Members of a record, by their places in it, that differ from those of the sample.
type Members = Vec<(&'static str, Value)>;

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../../../events/", $name, ".json"))
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
        Source::Direct => return json_of(only(payloads)?),
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
        Source::Scheduler | Source::Direct => Members::new(),
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

/// What SNS sends to a queue: as to a function, with small differences in the names of two members.
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
