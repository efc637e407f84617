//! A sender that keeps messages in memory, for tests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{
    message::OutgoingMessage,
    sender::{SendError, Sender},
};
use crate::clock::{BoxFuture, Timestamp};

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
