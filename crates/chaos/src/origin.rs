//! The services that deliver the messages of a user's function.

use crate::named::named;

named! {
    "a source";
    /// What delivers the messages of a run, by the names of `lambda-idempotency event`.
    #[derive(Default)]
    pub enum Origin {
        /// A standard queue.
        #[default]
        Sqs = "sqs",
        /// A FIFO queue, with several message groups.
        SqsFifo = "sqs-fifo",
        /// A topic: an asynchronous invocation for each message.
        Sns = "sns",
        /// An event bus: an asynchronous invocation for each event.
        EventBridge = "eventbridge",
        /// A stream with several shards.
        Kinesis = "kinesis",
        /// The stream of a table, with several shards.
        DynamoDb = "dynamodb",
    }
}

impl Origin {
    /// Whether it delivers the messages of a group in order.
    #[must_use]
    pub const fn keeps_order(self) -> bool {
        matches!(self, Self::SqsFifo | Self::Kinesis | Self::DynamoDb)
    }
}
