//! A sender of messages that can be out of order.

use std::sync::atomic::{AtomicBool, Ordering};

use lambda_idempotency::{
    clock::Timestamp,
    outbox::{MemorySender, OutgoingMessage, SendError, Sender},
    store::BoxFuture,
};

/// Keeps messages, unless it is out of order.
#[derive(Default)]
pub(crate) struct Wire {
    kept: MemorySender,
    is_down: AtomicBool,
}

impl Sender for Wire {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        if !self.is_down.load(Ordering::SeqCst) {
            return self.kept.send(messages, call_deadline);
        }
        let cut = || Err(SendError::new("the test has cut the wire"));
        Box::pin(async move { messages.iter().map(|_| cut()).collect() })
    }
}

impl Wire {
    pub(crate) fn down() -> Self {
        Self { is_down: true.into(), ..Self::default() }
    }

    pub(crate) fn cut(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// How many messages it has.
    pub(crate) fn sent(&self) -> usize {
        self.kept.sent().len()
    }
}
