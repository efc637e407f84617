//! Collects the messages of one call of a handler.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::message::{self, Message, OutgoingMessage};
use crate::record::Json;

/// How many messages one call can publish.
pub const MAX_MESSAGES: usize = 100;

/// How many bytes the messages of one call can have as they are stored: as JSON text, in which a quotation mark
/// of a body takes two bytes. The rest of the 400 KB of a DynamoDB item is for the result.
pub const MAX_BYTES: usize = 256 * 1024;

/// How many attributes a message can have: SQS takes ten, and one is the message's
/// [id](OutgoingMessage::ID_ATTRIBUTE).
pub const MAX_ATTRIBUTES: usize = 9;

/// Collects the messages of one call of a handler, until the handler returns.
///
/// ```
/// use lambda_idempotency_core::outbox::{Message, PublishError, Publisher};
///
/// let publisher = Publisher::new();
/// publisher.publish(&Message::new("parcels", "{}"))?;
/// assert_eq!(publisher.close().as_deref(), Some(r#"[{"body":"{}","to":"parcels"}]"#));
/// let late = publisher.publish(&Message::new("parcels", "{}"));
/// assert_eq!(late, Err(PublishError::HandlerEnded));
/// # Ok::<(), PublishError>(())
/// ```
pub struct Publisher {
    /// `None` once it is closed.
    open: Mutex<Option<Open>>,
}

#[derive(Default)]
struct Open {
    messages: Vec<Message>,
    /// The messages as JSON, each behind a comma.
    text: String,
}

impl Default for Publisher {
    fn default() -> Self {
        Self::new()
    }
}

impl Publisher {
    /// Without messages.
    #[must_use]
    pub const fn new() -> Self {
        let open = Open { messages: Vec::new(), text: String::new() };
        Self { open: Mutex::new(Some(open)) }
    }

    /// Adds a message.
    ///
    /// # Errors
    /// The message has no destination or no body, an empty group, an attribute that is empty or has a reserved name, too
    /// many attributes, or a text that SQS and SNS refuse; there are too many messages or bytes; or the handler has ended. The message is then not published.
    pub fn publish(&self, message: &Message) -> Result<(), PublishError> {
        if is_incomplete(message) {
            return Err(PublishError::Incomplete);
        }
        if message.attributes().any(|(name, _)| is_reserved(name)) {
            return Err(PublishError::ReservedAttribute);
        }
        if message.attributes().len() > MAX_ATTRIBUTES {
            return Err(PublishError::TooManyAttributes);
        }
        if !message.attributes().all(|(name, _)| is_name(name)) {
            return Err(PublishError::UnfitAttribute);
        }
        if !message.group().is_none_or(is_group) {
            return Err(PublishError::UnfitGroup);
        }
        let mut texts = message.attributes().map(|(_, value)| value).chain([message.body()]);
        if !texts.all(is_text) {
            return Err(PublishError::UnfitText);
        }
        let text = message::text(message);
        match &mut *self.lock() {
            None => Err(PublishError::HandlerEnded),
            Some(open) if open.messages.len() >= MAX_MESSAGES => Err(PublishError::TooMany),
            // The two brackets, of which one takes the place of the first comma.
            Some(open) if open.text.len() + text.len() + 2 > MAX_BYTES => {
                Err(PublishError::TooLarge)
            }
            Some(open) => {
                open.text.push(',');
                open.text.push_str(&text);
                open.messages.push(message.clone());
                Ok(())
            }
        }
    }

    /// The messages that were published so far; none once it is closed.
    #[must_use]
    pub fn published(&self) -> Vec<Message> {
        self.lock().as_ref().map_or_else(Vec::new, |open| open.messages.clone())
    }

