//! The message of a user's function, from which messages of different work are made.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use lambda_idempotency_local::{Event, Source, parse_event};
use serde_json::{Value, json};

use crate::{
    kinds::Origin,
    vary::{vary, vary_item},
};

/// A message as its source delivers it, and the member of its payload in which messages of different work differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template {
    origin: Origin,
    /// A record; where an invocation has one message, the whole event.
    message: Value,
    /// The path of the member, from the outside.
    path: Vec<String>,
}

/// Where a message of a run is: its id, its place among all messages, and its group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent<'a> {
    pub(crate) id: &'a str,
    pub(crate) place: u64,
    pub(crate) group: usize,
}

impl Template {
    /// Makes a template of the body of an SQS message. `vary` names the member in which messages of different work
    /// differ, as `order.id`.
    ///
    /// ```
    /// # use lambda_idempotency_chaos::Template;
    /// let template = Template::new(r#"{"order":{"id":"o"},"quantity":1}"#, "order.id")?;
    /// assert_eq!(template.body(7), r#"{"order":{"id":"o-7"},"quantity":1}"#);
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// The body is not a JSON object, or has no such member.
    pub fn new(body: &str, vary: &str) -> Result<Self, String> {
        let record = json!({
            "messageId": "m", "body": body, "attributes": {}, "messageAttributes": {},
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:orders",
            "awsRegion": "us-east-1",
        });
        Self::of(Origin::Sqs, record, vary)
    }

    /// Makes a template of an event with one record, in the shape that the function gets. `vary` is a member of the
    /// record's payload: of the body, the message, the detail, the data or the item.
    ///
    /// ```
    /// # use lambda_idempotency_chaos::{Origin, Template};
    /// let event = r#"{"id":"e","detail-type":"Paid","source":"shop","detail":{"paymentId":"p"}}"#;
    /// let template = Template::of_event(event, "paymentId")?;
    /// assert_eq!(template.origin(), Origin::EventBridge);
    /// assert_eq!(template.body(7), r#"{"paymentId":"p-7"}"#);
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// It is not such an event, or its payload has no such member.
    pub fn of_event(event: &str, vary: &str) -> Result<Self, String> {
        let event = parse_event("event", event)
            .map_err(|error| format!("the event is not valid JSON: {error}"))?;
        let records = event.records();
        let several = format!(
            "the event has {records} records, and each message is made of one: leave one record in it"
        );
        let only = |found: Vec<Value>| <[Value; 1]>::try_from(found).map_err(|_| several.clone());
        let source = match event {
            Event::Polled(Source::Sqs, records) => {
                let [record] = only(records)?;
                let arn = record.get("eventSourceARN").and_then(Value::as_str).unwrap_or_default();
                let origin = if arn.ends_with(".fifo") { Origin::SqsFifo } else { Origin::Sqs };
                return Self::of(origin, record, vary);
            }
            Event::Polled(source, records) => {
                let [record] = only(records)?;
                let is_kinesis = source == Source::Kinesis;
                let origin = if is_kinesis { Origin::Kinesis } else { Origin::DynamoDb };
                return Self::of(origin, record, vary);
            }
            Event::Whole(Source::Sns, event) if records == 1 => {
                return Self::of(Origin::Sns, event, vary);
            }
            Event::Whole(Source::EventBridge, event) if event.is_object() => {
                return Self::of(Origin::EventBridge, event, vary);
            }
            Event::Whole(Source::Sns | Source::EventBridge, _) => return Err(several),
            Event::Whole(source, _) => source,
            Event::Pipe(..) => Source::Pipe,
        };
        Err(format!(
            "events of {source} are not delivered under faults; those of SQS, SNS, EventBridge, Kinesis and DynamoDB \
             streams are"
        ))
    }

    fn of(origin: Origin, message: Value, vary: &str) -> Result<Self, String> {
        let path = vary.split('.').map(str::to_owned).collect();
        let template = Self { origin, message, path };
        let Some(Value::Object(members)) = template.payload() else {
            return Err(
                "the body of the message is not a JSON object, so none of its members can be varied".to_owned()
            );
        };
        if template.varied(0).is_none() {
            let members: Vec<_> = members.keys().map(String::as_str).collect();
            let members = members.join(", ");
            return Err(format!(
                "the body has no text or whole number `{vary}`; it has: {members}"
            ));
        }
        Ok(template)
    }

