//! The arguments of `event`.

use clap::{Args, ValueEnum};

/// Make an event of a payload, in the envelope in which Lambda hands it to a function
///
/// Prints the event. Ids are new each time, so two events are two messages; `--id` makes the same message again.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// What sends the event
    #[arg(value_enum)]
    pub(crate) source: Source,

    /// The payload: the text itself, `@FILE`, or `-` for standard input; may be repeated, for more records
    ///
    /// It is the body of a message, the message of a notification, the detail of an event, the data of a record, the new
    /// image of an item, the body of a request, or the input of a schedule. For S3 it is the key of the object, URL-encoded as S3 sends it. Without
    /// it, the event has a sample order.
    #[arg(long, value_name = "PAYLOAD", allow_hyphen_values = true)]
    pub(crate) body: Vec<String>,

    /// The id of the first record [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  An SQS event with one message
    lambda-idempotency event sqs --body '{\"orderId\":\"o-1\"}' > event.json

  Three messages in one batch, two of them the same work; which keys do they get?
    lambda-idempotency event sqs --body '{\"orderId\":1}' --body '{\"orderId\":1}' --body '{\"orderId\":2}' > event.json
    lambda-idempotency keys event.json --operation place --key orderId

  An event of EventBridge whose detail is in a file, delivered to your function
    lambda-idempotency event eventbridge --body @order.json > event.json
    lambda-idempotency invoke event.json";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Source {
    /// Messages of a queue
    Sqs,
    /// Messages of a FIFO queue, all in one message group
    SqsFifo,
    /// Notifications of a topic
    Sns,
    /// A notification of a topic in messages of a queue
    SnsInSqs,
    /// An event of a bus; several payloads make the list that a custom bus sends
    #[value(name = "eventbridge")]
    EventBridge,
    /// A schedule's invocation, with the payload as its input
    Scheduler,
    /// Records of a Kinesis stream
    Kinesis,
    /// Inserted items of a table's stream
    #[value(name = "dynamodb")]
    DynamoDb,
    /// Inserted documents of a cluster's change stream
    #[value(name = "documentdb")]
    DocumentDb,
    /// Records of a partition of a topic
    Kafka,
    /// Objects that were stored, by their keys
    S3,
    /// Text messages of an ActiveMQ queue
    #[value(name = "activemq")]
    ActiveMq,
    /// Messages of a RabbitMQ queue
    #[value(name = "rabbitmq")]
    RabbitMq,
    /// Messages of a queue through a pipe
    Pipe,
    /// A POST request to a function URL, with an Idempotency-Key
    Http,
    /// The payload alone: a direct invocation
    Direct,
}
