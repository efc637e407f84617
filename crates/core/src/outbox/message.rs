//! A message, the same with its id, and how a record stores it: no other file knows that.
//!
//! ```json
//! [{"to": "parcels", "body": "{}", "attributes": {"tenant": "acme"}, "group": "p-1"}]
//! ```
//!
//! The [ids](OutgoingMessage::id) are not stored, because they follow from the key and the position. A member that this version does
//! not know is an error: the record is of a newer version, whose messages would be sent without what it means.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    key::{Digest, Key},
    record::IdempotencyRecord,
};

/// A message that a handler publishes.
///
/// `Debug` shows neither its body nor the values of its attributes, because they hold the application's
/// data.
///
/// ```
/// use lambda_idempotency_core::outbox::Message;
///
/// let queue = "https://sqs.eu-west-1.amazonaws.com/111122223333/parcels.fifo";
/// let message = Message::new(queue, r#"{"parcel":"p-1"}"#)
///     .with_attribute("tenant", "acme")
///     .with_group("p-1");
/// assert_eq!((message.body(), message.group()), (r#"{"parcel":"p-1"}"#, Some("p-1")));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Message {
    destination: Arc<str>,
    body: Arc<str>,
    attributes: Vec<(Arc<str>, Arc<str>)>,
    group: Option<Arc<str>>,
}

impl Message {
    /// A message with this body to this destination: text that the [`Sender`](super::Sender) understands,
    /// such as the URL of a queue, the ARN of a topic or the name of an event bus.
    #[must_use]
    pub fn new(destination: impl Into<Arc<str>>, body: impl Into<Arc<str>>) -> Self {
        let (destination, body) = (destination.into(), body.into());
        Self { destination, body, attributes: Vec::new(), group: None }
    }

    /// Attaches a text to the message, beside its body. An attribute of the same name is replaced. Empty texts and the name
    /// [`idempotency-key`](OutgoingMessage::ID_ATTRIBUTE) are refused when the message is published.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.attributes.retain(|(known, _)| *known != name);
        self.attributes.push((name, value));
        self
    }

    /// Puts the message into an order group of its destination: the `MessageGroupId` of a FIFO queue or topic, which [has up to
    /// 128 letters, digits and signs](https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html)
    /// and no spaces: any other is refused when the message is published. Hash values that may not fit. Default: none, for
    /// destinations that keep no order.
    #[must_use]
    pub fn with_group(mut self, group: impl Into<Arc<str>>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Where it goes.
    #[must_use]
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// Its body.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The texts that are attached to it, by name.
    pub fn attributes(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.attributes.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The attribute of this name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Its order group.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.attributes().map(|(name, _)| name).collect();
        f.debug_struct("Message")
            .field("bytes", &self.body.len())
            .field("attributes", &names)
            .field("has_group", &self.group.is_some())
            .finish_non_exhaustive()
    }
}

/// Has to change if ids are made in another way: consumers then take messages that are sent again for new ones.
const IDS: &[u8] = b"lambda-idempotency message id 1";

/// A message of an outbox, with the id that it has each time that it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutgoingMessage {
    id: Arc<str>,
    message: Message,
}

impl OutgoingMessage {
    /// The attribute by which a [`Sender`](super::Sender) attaches the [`id`](Self::id) to a message, where its
    /// service has attributes: `idempotency-key`. A consumer can make its own key of it.
    pub const ID_ATTRIBUTE: &'static str = "idempotency-key";

    pub(super) fn new(application: &str, key: &Key, index: usize, message: Message) -> Self {
        let mut digest = Digest::new(IDS);
        digest.part(application.as_bytes());
        digest.part(key.as_str().as_bytes());
        digest.part(index.to_string().as_bytes());
        Self { id: digest.hex().into(), message }
    }

    /// The id: 64 hexadecimal digits, which say nothing of the payload. It follows from the application, the
    /// key of the record whose handler published the message, and the position of the message among those of the
    /// handler. It is therefore the same whenever the message is sent, also if the handler was run again before.
    /// Messages of other records have other ids; those of the same key, processed anew after its retention, have
    /// the same. It is short enough for the `MessageDeduplicationId` of a FIFO queue.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The message.
    #[must_use]
    pub const fn message(&self) -> &Message {
        &self.message
    }
}

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
    use std::collections::HashSet;

    use super::*;
    use crate::{clock::Timestamp, record::Status};

    #[test]
    fn debug_shows_no_content_of_a_message() {
        let message = Message::new("s3cr3t-queue", "s3cr3t").with_attribute("tenant", "s3cr3t");
        let shown = format!("{:?}", message.with_group("s3cr3t"));
        assert!(!shown.contains("s3cr3t") && shown.contains("tenant"), "{shown}");
    }

    #[test]
    fn an_attribute_that_is_set_again_is_replaced() {
        let message = Message::new("q", "").with_attribute("a", "1").with_attribute("a", "2");
        assert_eq!(message.attributes().collect::<Vec<_>>(), [("a", "2")]);
        assert_eq!((message.attribute("a"), message.attribute("b")), (Some("2"), None));
    }

    fn id(application: &str, key: &str, index: usize) -> Arc<str> {
        OutgoingMessage::new(application, &Key::from_text(key), index, Message::new("q", "1")).id
    }

    #[test]
    fn an_id_is_the_same_each_time_and_differs_by_key_position_and_application() {
        let ids =
            [id("", "op#a", 0), id("", "op#a", 1), id("", "op#b", 0), id("billing", "op#a", 0)];
        assert_eq!(ids[0], id("", "op#a", 0));
        assert!(ids.iter().all(|id| id.len() == 64));
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }

    #[test]
    fn the_ids_of_a_stored_outbox_do_not_change_with_versions() {
        let known = "8ea3d521829e6d9424e9f9f365513c007c77279782ee9553a6fc7e55ba70f186";
        assert_eq!(&*id("", "place-order#k", 0), known);
    }

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
