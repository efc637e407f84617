//! RabbitMQ: a batch of messages. If the invocation returns an error, the whole batch is delivered
//! again.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-mq.html>

use std::borrow::Cow;

use lambda_idempotency_engine::{
    call::RecordId,
    delivered::{ReadFunctions, Reads},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    contract::{About, EventSource},
    event::Event,
    filter::Kind,
    record::{
        Member, Record, base64_text, descend, id, identity_of, json_object, list, named, object,
        record_id, scalar, text, text_of_bytes,
    },
    settings::{Settings, source},
};
use crate::{decode::Format, rejection::Rejection};

source! {
    /// Messages of a RabbitMQ broker; the payload is their data as text. Where the producer sets no `messageId`, the
    /// operation needs a key.
    RabbitMq => RabbitMqEvents; payload messages batches unordered
}

/// # Which records
impl RabbitMq {
    /// Takes only messages of this broker, by its name or ARN. Default: all brokers.
    pub fn broker(mut self, broker: impl Into<String>) -> Self {
        self.0.only_from(Kind::Broker, broker.into());
        self
    }
}

/// The members that differ when a message is delivered again. Quorum queues count deliveries in the headers, and a queue of
/// dead letters counts each way through it.
pub(super) const VOLATILE: &[&str] = &[
    "redelivered",
    "basicProperties.headers.x-delivery-count",
    "basicProperties.headers.x-acquired-count",
    "basicProperties.headers.x-death",
];
const NAME: &str = "rabbitmq";

json_object!(struct Message { properties: "basicProperties", data });
json_object!(struct Properties { id: "messageId" });

/// A header that is text or bytes.
#[derive(Default, Deserialize)]
struct Bytes {
    bytes: Option<Vec<i16>>,
}

impl EventSource for RabbitMqEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "broker ARN, queue, basicProperties.messageId",
            catches: "redelivery of a message by its broker, always with its whole batch",
            misses: "everything where the producer sets no messageId: such a record is refused, and \
                     needs a key; and a producer that sends twice with new ids",
            volatile: VOLATILE,
            is_cause_of_invocation: false,
        }
    }

    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        text(event.outside.event_source).is_some_and(|source| source == "aws:rmq")
            && queues(event).is_some()
            && settings.takes(&[(Kind::Broker, text(event.outside.arn).as_deref())])
    }

    fn records<'e>(&self, event: &Event<'e>, _: &Settings) -> Vec<Record<'e>> {
        let mut records = Vec::new();
        for (queue, messages) in queues(event).unwrap_or_default() {
            let Some(messages) = list(Some(messages)) else {
                // Its messages must not count as done.
                let payload = Err(Rejection::NoList);
                records.push(Record::new(RecordId::new(NAME, queue), messages, payload));
                continue;
            };
            let messages = messages.into_iter();
            records.extend(
                messages.map(|raw| read(raw, event.outside.arn, Some(Cow::Owned(queue.clone())))),
            );
        }
        records
    }
}

/// The lists of messages, by queue and virtual host (`orders::/`).
fn queues<'e>(event: &Event<'e>) -> Option<Vec<(String, &'e RawValue)>> {
    named(event.outside.queues)
}

pub(super) fn read<'e>(
    raw: &'e RawValue,
    broker: Member<'e>,
    queue: Option<Cow<'e, str>>,
) -> Record<'e> {
    let message: Message<'_> = object(Some(raw));
    let (broker, id) = (text(broker), id(object::<Properties<'_>>(message.properties).id));
    let record = record_id(NAME, id.as_deref(), broker.as_deref().unwrap_or_default()).hidden();
    let members =
        [("eventSourceArn", broker), ("eventSourceKey", queue), ("basicProperties.messageId", id)];
    Record {
        identity: identity_of(NAME, members),
        reads: Reads::with(&READS),
        format: Format::Text,
        body: text(message.data),
        ..Record::new(record, raw, base64_text(text(message.data), "data"))
    }
}

const READS: ReadFunctions = ReadFunctions { attribute: Some(attribute), trace_header: None };

/// A header: a number, or a list of bytes, as which the broker delivers text.
fn attribute(record: &str, name: &str) -> Option<String> {
    let header = descend(record, &["basicProperties", "headers", name]);
    scalar(header).or_else(|| text_of_bytes(&object::<Bytes>(header).bytes?))
}