    /// The service that delivers the messages.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The payload of this work, as JSON text: two numbers make two payloads.
    #[must_use]
    pub fn body(&self, number: usize) -> String {
        self.varied(number).unwrap_or_default().to_string()
    }

    /// The payload: of a record of a table's stream, the part with its images and keys.
    fn payload(&self) -> Option<Value> {
        let at = |path: &str| self.message.pointer(path);
        let text = |path: &str| serde_json::from_str(at(path)?.as_str()?).ok();
        match self.origin {
            Origin::Sqs | Origin::SqsFifo => text("/body"),
            Origin::Sns => text("/Records/0/Sns/Message"),
            Origin::EventBridge => at("/detail").cloned(),
            Origin::Kinesis => {
                let data = BASE64_STANDARD.decode(at("/kinesis/data")?.as_str()?).ok()?;
                serde_json::from_slice(&data).ok()
            }
            Origin::DynamoDb => {
                IMAGES.iter().find_map(|image| at(&format!("/dynamodb/{image}"))).cloned()
            }
        }
    }

    fn varied(&self, number: usize) -> Option<Value> {
        let mut payload = self.payload()?;
        let is_varied = match self.origin {
            Origin::DynamoDb => vary_item(&mut payload, &self.path, number),
            _ => vary(&mut payload, &self.path, number),
        };
        is_varied.then_some(payload)
    }

    /// The message of this work: a record or, where an invocation has one message, the event.
    pub(crate) fn message(&self, number: usize, sent: Sent<'_>) -> Value {
        let mut message = self.message.clone();
        let mut set = |path: &str, value: Value| {
            let (parent, name) = path.rsplit_once('/').unwrap_or_default();
            // An event that was written by hand may have no attributes.
            if !message.pointer(parent).is_some_and(Value::is_object)
                && let Some((around, missing)) = parent.rsplit_once('/')
                && let Some(Value::Object(members)) = message.pointer_mut(around)
            {
                members.insert(missing.to_owned(), json!({}));
            }
            if let Some(Value::Object(members)) = message.pointer_mut(parent) {
                members.insert(name.to_owned(), value);
            }
        };
        let body = self.body(number);
        match self.origin {
            Origin::Sqs | Origin::SqsFifo => {
                set("/body", body.into());
                set("/messageId", sent.id.into());
                if self.origin == Origin::SqsFifo {
                    set("/attributes/MessageGroupId", format!("group-{}", sent.group).into());
                    set("/attributes/MessageDeduplicationId", sent.id.into());
                    set("/attributes/SequenceNumber", format!("{:020}", sent.place).into());
                }
            }
            Origin::Sns => {
                set("/Records/0/Sns/Message", body.into());
                set("/Records/0/Sns/MessageId", sent.id.into());
            }
            Origin::EventBridge => {
                set("/detail", self.varied(number).unwrap_or_default());
                set("/id", sent.id.into());
            }
            Origin::Kinesis => {
                set("/kinesis/data", BASE64_STANDARD.encode(body).into());
                set("/kinesis/sequenceNumber", sent.id.into());
                set("/kinesis/partitionKey", shard(sent.group).into());
                set("/eventID", format!("{}:{}", shard(sent.group), sent.id).into());
            }
            Origin::DynamoDb => {
                for image in IMAGES {
                    if let Some(item) = message.pointer_mut(&format!("/dynamodb/{image}")) {
                        vary_item(item, &self.path, number);
                    }
                }
                let mut set = |path: &str, name: &str| {
                    if let Some(Value::Object(members)) = message.pointer_mut(path) {
                        members.insert(name.to_owned(), sent.id.into());
                    }
                };
                set("/dynamodb", "SequenceNumber");
                set("", "eventID");
            }
        }
        message
    }
}

/// The parts of a record of a table's stream that hold attributes, the most complete first.
const IMAGES: [&str; 3] = ["NewImage", "OldImage", "Keys"];

pub(crate) fn shard(group: usize) -> String {
    format!("shardId-{group:012}")
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
