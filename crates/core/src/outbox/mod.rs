//! Messages that are stored with a completion, and sent after it.
//!
//! A handler that changes its table and then sends a message can die in between: the message is then lost,
//! or, if it sends first, the message tells of a change that was never made. A handler with an *outbox*
//! does not send. Its call collects [`Message`]s in a [`Publisher`], and the completion of the key stores
//! them in the same write (with the handler's [effects](crate::effects), in the same transaction). After
//! that they are sent by a [`Sender`], and the record is written once more, without them. Only then is the
//! delivery acknowledged.
//!
//! * A worker that dies before the completion has sent nothing. The next delivery runs the handler again.
//! * A worker that dies after it leaves the messages in the record. The next delivery, or a [`Relay`],
//!   sends them, and does not run the handler again.
//! * Messages may therefore be sent more than once, but each time with the same
//!   [id](OutgoingMessage::id), so that a FIFO queue or a consumer with an idempotency key drops the copies.
//!
//! | | |
//! |---|---|
//! | [`Message`] | what a handler publishes |
//! | [`Publisher`] | collects the messages of one call |
//! | [`OutgoingMessage`] | a message with its id |
//! | [`Sender`] | sends messages; implemented for each service |
//! | [`Relay`] | sends what is left in a store, where no delivery comes again |
//! | [`calling`] | calls of a sender that may panic or hang, for the engine |
//! | [`MemorySender`] | keeps messages in memory, for tests |

pub mod calling;
mod message;
mod publisher;
mod relay;
mod sender;

pub use self::{
    message::{Message, OutboxError, OutgoingMessage, messages},
    publisher::{MAX_ATTRIBUTES, MAX_BYTES, MAX_MESSAGES, PublishError, Publisher},
    relay::{Relay, Relayed},
    sender::{MemorySender, SendError, Sender, run_length},
};
