//! How the messages of an outbox are stored: the only file that knows.
//!
//! ```json
//! [{"to": "parcels", "body": "{}", "attributes": {"tenant": "acme"}, "group": "p-1"}]
//! ```
//!
//! The [ids](OutgoingMessage::id) are not stored, because they follow from the key and the position. A member that this version does
//! not know is an error: the record is of a newer version, whose messages would be sent without what it means.

use serde_json::{Map, Value};

use super::message::{Message, OutgoingMessage};
use crate::{key::Key, record::IdempotencyRecord};

/// The stored messages cannot be read, so they are not sent and stay where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stored messages cannot be read: a newer version of this library may have stored them; deploy that \
     version, and they are sent with the next delivery"
)]
pub struct OutboxError;

/// The messages that are stored in the record of a key and not yet known to be sent, in the order in which they
/// are to be sent. Empty if there are none.
///
/// # Errors
/// The stored text is not that of an outbox, or is of a newer version.
pub fn messages(
    key: &Key,
    record: &IdempotencyRecord,
) -> Result<Vec<OutgoingMessage>, OutboxError> {
    let Some(text) = record.outbox.as_deref() else { return Ok(Vec::new()) };
    let application = record.application.as_deref().unwrap_or_default();
    let stored: Vec<Map<String, Value>> = serde_json::from_str(text).map_err(|_| OutboxError)?;
    let with_id =
        |(index, members)| Ok(OutgoingMessage::new(application, key, index, message(members)?));
    stored.into_iter().enumerate().map(with_id).collect()
}

/// The text of one message.
pub(super) fn text(message: &Message) -> String {
    let mut members = Map::new();
    members.insert("to".to_owned(), message.destination().into());
    members.insert("body".to_owned(), message.body().into());
    if message.attributes().len() > 0 {
        let attributes = message.attributes().map(|(name, value)| (name.to_owned(), value.into()));
        members.insert("attributes".to_owned(), Value::Object(attributes.collect()));
    }
    if let Some(group) = message.group() {
        members.insert("group".to_owned(), group.into());
    }
    Value::Object(members).to_string()
}

fn message(mut members: Map<String, Value>) -> Result<Message, OutboxError> {
    let (Some(Value::String(to)), Some(Value::String(body))) =
        (members.remove("to"), members.remove("body"))
    else {
        return Err(OutboxError);
    };
    let mut message = Message::new(to, body);
    for (name, value) in members {
        message = match (&*name, value) {
            ("attributes", Value::Object(all)) => {
                all.into_iter().try_fold(message, |message, (name, value)| match value {
                    Value::String(value) => Ok(message.with_attribute(name, value)),
                    _ => Err(OutboxError),
                })?
            }
            ("group", Value::String(group)) => message.with_group(group),
            _ => return Err(OutboxError),
        };
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::Timestamp, record::Status};

    fn record(outbox: &str) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
        record.outbox = Some(outbox.into());
        record
    }

    #[test]
    fn messages_are_read_as_they_were_stored() {
        let first = Message::new("parcels", "{\"a\":\"\\\"\"}")
            .with_attribute("b", "2")
            .with_attribute("a", "1")
            .with_group("p-1");
        let second = Message::new("mails", "");
        let stored = record(&format!("[{},{}]", text(&first), text(&second)));
        let read = messages(&Key::from_text("op#a"), &stored).unwrap();
        let read: Vec<_> = read.iter().map(OutgoingMessage::message).collect();
        assert_eq!(read.len(), 2);
        assert_eq!(read[1], &second);
        let attributes = |message: &Message| {
            let mut all: Vec<_> =
                message.attributes().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
            all.sort();
            all
        };
        assert_eq!(attributes(read[0]), attributes(&first));
        assert_eq!((read[0].body(), read[0].group()), (first.body(), first.group()));
    }

    #[test]
    fn what_a_newer_version_stored_is_an_error() {
        for text in [
            "{}",
            "[1]",
            r#"[{"to":"q"}]"#,
            r#"[{"to":"q","body":"1","delay":5}]"#,
            r#"[{"to":"q","body":"1","attributes":{"a":1}}]"#,
            r#"[{"to":"q","body":"1","group":1}]"#,
        ] {
            assert_eq!(
                messages(&Key::from_text("op#a"), &record(text)),
                Err(OutboxError),
                "{text}"
            );
        }
        assert_eq!(messages(&Key::from_text("op#a"), &record("[]")), Ok(Vec::new()));
    }
}
