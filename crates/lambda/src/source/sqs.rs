//! SQS: a batch of messages. The response contains the ids of those that have to be delivered
//! again.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>

use std::{borrow::Cow, sync::Arc};

use lambda_idempotency_core::{outcome::Outcome, policy::OnConflict};
use lambda_idempotency_engine::delivered::{ReadFunctions, Reads};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    contract::{About, EventSource, all_or_error, partial},
    event::Event,
    filter::Kind,
    record::{
        Item, Member, Record, Text, descend, identity_of, json_object, members, object, record_id,
        text,
    },
    settings::{Settings, source},
    sink::RecordEnd,
    sns,
};
use crate::{decode::Format, error::InvocationError, rejection::Rejection};

source! {
    /// SQS messages: those of standard queues are processed concurrently, starting with the ones that were received most
    /// often; those of FIFO queues in the order of their groups.
    ///
    /// The payload is the body. The response is a partial batch response: the event source mapping needs
    /// `FunctionResponseTypes: [ReportBatchItemFailures]`.
    ///
    /// ```
    /// use lambda_idempotency::{Operation, source::{Envelope, Sqs}};
    /// # use lambda_idempotency::{Call, Idempotency, MemoryStore};
    /// # async fn place_order(_: serde_json::Value, _: Call) -> Result<(), std::io::Error> { Ok(()) }
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// let place = Operation::new("place-order").key("orderId");
    /// // The queue is subscribed to a topic, without raw message delivery.
    /// let orders = Sqs::new().queue("orders.fifo").envelope(Envelope::Sns);
    /// let function = idempotency.on(orders, &place, place_order)?;
    /// # Ok(())
    /// # }
    /// ```
    Sqs => SqsEvents; payload messages batches partial
}

/// # Which records
impl Sqs {
    /// Takes only messages of this queue, by its name or ARN. The name of a FIFO queue ends in `.fifo`. Default: all
    /// queues. Records do not contain the queue's URL.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.0.only_from(Kind::Queue, queue.into());
        self
    }
}

const NAME: &str = "sqs";
/// The members that differ when a message is delivered again.
pub(super) const VOLATILE: &[&str] = &["receiptHandle", "attributes.ApproximateReceiveCount"];

/// A message whose texts are read as `T`.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Message<'e, T> {
    #[serde(rename = "messageId")]
    id: Option<T>,
    body: Option<T>,
    #[serde(rename = "eventSourceARN")]
    queue: Option<T>,
    #[serde(borrow)]
    attributes: Member<'e>,
}

impl<'e> Message<'e, Text<'e>> {
    fn of(raw: &'e RawValue) -> Self {
        members(raw).unwrap_or_else(|| Self::tolerant(raw))
    }

    /// A member that is not a text, or an invalid one, counts as missing, and the others are read.
    fn tolerant(raw: &'e RawValue) -> Self {
        let Some(message) = members::<Message<'e, &'e RawValue>>(raw) else {
            return Self { id: None, body: None, queue: None, attributes: None };
        };
        Self {
            id: text(message.id).map(Text),
            body: text(message.body).map(Text),
            queue: text(message.queue).map(Text),
            attributes: message.attributes,
        }
    }
}

json_object!(struct Attributes { group: "MessageGroupId", receives: "ApproximateReceiveCount" });

impl EventSource for SqsEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "queue ARN, messageId",
            catches: "redelivery of a message by its queue",
            misses: "a producer that sends twice (on FIFO queues: later than its 5 minutes), and \
                     redrive from a dead-letter queue, which gives new ids",
            volatile: VOLATILE,
            is_cause_of_invocation: false,
        }
    }

    fn conflict(&self) -> OnConflict {
        OnConflict::Return
    }

    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        event.delivers("aws:sqs", Kind::Queue, settings)
    }

    fn records<'e>(&self, event: &Event<'e>, _: &Settings) -> Vec<Record<'e>> {
        event.records().iter().copied().map(read).collect()
    }

    fn respond(
        &self,
        _: &Event<'_>,
        records: &[Record<'_>],
        outcomes: &[RecordEnd],
    ) -> Result<Box<RawValue>, InvocationError> {
        respond(records, outcomes)
    }
}

