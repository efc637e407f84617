//! A message, and a message with its id.

use std::{fmt, sync::Arc};

use crate::key::{Digest, Key};

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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

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
}
