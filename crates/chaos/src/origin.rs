//! The services that deliver the messages of a user's function.

use std::fmt;

use serde::{Serialize, Serializer};

/// What delivers the messages of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// A standard queue.
    #[default]
    Sqs,
    /// A FIFO queue, with several message groups.
    SqsFifo,
    /// A topic: an asynchronous invocation for each message.
    Sns,
    /// An event bus: an asynchronous invocation for each event.
    EventBridge,
    /// A stream with several shards.
    Kinesis,
    /// The stream of a table, with several shards.
    DynamoDb,
}

impl Origin {
    /// All of them.
    pub const ALL: &'static [Self] =
        &[Self::Sqs, Self::SqsFifo, Self::Sns, Self::EventBridge, Self::Kinesis, Self::DynamoDb];

    /// Its name: `sqs-fifo`, as `lambda-idempotency event` has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sqs => "sqs",
            Self::SqsFifo => "sqs-fifo",
            Self::Sns => "sns",
            Self::EventBridge => "eventbridge",
            Self::Kinesis => "kinesis",
            Self::DynamoDb => "dynamodb",
        }
    }

    /// Whether it delivers the messages of a group in order.
    #[must_use]
    pub const fn keeps_order(self) -> bool {
        matches!(self, Self::SqsFifo | Self::Kinesis | Self::DynamoDb)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
