//! The contract of what sends messages, and the sender of tests.

use std::{
    error::Error,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::message::OutgoingMessage;
use crate::clock::{BoxFuture, Timestamp};

/// Sends messages to a service. One sender serves all operations, and is told by each message's
/// [destination](super::Message::destination) where it goes.
///
/// A call has messages to one destination, 100 at most ([`MAX_MESSAGES`](super::MAX_MESSAGES)), often of several
/// records. Calls for other destinations and for other records are made at the same time.
///
/// A sender keeps no order: its caller does. A call has one message of those that a handler published, or several in a row
/// that have no group. So the messages of a call can be sent in any order, at the same time, or several in one request.
///
/// A sender attaches the [id](OutgoingMessage::id) to each message: as the deduplication id where the service has
/// one, and as an attribute ([`OutgoingMessage::ID_ATTRIBUTE`]) where a consumer can read it. It sets that attribute last,
/// because an earlier version may have stored a message that has one of that name.
///
/// There are no default methods. [`MemorySender`] is the shortest example.
pub trait Sender: Send + Sync + 'static {
    /// Sends the messages, and returns one answer for each, in the order of `messages`.
    ///
    /// `Ok` says that the service has stored the message. After an error the message may have been sent or not;
    /// it is sent again later, with the same id. The sender may repeat a request until `call_deadline`; an answer
    /// that comes later is not waited for.
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>>;
}

impl<S: Sender + ?Sized> Sender for Arc<S> {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        (**self).send(messages, call_deadline)
    }
}

/// How many of these messages, the ones that a handler published and that are not sent yet, can be in the next call
/// of a [`Sender`]: the first one, and those behind it that go to the same destination, if none of them has a group.
/// Such a destination keeps no order.
#[must_use]
pub fn run_length(messages: &[OutgoingMessage]) -> usize {
    let Some(first) = messages.first().map(OutgoingMessage::message) else { return 0 };
    if first.group().is_some() {
        return 1;
    }
    let like_first = |message: &&OutgoingMessage| {
        let message = message.message();
        message.group().is_none() && message.destination() == first.destination()
    };
    messages.iter().take_while(like_first).count()
}

/// Why a message could not be sent, or is not known to be.
///
/// ```
/// use lambda_idempotency_core::outbox::SendError;
///
/// let error = SendError::new("SQS refused it with AccessDenied; allow the function `sqs:SendMessage`");
/// assert_eq!(
///     error.to_string(),
///     "a message was not sent: SQS refused it with AccessDenied; allow the function `sqs:SendMessage`"
/// );
/// ```
#[derive(Clone, Debug)]
pub struct SendError {
    context: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl SendError {
    /// An error. `context` says what failed and what to do; it must not hold a body or another text of the
    /// application.
    #[must_use]
    pub fn new(context: impl Into<Arc<str>>) -> Self {
        Self { context: context.into(), source: None }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a message was not sent: {}", self.context)
    }
}

impl Error for SendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|e| &**e as &(dyn Error + 'static))
    }
}

/// Keeps the messages in this process, for tests of handlers and for programs on a developer's machine.
///
/// ```
/// use lambda_idempotency_core::outbox::MemorySender;
/// let sender = MemorySender::new();
/// assert!(sender.sent().is_empty());
/// ```
#[derive(Debug, Default)]
pub struct MemorySender {
    sent: Mutex<Vec<OutgoingMessage>>,
}

impl MemorySender {
    /// Without messages.
    #[must_use]
    pub const fn new() -> Self {
        Self { sent: Mutex::new(Vec::new()) }
    }

    /// All messages that were sent, in this order. A message that was sent again is there again.
    #[must_use]
    pub fn sent(&self) -> Vec<OutgoingMessage> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OutgoingMessage>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sender for MemorySender {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            self.lock().extend_from_slice(messages);
            messages.iter().map(|_| Ok(())).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Timestamp,
        key::Key,
        outbox::messages,
        record::{IdempotencyRecord, Status},
    };

    fn run(outbox: &str) -> usize {
        let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
        record.outbox = Some(outbox.into());
        run_length(&messages(&Key::from_text("op#a"), &record).unwrap())
    }

    #[test]
    fn messages_share_a_call_if_their_destination_keeps_no_order() {
        assert_eq!(run("[]"), 0);
        assert_eq!(
            run(r#"[{"to":"q","body":"1"},{"to":"q","body":"2"},{"to":"r","body":"3"}]"#),
            2
        );
        let grouped = r#"{"to":"q","body":"2","group":"g"}"#;
        assert_eq!(run(&format!("[{grouped},{grouped}]")), 1);
        assert_eq!(run(&format!(r#"[{{"to":"q","body":"1"}},{grouped}]"#)), 1);
    }
}
