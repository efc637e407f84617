//! Messages that are stored with a completion and sent after it: the outbox.
//!
//! A handler publishes [`Message`]s with [`Call::publish`](crate::Call::publish). They are stored in the write that
//! completes the key, then sent by the [`Sender`] of [`Idempotency::with_sender`](crate::Idempotency::with_sender),
//! and only then is the delivery acknowledged. A worker that dies in between leaves them in the store, and the next
//! delivery sends them without calling the handler again. Each message has the same id whenever it is sent, so that
//! its consumer can drop copies.
//!
//! ```
//! use std::sync::Arc;
//! use lambda_idempotency::{
//!     Call, Idempotency, MemoryStore, Operation, RunContext,
//!     outbox::{MemorySender, Message, PublishError},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sender = Arc::new(MemorySender::new());
//! let idempotency = Idempotency::new(MemoryStore::new()).with_sender(Arc::clone(&sender));
//! let operation = Operation::new("place-order").key("order");
//! let order = serde_json::json!({ "order": "o-1" });
//!
//! let place = |call: Call| async move {
//!     call.publish(Message::new("parcels", r#"{"order":"o-1"}"#))?;
//!     Ok::<_, PublishError>("placed".to_owned())
//! };
//! for _ in 0..2 {
//!     idempotency.run(&operation, &order, &RunContext::without_deadline(), place).await?;
//! }
//! assert_eq!(sender.sent().len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! The guide says [when an outbox is the right choice](crate::guide::outbox), what a consumer does with the ids, and
//! when a [`Relay`] is needed.

pub use lambda_idempotency_core::outbox::{
    MAX_ATTRIBUTES, MAX_BYTES, MAX_MESSAGES, MemorySender, Message, OutboxError, OutgoingMessage,
    PublishError, Publisher, Relay, Relayed, SendError, Sender, messages,
};
