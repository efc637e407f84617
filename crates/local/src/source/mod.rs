//! The sources: what AWS does between an event and a function.
//!
//! [`parse_event`] recognises an event by its shape; [`Queue`] is SQS with its poller, a state machine without a clock or
//! a network of its own; an SNS notification or an EventBridge event is an asynchronous invocation with retries.

mod asynchronous;
mod event;
mod report;
mod sqs;
mod verdict;

pub use asynchronous::AsyncConfig;
pub use event::{Event, parse_event};
pub use report::{DeadLetter, DeliveryReport, Fate, InvocationReport, RecordReport};
pub use sqs::{Batch, Queue, SqsConfig};
pub use verdict::BatchVerdict;

pub(crate) use event::record_ids;
pub(crate) use report::report;

/// Where a record comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A queue: redelivers what was not acknowledged.
    Sqs,
    /// A topic: an asynchronous invocation.
    Sns,
    /// An event bus: an asynchronous invocation.
    EventBridge,
    /// Somebody who calls the function and waits for the answer. Nobody retries.
    Direct,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Sqs => "sqs",
            Self::Sns => "sns",
            Self::EventBridge => "eventbridge",
            Self::Direct => "direct",
        })
    }
}
