//! The messages that a call publishes, to be sent after its completion.

use std::sync::Arc;

use lambda_idempotency_core::outbox::{Message, PublishError, Publisher};

use super::Call;

/// # Messages
impl Call {
    /// Publishes a message: it is stored with the completion of the key, in the same write, and sent after that,
    /// before the delivery is acknowledged. If the handler fails, nothing is sent.
    ///
    /// A worker that dies between the two leaves the message in the store, and the next delivery sends it without
    /// calling the handler again. A message may be sent more than once, always with the same
    /// [id](lambda_idempotency_core::outbox::OutgoingMessage::id). Messages of one call are sent in the order in
    /// which they were published: one that cannot be sent holds up those behind it.
    ///
    /// ```
    /// use lambda_idempotency_core::outbox::{Message, PublishError};
    /// use lambda_idempotency_engine::call::Call;
    ///
    /// let (call, published) = Call::test("o-1").with_publisher();
    /// call.publish(Message::new("parcels", r#"{"order":"o-1"}"#))?;
    /// assert_eq!(published.published()[0].destination(), "parcels");
    ///
    /// let plain = Call::test("o-1").publish(Message::new("parcels", "{}"));
    /// assert_eq!(plain, Err(PublishError::NoSender));
    /// # Ok::<(), PublishError>(())
    /// ```
    ///
    /// # Errors
    /// There is no sender, the call runs without a claim, the message is not complete, there are too many messages
    /// or bytes, or the handler has ended; or this is called in the work of a [step](Self::step), which later
    /// attempts do not call.
    // By value, as a sender's methods take messages: few callers need theirs afterwards.
    #[expect(clippy::needless_pass_by_value, reason = "a message that is published is given away")]
    pub fn publish(&self, message: Message) -> Result<(), PublishError> {
        self.publishes?;
        if self.shared.are_steps_working() {
            return Err(PublishError::InStep);
        }
        self.shared.publisher().publish(&message)
    }

    /// As if there were a sender. What the handler publishes is in the publisher that is returned.
    #[must_use]
    pub fn with_publisher(self) -> (Self, Arc<Publisher>) {
        let publisher = self.shared.publisher();
        (self.publishing(Ok(())), publisher)
    }

    pub(crate) fn publishing(mut self, publishes: Result<(), PublishError>) -> Self {
        self.publishes = publishes;
        self
    }
}
