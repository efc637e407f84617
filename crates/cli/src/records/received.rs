//! A message as `aws sqs receive-message` prints it, and the event in which its queue delivers it.

use std::collections::BTreeMap;

use serde_json::{Value, json, value::RawValue};

/// The members of an object, as they are written.
pub(super) type Members = BTreeMap<String, Box<RawValue>>;

/// The event in which a message is delivered. Its queue is the one from which it was moved, if it was: its keys are
/// about that one.
pub(super) fn delivered(message: &Members, body: &str, attributes: &Value) -> Value {
    let of_the_system = value(message, "Attributes");
    let mut record = json!({
        "eventSource": "aws:sqs",
        "messageId": value(message, "MessageId"),
        "receiptHandle": value(message, "ReceiptHandle"),
        "body": body,
        "attributes": if of_the_system.is_null() { json!({}) } else { of_the_system.clone() },
        "messageAttributes": in_small_letters(attributes),
    });
    let queue = of_the_system.get("DeadLetterQueueSourceArn").filter(|queue| queue.is_string());
    if let (Value::Object(record), Some(queue)) = (&mut record, queue) {
        record.insert("eventSourceARN".to_owned(), queue.clone());
    }
    json!({ "Records": [record] })
}

/// A body that is a notification of SNS, as it is written.
pub(super) fn notification(body: &str) -> Option<&str> {
    let members = members(body)?;
    let is_notification = text(&members, "Type").is_some_and(|kind| kind == "Notification");
    (is_notification && members.contains_key("TopicArn") && members.contains_key("Message"))
        .then_some(body)
}

/// Whether an event is one message of a queue that holds a notification of SNS, and that no queue moved to a
/// dead-letter queue. `Attributes` say so, if they were asked for.
pub(crate) fn may_be_of_a_subscription(event: &str) -> bool {
    let Ok(event) = serde_json::from_str::<Value>(event) else { return false };
    let Some([record]) = event.get("Records").and_then(Value::as_array).map(Vec::as_slice) else {
        return false;
    };
    let body = record.get("body").and_then(Value::as_str);
    let attributes = record.get("attributes").and_then(Value::as_object);
    body.and_then(notification).is_some()
        && attributes
            .is_some_and(|them| !them.is_empty() && !them.contains_key("DeadLetterQueueSourceArn"))
}

/// Message attributes, whose members have small letters in an event.
fn in_small_letters(attributes: &Value) -> Value {
    let Value::Object(attributes) = attributes else { return json!({}) };
    let small = |name: &str| {
        let mut letters = name.chars();
        letters
            .next()
            .map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
    };
    let attributes = attributes.iter().map(|(name, value)| {
        let members = value.as_object().into_iter().flatten();
        let members = members.map(|(name, value)| (small(name), value.clone()));
        (name.clone(), Value::Object(members.collect()))
    });
    Value::Object(attributes.collect())
}

/// The members of a document, if it is an object.
pub(super) fn members(document: &str) -> Option<Members> {
    serde_json::from_str(document).ok()
}

pub(super) fn text(members: &Members, name: &str) -> Option<String> {
    serde_json::from_str(members.get(name)?.get()).ok()
}

/// Any member; null if there is none.
pub(super) fn value(members: &Members, name: &str) -> Value {
    members.get(name).and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
}
