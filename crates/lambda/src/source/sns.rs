//! SNS: an asynchronous invocation, which Lambda retries as a whole if it returns an error.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-sns.html>

use std::borrow::Cow;

use lambda_idempotency_engine::delivered::{ReadFunctions, Reads};
use serde_json::value::RawValue;

use super::{
    contract::{About, EventSource},
    event::Event,
    filter::Kind,
    record::{Record, descend, id, identity_of, json_object, object, record_id, text},
    settings::{Settings, source},
};
use crate::{decode::Format, rejection::Rejection};

source! {
    /// SNS notifications; the payload is their message.
    Sns => SnsEvents; payload messages batches
}

/// # Which records
impl Sns {
    /// Takes only notifications of this topic, by its name or ARN. Default: all topics.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.0.only_from(Kind::Topic, topic.into());
        self
    }
}

const NAME: &str = "sns";

json_object!(struct Delivery { notification: "Sns" });
json_object!(struct Notification {
    kind: "Type", id: "MessageId", topic: "TopicArn", message: "Message",
});

impl EventSource for SnsEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "topic ARN, MessageId",
            catches: "retries by Lambda and by SNS",
            misses: "a publisher that publishes twice",
            volatile: &[],
            is_cause_of_invocation: true,
        }
    }

    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        event.delivers("aws:sns", Kind::Topic, settings)
    }

    fn records<'e>(&self, event: &Event<'e>, _: &Settings) -> Vec<Record<'e>> {
        let delivery = |raw| object::<Delivery<'_>>(Some(raw)).notification;
        let records = event.records().iter();
        records.map(|raw| read(raw, object(delivery(raw)))).collect()
    }
}

/// A notification in the form that queues get, if it is one.
pub(super) fn in_envelope(raw: &RawValue) -> Option<Record<'_>> {
    let notification: Notification<'_> = object(Some(raw));
    let Notification { id: Some(_), topic: Some(_), message: Some(_), kind } = notification else {
        return None;
    };
    // A queue also gets what SNS says about its subscription.
    let is_notification = text(kind).is_none_or(|kind| kind == "Notification");
    is_notification.then(|| read(raw, notification))
}

/// Whether SNS asks a queue to confirm its subscription, or that it ends.
pub(super) fn is_about_subscription(raw: &RawValue) -> bool {
    let notification: Notification<'_> = object(Some(raw));
    let kind = text(notification.kind);
    let is_own =
        matches!(kind.as_deref(), Some("SubscriptionConfirmation" | "UnsubscribeConfirmation"));
    is_own && notification.topic.is_some()
}

fn read<'e>(raw: &'e RawValue, notification: Notification<'e>) -> Record<'e> {
    let (topic, id) = (text(notification.topic), id(notification.id));
    let payload = text(notification.message).ok_or(Rejection::NoMember("Sns.Message"));
    let record = record_id(NAME, id.as_deref(), topic.as_deref().unwrap_or_default());
    Record {
        identity: identity_of(NAME, [("Sns.TopicArn", topic), ("Sns.MessageId", id)]),
        format: Format::Text,
        reads: Reads::with(&READS),
        ..Record::new(record, raw, payload)
    }
}

const READS: ReadFunctions = ReadFunctions { attribute: Some(attribute), trace_header: None };

fn attribute(record: &str, name: &str) -> Option<String> {
    text(descend(record, &["Sns", "MessageAttributes", name, "Value"])).map(Cow::into_owned)
}

/// A message attribute of a notification in the form that queues get.
pub(super) fn attribute_in_envelope(notification: &str, name: &str) -> Option<String> {
    text(descend(notification, &["MessageAttributes", name, "Value"])).map(Cow::into_owned)
}
