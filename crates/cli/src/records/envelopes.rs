//! The events inside of what a dead-letter queue or a failure destination holds.
//!
//! | what | the event |
//! |---|---|
//! | the answer of `aws sqs receive-message` | its messages, as their queue delivers them; or what is in their bodies, below |
//! | a record of a Lambda destination (`requestContext`, `requestPayload`), also in an event of EventBridge or a notification of SNS | `requestPayload` |
//! | an object that a stream's destination wrote to S3 (`requestContext`, `payload`) | `payload`, a text |
//! | a message of a dead-letter queue of a function or a rule (attribute `ErrorCode`, `ERROR_CODE`) | its body |
//! | a message of a dead-letter queue of a subscription of SNS, if the user says that it is one | the notification in it, as SNS hands it to a function |
//! | a list, or one document after another | each of them; a list of a pipe's records is one event |
//! | anything else | itself |
//!
//! Whose dead-letter queue holds a notification cannot be seen: of a queue that is subscribed to the topic, or of the
//! subscription of a function. Their events differ, and so do their keys.
//!
//! Events are passed on as they are written: read and written again, a number or a member that occurs twice could
//! give them another key.

use std::collections::BTreeMap;

use serde_json::{Deserializer, Value, json, value::RawValue};

/// The owner of the dead-letter queue, where its messages hold notifications of SNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notified {
    /// A queue that is subscribed to the topic.
    Queue,
    /// A function that is subscribed to the topic: the queue is that of its subscription.
    Function,
}

pub(crate) fn events(text: &str, notified: Notified) -> Result<Vec<String>, String> {
    let mut events = Vec::new();
    for document in Deserializer::from_str(text).into_iter::<Box<RawValue>>() {
        let document = document.map_err(|error| format!("it is not JSON: {error}"))?;
        events.extend(unwrap(document.get(), notified)?);
    }
    if events.is_empty() { Err("it holds no events".to_owned()) } else { Ok(events) }
}

fn unwrap(document: &str, notified: Notified) -> Result<Vec<String>, String> {
    if let Ok(documents) = serde_json::from_str::<Vec<Box<RawValue>>>(document) {
        let is_of_a_pipe = |document: &RawValue| {
            members(document.get()).is_some_and(|members| members.contains_key("eventSource"))
        };
        if !documents.is_empty() && documents.iter().map(|document| &**document).all(is_of_a_pipe) {
            return Ok(vec![document.to_owned()]);
        }
        let inner = documents.iter().map(|document| unwrap(document.get(), notified));
        return Ok(inner.collect::<Result<Vec<_>, _>>()?.concat());
    }
    let Some(members) = members(document) else {
        return Err("it holds something that is not an event".to_owned());
    };
    if let Some(inner) = failed(&members)? {
        return Ok(inner);
    }
    let messages = members.get("Messages");
    match messages.and_then(|list| serde_json::from_str::<Vec<Box<RawValue>>>(list.get()).ok()) {
        Some(messages) => {
            let inner = messages.iter().map(|message| of_message(message.get(), notified));
            Ok(inner.collect::<Result<Vec<_>, _>>()?.concat())
        }
        None => Ok(vec![document.to_owned()]),
    }
}

/// The events that failed, if a document is what a failure destination wrote.
fn failed(members: &Members) -> Result<Option<Vec<String>>, String> {
    if members.contains_key("requestContext") {
        if let Some(payload) = members.get("requestPayload") {
            return Ok(Some(vec![payload.get().to_owned()]));
        }
        // An HTTP event has a `requestContext` too.
        if members.keys().any(|name| name.ends_with("BatchInfo")) {
            let payload = text(members, "payload").ok_or(
                "it names the positions of a batch in its stream, and holds no records: read them from the stream, or \
                 let the failure destination be an S3 bucket",
            )?;
            return match serde_json::from_str::<Box<RawValue>>(&payload) {
                Ok(_) => Ok(Some(vec![payload])),
                Err(error) => Err(format!("its `payload` is not JSON: {error}")),
            };
        }
        return Ok(None);
    }
    // By EventBridge.
    if text(members, "detail-type").is_some_and(|kind| kind.starts_with(RESULT)) {
        return of_text(members.get("detail").map(|detail| detail.get()));
    }
    // By SNS to a queue.
    if text(members, "Type").is_some_and(|kind| kind == "Notification") {
        return of_text(text(members, "Message").as_deref());
    }
    // By SNS to a function.
    let records = members.get("Records").map(|records| records.get());
    let records: Vec<Members> =
        records.and_then(|records| serde_json::from_str(records).ok()).unwrap_or_default();
    let mut all = Vec::new();
    for record in &records {
        let notification = record.get("Sns").and_then(|sns| self::members(sns.get()));
        let message = notification.and_then(|notification| text(&notification, "Message"));
        match of_text(message.as_deref())? {
            Some(inner) => all.extend(inner),
            None => return Ok(None),
        }
    }
    Ok((!all.is_empty()).then_some(all))
}

