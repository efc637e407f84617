//! ActiveMQ: a batch of messages. If the invocation returns an error, the whole batch is delivered
//! again.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-mq.html>

use lambda_idempotency_engine::delivered::{ReadFunctions, Reads};
use serde_json::value::RawValue;

use super::{
    contract::{About, EventSource},
    event::Event,
    filter::Kind,
    record::{
        Member, Record, base64_text, descend, id, identity_of, json_object, list, object,
        record_id, scalar, text,
    },
    settings::{Settings, source},
};
use crate::decode::Format;

source! {
    /// Messages of an ActiveMQ broker; the payload is their data as text.
    ActiveMq => ActiveMqEvents; payload messages batches unordered
}

/// # Which records
impl ActiveMq {
    /// Takes only messages of this broker, by its name or ARN. Default: all brokers.
    pub fn broker(mut self, broker: impl Into<String>) -> Self {
        self.0.only_from(Kind::Broker, broker.into());
        self
    }
}

/// The members that differ when a message is delivered again.
pub(super) const VOLATILE: &[&str] = &["redelivered", "brokerOutTime", "connectionId"];
const NAME: &str = "activemq";

json_object!(struct Message { id: "messageID", destination, data });
json_object!(struct Destination {
    /// AWS's documentation of pipes writes it in lower case.
    name: "physicalName" | "physicalname",
});

impl EventSource for ActiveMqEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "broker ARN, destination, messageID",
            catches: "redelivery of a message by its broker, always with its whole batch",
            misses: "a producer that sends twice",
            volatile: VOLATILE,
            is_cause_of_invocation: false,
        }
    }

    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        matches!(text(event.outside.event_source).as_deref(), Some("aws:amq" | "aws:mq"))
            && list(event.outside.messages).is_some()
            && settings.takes(&[(Kind::Broker, text(event.outside.arn).as_deref())])
    }

    fn records<'e>(&self, event: &Event<'e>, _: &Settings) -> Vec<Record<'e>> {
        let messages = list(event.outside.messages).unwrap_or_default();
        messages.into_iter().map(|raw| read(raw, event.outside.arn)).collect()
    }
}

pub(super) fn read<'e>(raw: &'e RawValue, broker: Member<'e>) -> Record<'e> {
    let message: Message<'_> = object(Some(raw));
    let destination: Destination<'_> = object(message.destination);
    let (broker, id) = (text(broker), id(message.id));
    let record = record_id(NAME, id.as_deref(), broker.as_deref().unwrap_or_default()).hidden();
    let members = [
        ("eventSourceArn", broker),
        ("destination.physicalName", text(destination.name)),
        ("messageID", id),
    ];
    Record {
        identity: identity_of(NAME, members),
        reads: Reads::with(&READS),
        format: Format::Text,
        body: text(message.data),
        ..Record::new(record, raw, base64_text(text(message.data), "data"))
    }
}

const READS: ReadFunctions = ReadFunctions { attribute: Some(attribute), trace_header: None };

/// A property.
fn attribute(record: &str, name: &str) -> Option<String> {
    scalar(descend(record, &["properties", name]))
}
