//! Sends the messages of an outbox to SQS, SNS and EventBridge: see the README beside this crate.

mod batches;
#[cfg(feature = "eventbridge")]
mod event_bridge;
#[cfg(all(feature = "sqs", feature = "sns", feature = "eventbridge"))]
mod senders;
#[cfg(feature = "sns")]
mod sns;
#[cfg(feature = "sqs")]
mod sqs;

#[cfg(feature = "eventbridge")]
pub use event_bridge::EventBridgeSender;
#[cfg(all(feature = "sqs", feature = "sns", feature = "eventbridge"))]
pub use senders::Senders;
#[cfg(feature = "sns")]
pub use sns::SnsSender;
#[cfg(feature = "sqs")]
pub use sqs::SqsSender;