/// The `detail-type` of what Lambda sends to an event bus.
const RESULT: &str = "Lambda Function Invocation Result";

fn of_text(document: Option<&str>) -> Result<Option<Vec<String>>, String> {
    document.and_then(members).map_or(Ok(None), |members| failed(&members))
}

/// A message of `aws sqs receive-message`.
fn of_message(message: &str, notified: Notified) -> Result<Vec<String>, String> {
    let message = members(message).ok_or("a message is not an object")?;
    let body = text(&message, "Body").ok_or("a message has no `Body`")?;
    let attributes = value(&message, "MessageAttributes");
    let is_event = ["ErrorCode", "ERROR_CODE"].iter().any(|name| attributes.get(name).is_some());
    if let Some(inner) = of_text(Some(&body))? {
        return Ok(inner);
    }
    if is_event {
        return unwrap(&body, notified);
    }
    let event = match notification(&body).filter(|_| notified == Notified::Function) {
        Some(notification) => format!(
            r#"{{"Records":[{{"EventSource":"aws:sns","EventVersion":"1.0","Sns":{notification}}}]}}"#
        ),
        None => delivered(&message, &body, &attributes).to_string(),
    };
    Ok(vec![event])
}

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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parsed(text: &Value) -> Result<Vec<Value>, String> {
        let events = events(&text.to_string(), Notified::Queue)?;
        Ok(events.iter().map(|event| serde_json::from_str(event).unwrap()).collect())
    }

    fn event() -> Value {
        json!({ "Records": [{ "eventSource": "aws:sns", "Sns": { "Message": "{}" } }] })
    }

    #[test]
    fn the_event_of_a_destination_is_unwrapped_wherever_it_is() {
        let destination = json!({
            "version": "1.0",
            "requestContext": { "condition": "RetriesExhausted" },
            "requestPayload": event(),
        });
        let queued = json!({ "Messages": [{ "MessageId": "m", "Body": destination.to_string() }] });
        let s3 = json!({
            "requestContext": {}, "KinesisBatchInfo": {}, "payload": event().to_string(),
        });
        let bus = json!({
            "version": "0", "source": "lambda", "detail": destination,
            "detail-type": "Lambda Function Invocation Result - Failure",
        });
        let notification = json!({ "Type": "Notification", "Message": destination.to_string() });
        let topic = json!({ "Records": [{ "EventSource": "aws:sns", "Sns": notification }] });
        let body =
            |body: &Value| json!({ "Messages": [{ "MessageId": "m", "Body": body.to_string() }] });
        let (bus_queued, topic_queued) = (body(&bus), body(&notification));
        let documents = [
            event(),
            json!([event()]),
            destination,
            queued,
            s3,
            bus,
            bus_queued,
            topic,
            topic_queued,
        ];
        for wrapped in documents {
            assert_eq!(parsed(&wrapped), Ok(vec![event()]), "{wrapped}");
        }
        let two = format!("{}\n{}\n", event(), event());
        assert_eq!(
            events(&two, Notified::Queue).map(|events| events.len()),
            Ok(2),
            "one document after another"
        );
    }

    #[test]
    fn a_message_is_as_its_queue_delivers_it() {
        let message = json!({
            "MessageId": "m-1", "ReceiptHandle": "h", "Body": "{\"orderId\":1}",
            "Attributes": { "DeadLetterQueueSourceArn": "arn:aws:sqs:eu-west-1:1:orders" },
            "MessageAttributes": { "tenant": { "StringValue": "acme", "DataType": "String" } },
        });
        let found = parsed(&json!({ "Messages": [message] })).unwrap().remove(0);
        let record = &found["Records"][0];
        assert_eq!(record["body"], "{\"orderId\":1}");
        assert_eq!(record["eventSourceARN"], "arn:aws:sqs:eu-west-1:1:orders");
        assert_eq!(record["messageAttributes"]["tenant"]["stringValue"], "acme");
    }

    #[test]
    fn the_body_of_a_functions_or_a_rules_dead_letter_is_its_event() {
        for attribute in ["ErrorCode", "ERROR_CODE"] {
            let message = json!({
                "Body": event().to_string(),
                "MessageAttributes": { attribute: { "StringValue": "200", "DataType": "Number" } },
            });
            assert_eq!(parsed(&json!({ "Messages": [message] })), Ok(vec![event()]));
        }
    }

    #[test]
    fn an_event_is_passed_on_as_it_is_written() {
        let event = r#"{"z":1e2,"a":{"same":1,"same":2},"t":"\ud800"}"#;
        let destination = format!(r#"{{"requestContext":{{}},"requestPayload":{event}}}"#);
        assert_eq!(events(&destination, Notified::Queue), Ok(vec![event.to_owned()]));
    }

    #[test]
    fn what_a_destination_holds_is_the_event_of_the_function_whatever_it_is() {
        let destination =
            |payload: Value| json!({ "requestContext": {}, "requestPayload": payload });
        for payload in [json!("text"), json!([1, 2]), json!(null), destination(json!({}))] {
            assert_eq!(parsed(&destination(payload.clone())), Ok(vec![payload]));
        }
    }

    #[test]
    fn a_list_of_a_pipes_records_is_one_event() {
        let pipe =
            json!([{ "eventSource": "aws:sqs", "messageId": "1" }, { "eventSource": "aws:sqs" }]);
        assert_eq!(parsed(&pipe), Ok(vec![pipe]));
    }

    #[test]
    fn what_holds_no_records_is_refused_with_the_remedy() {
        let positions = json!({ "requestContext": {}, "KinesisBatchInfo": { "shardId": "s" } });
        assert!(events(&positions.to_string(), Notified::Queue).unwrap_err().contains("S3"));
        assert!(events("", Notified::Queue).unwrap_err().contains("no events"));
        assert!(events("{", Notified::Queue).unwrap_err().contains("not JSON"));
    }

    #[test]
    fn a_notification_is_of_a_queue_unless_it_is_said_to_be_of_a_functions_subscription() {
        let notification = json!({
            "Type": "Notification", "MessageId": "n-1", "TopicArn": "arn:aws:sns:eu-west-1:1:orders",
            "Message": "{\"orderId\":1}",
        });
        let message = |attributes: Value| {
            let body = notification.to_string();
            json!({ "Messages": [{ "MessageId": "m", "Body": body, "Attributes": attributes }] })
                .to_string()
        };
        let unmoved = message(json!({ "SenderId": "s" }));
        let of_queue = events(&unmoved, Notified::Queue).unwrap();
        assert!(of_queue[0].contains("aws:sqs") && may_be_of_a_subscription(&of_queue[0]));
        let of_function: Value =
            serde_json::from_str(&events(&unmoved, Notified::Function).unwrap()[0]).unwrap();
        assert_eq!(of_function["Records"][0]["EventSource"], "aws:sns");
        assert_eq!(of_function["Records"][0]["Sns"], notification);
        for moved in [json!({ "DeadLetterQueueSourceArn": "arn:aws:sqs:q" }), json!({})] {
            let event = events(&message(moved), Notified::Queue).unwrap();
            assert!(!may_be_of_a_subscription(&event[0]));
        }
        // Not a notification: what the body is does not depend on what is said.
        let plain = json!({ "Messages": [{ "MessageId": "m", "Body": "{}" }] }).to_string();
        assert_eq!(events(&plain, Notified::Function), events(&plain, Notified::Queue));
    }
}
