//! The events inside of what a dead-letter queue or a failure destination holds.
//!
//! | what | the event |
//! |---|---|
//! | the answer of `aws sqs receive-message` | its messages, as their queue delivers them; or what is in their bodies, below |
//! | a record of a Lambda destination (`requestContext`, `requestPayload`) | `requestPayload` |
//! | an object that a stream's destination wrote to S3 (`requestContext`, `payload`) | `payload`, a text |
//! | a message of a dead-letter queue of a function (attribute `ErrorCode`) | its body |
//! | a list, or one document after another | each of them |
//! | anything else | itself |

use serde_json::{Deserializer, Value, json};

/// The events of a file.
pub(crate) fn events(text: &str) -> Result<Vec<Value>, String> {
    let mut events = Vec::new();
    for document in Deserializer::from_str(text).into_iter::<Value>() {
        let document = document.map_err(|error| format!("it is not JSON: {error}"))?;
        unwrap(document, &mut events)?;
    }
    if events.is_empty() { Err("it holds no events".to_owned()) } else { Ok(events) }
}

fn unwrap(document: Value, events: &mut Vec<Value>) -> Result<(), String> {
    match document {
        Value::Array(documents) => documents.into_iter().try_for_each(|one| unwrap(one, events)),
        Value::Object(mut members) if members.contains_key("requestContext") => {
            // An HTTP event has a `requestContext` too.
            if let Some(event) = members.remove("requestPayload") {
                return unwrap(event, events);
            }
            if members.keys().any(|name| name.ends_with("BatchInfo")) {
                let Some(Value::String(payload)) = members.remove("payload") else {
                    return Err(
                        "it names the positions of a batch in its stream, and holds no records: read them from the \
                         stream, or let the failure destination be an S3 bucket"
                            .to_owned(),
                    );
                };
                let payload = serde_json::from_str(&payload);
                return unwrap(
                    payload.map_err(|error| format!("its `payload` is not JSON: {error}"))?,
                    events,
                );
            }
            events.push(Value::Object(members));
            Ok(())
        }
        Value::Object(mut members) => match members.remove("Messages") {
            Some(Value::Array(messages)) => {
                messages.into_iter().try_for_each(|message| of_message(message, events))
            }
            Some(other) => {
                members.insert("Messages".to_owned(), other);
                events.push(Value::Object(members));
                Ok(())
            }
            None => {
                events.push(Value::Object(members));
                Ok(())
            }
        },
        _ => Err("it holds something that is not an event".to_owned()),
    }
}

/// A message of `aws sqs receive-message`.
fn of_message(message: Value, events: &mut Vec<Value>) -> Result<(), String> {
    let body = message.get("Body").and_then(Value::as_str).ok_or("a message has no `Body`")?;
    let is_of_a_function = message.pointer("/MessageAttributes/ErrorCode").is_some();
    let inner: Option<Value> = serde_json::from_str(body).ok();
    let is_envelope = |inner: &Value| {
        inner.get("requestPayload").is_some() && inner.get("requestContext").is_some()
    };
    if let Some(inner) = inner.filter(|inner| is_of_a_function || is_envelope(inner)) {
        return unwrap(inner, events);
    }
    let text = |name: &str| message.get(name).cloned().unwrap_or(Value::Null);
    let attributes = message.get("Attributes").cloned().unwrap_or_else(|| json!({}));
    // The queue from which the message was moved is the one that its keys are about.
    let queue = attributes.get("DeadLetterQueueSourceArn").cloned().unwrap_or(Value::Null);
    let mut record = json!({
        "eventSource": "aws:sqs",
        "messageId": text("MessageId"),
        "receiptHandle": text("ReceiptHandle"),
        "body": body,
        "attributes": attributes,
        "messageAttributes": attributes_of(&message),
    });
    if let (Value::Object(record), Value::String(_)) = (&mut record, &queue) {
        record.insert("eventSourceARN".to_owned(), queue);
    }
    events.push(json!({ "Records": [record] }));
    Ok(())
}

/// Message attributes, whose members have small letters in an event.
fn attributes_of(message: &Value) -> Value {
    let Some(Value::Object(attributes)) = message.get("MessageAttributes") else {
        return json!({});
    };
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

#[cfg(test)]
mod tests {
    use super::*;

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
        for wrapped in [event(), json!([event()]), destination, queued, s3] {
            assert_eq!(events(&wrapped.to_string()), Ok(vec![event()]), "{wrapped}");
        }
        let two = format!("{}\n{}\n", event(), event());
        assert_eq!(events(&two).map(|events| events.len()), Ok(2), "one document after another");
    }

    #[test]
    fn a_message_is_as_its_queue_delivers_it() {
        let message = json!({
            "MessageId": "m-1", "ReceiptHandle": "h", "Body": "{\"orderId\":1}",
            "Attributes": { "DeadLetterQueueSourceArn": "arn:aws:sqs:eu-west-1:1:orders" },
            "MessageAttributes": { "tenant": { "StringValue": "acme", "DataType": "String" } },
        });
        let found = events(&json!({ "Messages": [message] }).to_string()).unwrap().remove(0);
        let record = &found["Records"][0];
        assert_eq!(record["body"], "{\"orderId\":1}");
        assert_eq!(record["eventSourceARN"], "arn:aws:sqs:eu-west-1:1:orders");
        assert_eq!(record["messageAttributes"]["tenant"]["stringValue"], "acme");
    }

    #[test]
    fn the_body_of_a_functions_dead_letter_is_its_event() {
        let message = json!({
            "Body": event().to_string(),
            "MessageAttributes": { "ErrorCode": { "StringValue": "200", "DataType": "Number" } },
        });
        assert_eq!(events(&json!({ "Messages": [message] }).to_string()), Ok(vec![event()]));
    }

    #[test]
    fn what_holds_no_records_is_refused_with_the_remedy() {
        let positions = json!({ "requestContext": {}, "KinesisBatchInfo": { "shardId": "s" } });
        assert!(events(&positions.to_string()).unwrap_err().contains("S3"));
        assert!(events("").unwrap_err().contains("no events"));
        assert!(events("{").unwrap_err().contains("not JSON"));
    }
}