    /// Ends collecting; returns the text to store, if anything was published.
    pub fn close(&self) -> Option<Json> {
        let open = self.lock().take()?;
        let messages = open.text.strip_prefix(',')?;
        Some(format!("[{messages}]").into())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a text of the message is empty. SQS would refuse it at each attempt, when the completion is already stored.
///
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_MessageAttributeValue.html>
fn is_incomplete(message: &Message) -> bool {
    let texts = [Some(message.destination()), Some(message.body()), message.group()];
    let attributes = message.attributes().flat_map(|(name, value)| [name, value]);
    texts.into_iter().flatten().chain(attributes).any(str::is_empty)
}

/// Whether SQS and SNS take an attribute of this name.
///
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html>
fn is_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    name.len() <= 256
        && name.bytes().all(is_fit)
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !name.contains("..")
}

/// Whether FIFO queues and topics take this group.
///
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
fn is_group(group: &str) -> bool {
    group.len() <= 128 && group.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether SQS takes this text.
///
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
fn is_text(text: &str) -> bool {
    let is_unfit = |c: char| {
        (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    !text.contains(is_unfit)
}

/// Whether a sender sets the attribute of this name, or SQS and SNS refuse it. They compare names by case, their own
/// prefixes not.
fn is_reserved(name: &str) -> bool {
    let begins_with =
        |prefix: &str| name.get(..prefix.len()).is_some_and(|own| own.eq_ignore_ascii_case(prefix));
    name == OutgoingMessage::ID_ATTRIBUTE || begins_with("AWS.") || begins_with("Amazon.")
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}

/// Why a message could not be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// Nothing would send the message.
    #[error("there is no sender for messages: set one with `Idempotency::with_sender`")]
    NoSender,
    /// There is no completion to store the message with.
    #[error(
        "this call runs without a claim, so the message cannot be stored with a completion: do not combine \
         `publish` with policies that run handlers unprotected, nor with optimistic mode"
    )]
    Unprotected,
    /// The operation is a mutex, which keeps no completion.
    #[error(
        "the operation has `.mode(Mode::Mutex)`, which keeps no completion to store the message with: send it in the \
         handler, or use an operation that is not a mutex"
    )]
    Mutex,
    /// The handler has returned or was stopped.
    #[error(
        "the handler of this call has ended, so the message is not sent: publish it before the handler returns"
    )]
    HandlerEnded,
    /// It was published in the work of a step. A later attempt gets the step's result and does not call its
    /// work, so it would be completed without the message.
    #[error(
        "the message is published in the work of a step, which later attempts do not call, so it would be missing \
         there: publish it in the handler, after the step"
    )]
    InStep,
    /// The call has published [`MAX_MESSAGES`] messages.
    #[error(
        "a call can publish {MAX_MESSAGES} messages: put several things into one message, or divide the work"
    )]
    TooMany,
    /// The messages of the call would have more than [`MAX_BYTES`] bytes.
    #[error(
        "the messages of a call can have {MAX_BYTES} bytes together, as JSON: store what is large elsewhere, \
         for example in S3, and publish where it is"
    )]
    TooLarge,
    /// The message has no destination or body, or has an empty group or an attribute with an empty name or value. SQS and SNS
    /// would refuse it.
    #[error(
        "a message needs a destination and a body, and neither its group nor the name or value of an attribute may be empty: \
         leave out what has no value"
    )]
    Incomplete,
    /// An attribute of the message is the one by which a sender attaches its id
    /// ([`OutgoingMessage::ID_ATTRIBUTE`]), or its name begins with `AWS.` or `Amazon.`.
    #[error(
        "an attribute of the message has a reserved name: `{id}` is the message's own id, which the sender attaches, and \
         SQS and SNS refuse names that begin with `AWS.` or `Amazon.`; leave such attributes out when you pass those of \
         another message on",
        id = OutgoingMessage::ID_ATTRIBUTE
    )]
    ReservedAttribute,
    /// The message has more than [`MAX_ATTRIBUTES`] attributes.
    #[error(
        "a message can have {MAX_ATTRIBUTES} attributes, because SQS takes ten and one is the message's id: put the \
         others into the body"
    )]
    TooManyAttributes,
    /// The name of an attribute is one that SQS and SNS refuse.
    #[error(
        "the name of an attribute may have up to 256 ASCII letters, digits, `_`, `-` and `.`, and no `.` at an end or after \
         another: SQS and SNS would refuse the message at each attempt"
    )]
    UnfitAttribute,
    /// The group is one that FIFO queues and topics refuse.
    #[error(
        "the group of a message may have up to 128 ASCII letters, digits and signs, and no spaces: hash what may not fit"
    )]
    UnfitGroup,
    /// The body, or the value of an attribute, has a character that SQS refuses.
    #[error(
        "the body of a message and the values of its attributes may have no control characters but tabs and line breaks, and \
         neither U+FFFE nor U+FFFF: escape them, as JSON does, or encode the text"
    )]
    UnfitText,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_messages_there_is_nothing_to_store() {
        assert_eq!(Publisher::new().close(), None);
    }

    #[test]
    fn what_is_refused_is_not_published() {
        let publisher = Publisher::new();
        let message = |body: usize| Message::new("q", "x".repeat(body));
        let around = message::text(&message(0)).len() + 2;
        assert_eq!(
            publisher.publish(&message(MAX_BYTES - around + 1)),
            Err(PublishError::TooLarge)
        );
        let complete = Message::new("q", "1");
        for incomplete in [
            Message::new("", "1"),
            Message::new("q", ""),
            complete.clone().with_group(""),
            complete.clone().with_attribute("tenant", ""),
            complete.with_attribute("", "acme"),
        ] {
            assert_eq!(publisher.publish(&incomplete), Err(PublishError::Incomplete));
        }
        assert_eq!(publisher.published(), []);
        publisher.publish(&message(MAX_BYTES - around)).unwrap();
        assert_eq!(publisher.publish(&message(1)), Err(PublishError::TooLarge));
        assert_eq!(publisher.published().len(), 1);
        assert_eq!(publisher.close().unwrap().len(), MAX_BYTES);
    }

    /// A handler may pass the attributes of its own message on.
    #[test]
    fn an_attribute_in_place_of_the_id_is_refused_when_it_is_published() {
        let publisher = Publisher::new();
        let message = |name: &str| Message::new("q", "1").with_attribute(name, "its own");
        for reserved in [OutgoingMessage::ID_ATTRIBUTE, "AWS.TraceHeader", "aws.x", "amazon.x"] {
            let refused = publisher.publish(&message(reserved));
            assert_eq!(refused, Err(PublishError::ReservedAttribute), "{reserved}");
        }
        for other in ["Idempotency-Key", "aws", "amazonian"] {
            assert_eq!(publisher.publish(&message(other)), Ok(()), "{other}");
        }
        assert_eq!(publisher.published().len(), 3);
    }

    /// They would refuse it at each attempt, when the completion is already stored.
    #[test]
    fn what_sqs_and_sns_refuse_is_refused_when_it_is_published() {
        let publisher = Publisher::new();
        let plain = || Message::new("q", "1");
        for name in ["\u{e9}", "a b", ".a", "a.", "a..b", "a/b", &"a".repeat(257)] {
            let refused = publisher.publish(&plain().with_attribute(name, "1"));
            assert_eq!(refused, Err(PublishError::UnfitAttribute), "{name}");
        }
        for group in ["a b", "\u{e9}", &"a".repeat(129)] {
            let refused = publisher.publish(&plain().with_group(group));
            assert_eq!(refused, Err(PublishError::UnfitGroup), "{group}");
        }
        for text in ["\0", "a\u{1b}", "\u{fffe}", "\u{ffff}"] {
            let body = publisher.publish(&Message::new("q", text));
            let value = publisher.publish(&plain().with_attribute("a", text));
            assert_eq!((body, value), (Err(PublishError::UnfitText), Err(PublishError::UnfitText)));
        }
        let (name, group) = ("a.b-C_9", "(p-1)");
        let fit =
            Message::new("q", "{\"a\":\t1}\r\n\u{fffd}\u{10ffff}").with_attribute(name, "é ü");
        assert_eq!(publisher.publish(&fit.with_group(group)), Ok(()));
    }

    #[test]
    fn the_id_is_one_of_ten_attributes() {
        let with = |count: usize| {
            let message = Message::new("q", "1");
            (0..count).fold(message, |message, n| message.with_attribute(n.to_string(), "1"))
        };
        let publisher = Publisher::new();
        assert_eq!(publisher.publish(&with(MAX_ATTRIBUTES)), Ok(()));
        let refused = publisher.publish(&with(MAX_ATTRIBUTES + 1));
        assert_eq!(refused, Err(PublishError::TooManyAttributes));
    }

    #[test]
    fn a_call_publishes_a_hundred_messages_at_most() {
        let publisher = Publisher::new();
        for _ in 0..MAX_MESSAGES {
            publisher.publish(&Message::new("q", "1")).unwrap();
        }
        assert_eq!(publisher.publish(&Message::new("q", "1")), Err(PublishError::TooMany));
    }
}
