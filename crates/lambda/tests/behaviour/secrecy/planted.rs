//! Events of AWS with a canary in each place that an application fills.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{samples::samples, secrets_capture::CANARY};

/// AWS or the owner of the account chooses these members, and logs may show them.
const NAMES: &str = "EventSource EventVersion MessageId SequenceNumber Type _data awsRegion bootstrapServers eventID eventName \
                     eventSource eventSourceARN eventSourceArn eventTime eventVersion messageId sequenceNumber sequencer \
                     source topic";

/// All samples with the canary, and their names; `mark` is in the payload.
pub(crate) fn events(mark: &str) -> Vec<(String, String)> {
    let plant = |(name, event): (String, String)| {
        let mut event = serde_json::from_str(&event).unwrap();
        plant("detail", &mut event, mark);
        (name, event.to_string())
    };
    samples().into_iter().map(plant).collect()
}

fn plant(name: &str, value: &mut Value, mark: &str) {
    match value {
        // The samples of RabbitMQ have no id.
        Value::Null if name == "messageId" => *value = CANARY.into(),
        Value::String(text)
            if !NAMES.split(' ').any(|it| it == name) && !text.starts_with("arn:") =>
        {
            *text = in_text(text, mark);
        }
        Value::Array(bytes) if !bytes.is_empty() && bytes.iter().all(Value::is_u64) => {
            bytes.extend(CANARY.bytes().map(Value::from));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| plant(name, value, mark)),
        Value::Object(members) => {
            members.iter_mut().for_each(|(name, value)| plant(name, value, mark));
            if name == "detail" {
                members.insert("mark".to_owned(), json!(CANARY));
                members.insert("note".to_owned(), json!(mark));
                members.insert(CANARY.to_owned(), json!(1));
            }
        }
        _ => {}
    }
}

/// Text that may be JSON, or JSON in base64.
fn in_text(text: &str, mark: &str) -> String {
    let decoded = STANDARD.decode(text).ok().filter(|bytes| bytes.len() > 6);
    if let Ok(mut object @ Value::Object(_)) = serde_json::from_str(text) {
        plant("detail", &mut object, mark);
        object.to_string()
    } else if let Some(decoded) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
        STANDARD.encode(in_text(&decoded, mark))
    } else {
        format!("{text}-{CANARY}")
    }
}