/// If all messages return because of an outage of the store, the invocation fails, because an error
/// makes Lambda's pollers slow down.
pub(super) fn respond(
    records: &[Record<'_>],
    outcomes: &[RecordEnd],
) -> Result<Box<RawValue>, InvocationError> {
    let is_outage = |ended: &RecordEnd| matches!(ended.outcome, Outcome::Unavailable(_));
    // In a FIFO queue, the rest of a group is returned with the message that met the outage.
    let is_outage_or_not_started =
        |ended: &RecordEnd| is_outage(ended) || matches!(ended.outcome, Outcome::Returned(_));
    if outcomes.iter().any(is_outage) && outcomes.iter().all(is_outage_or_not_started) {
        return all_or_error(NAME, records, outcomes);
    }
    partial(NAME, None, records, outcomes)
}

pub(super) fn read(raw: &RawValue) -> Record<'_> {
    let message = Message::of(raw);
    let attributes: Attributes<'_> = object(message.attributes);
    let queue = message.queue.map(|Text(queue)| queue).filter(|queue| !queue.is_empty());
    let id = message.id.map(|Text(id)| id).filter(|id| !id.is_empty());
    let payload = match (&id, message.body) {
        // Without an id, the response could not name it.
        (None, _) => Err(Rejection::NoMember("messageId")),
        (_, None) => Err(Rejection::NoMember("body")),
        (_, Some(Text(body))) => Ok(body),
    };
    // Messages of fair queues have groups, too, but those queues keep no order. A queue that is not known may keep one.
    let may_be_fifo = queue.as_deref().is_none_or(|queue| queue.ends_with(".fifo"));
    let group = text(attributes.group).filter(|_| may_be_fifo);
    let receives = text(attributes.receives).and_then(|count| count.parse().ok());
    let record = record_id(NAME, id.as_deref(), queue.as_deref().unwrap_or_default());
    Record {
        identity: identity_of(NAME, [("eventSourceARN", queue), ("messageId", id.clone())]),
        format: Format::Text,
        item: id.map(|id| Item::Id(id.into_owned())),
        group: group.map(|group| Arc::from(&*group)),
        receives,
        reads: Reads::with(&READS),
        ..Record::new(record, raw, payload)
    }
}

const READS: ReadFunctions =
    ReadFunctions { attribute: Some(attribute), trace_header: Some(trace_header) };

/// For messages whose body is an SNS notification.
pub(super) const READS_OF_NOTIFICATIONS: ReadFunctions =
    ReadFunctions { attribute: Some(attribute_of_notification), ..READS };

/// A message attribute. A binary value is in another member, in base64.
fn attribute(record: &str, name: &str) -> Option<String> {
    let value = |member| text(descend(record, &["messageAttributes", name, member]));
    value("stringValue").or_else(|| value("binaryValue")).map(Cow::into_owned)
}

/// X-Ray's system attribute.
fn trace_header(record: &str) -> Option<String> {
    text(descend(record, &["attributes", "AWSTraceHeader"])).map(Cow::into_owned)
}

/// A message attribute, or one of the SNS notification in the body.
fn attribute_of_notification(record: &str, name: &str) -> Option<String> {
    attribute(record, name)
        .or_else(|| sns::attribute_in_envelope(&text(descend(record, &["body"]))?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_no_valid_text_does_not_hide_the_others() {
        for (queue, body) in [("7", r#""{}""#), ("null", r#""\ud800""#), (r#""q.fifo""#, "{}")] {
            let json = format!(r#"{{"messageId":"m-1","eventSourceARN":{queue},"body":{body}}}"#);
            let record = read(serde_json::from_str(&json).unwrap());
            assert_eq!(record.item, Some(Item::Id("m-1".to_owned())), "{json}");
            let payload = record.payload.ok();
            assert_eq!(payload.as_deref(), (body == r#""{}""#).then_some("{}"), "{json}");
        }
        let twice = serde_json::from_str(r#"{"messageId":"m-1","messageId":"m-2"}"#).unwrap();
        assert_eq!(read(twice).item, None);
    }
}
