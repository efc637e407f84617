//! Sends the messages of an outbox to SQS, SNS and EventBridge: see the README beside this crate.

mod batches;
mod event_bridge;
mod senders;
mod sns;
mod sqs;

pub use event_bridge::EventBridgeSender;
pub use senders::Senders;
pub use sns::SnsSender;
pub use sqs::SqsSender;
