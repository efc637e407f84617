//! Delivers a sample event of each source twice: the second delivery calls no handler.
//!
//! ```console
//! $ cargo run -p lambda-idempotency --example sources            # all of them
//! $ cargo run -p lambda-idempotency --example sources kafka      # one
//! ```

use lambda_idempotency::{
    Call, ConfigError, Failure, Function, Idempotency, MemoryStore, Operation,
    source::{
        ActiveMq, DocumentDb, DynamoDbStream, Envelope, EventBridge, Invoke, Kafka, Kinesis, Pipe,
        RabbitMq, S3, Scheduler, Sns, Sqs,
    },
    testing,
};
use serde_json::Value;

type Example = (&'static str, &'static str, fn(&Idempotency) -> Result<Function, ConfigError>);

/// A source, a sample event of it, and a function that handles it.
const EXAMPLES: &[Example] = &[
    ("sqs", include_str!("../tests/events/sqsEvent.json"), |idempotency| {
        idempotency.on(Sqs::new(), &Operation::new("place-order"), show)
    }),
    ("sqs-fifo", include_str!("../tests/events/own/sqsFifoGroups.json"), |idempotency| {
        idempotency.on(Sqs::new(), &Operation::new("place-order").key("orderId"), show)
    }),
    ("sns-in-sqs", include_str!("../tests/events/snsSqsEvent.json"), |idempotency| {
        idempotency.on(Sqs::new().envelope(Envelope::Sns), &Operation::new("greet"), show)
    }),
    ("s3-in-sqs", include_str!("../tests/events/s3SqsEvent.json"), |idempotency| {
        idempotency.on(Sqs::new().envelope(Envelope::S3), &Operation::new("index"), show)
    }),
    ("sns", include_str!("../tests/events/snsEvent.json"), |idempotency| {
        idempotency.on(Sns::new(), &Operation::new("greet"), show)
    }),
    ("event-bridge", include_str!("../tests/events/eventBridgeEvent.json"), |idempotency| {
        idempotency.on(EventBridge::new(), &Operation::new("watch"), show)
    }),
    ("custom-bus", include_str!("../tests/events/own/customBus.json"), |idempotency| {
        idempotency.on(EventBridge::new(), &Operation::new("place-order").key("orderId"), show)
    }),
    ("scheduler", include_str!("../tests/events/own/scheduler.json"), |idempotency| {
        idempotency.on(Scheduler::new().schedule("nightly"), &Operation::new("report"), show)
    }),
    ("pipe", include_str!("../tests/events/own/pipeKinesis.json"), |idempotency| {
        idempotency.on(Pipe::of(Sqs::new()), &Operation::new("index"), show)
    }),
    ("kinesis", include_str!("../tests/events/kinesisStreamEvent.json"), |idempotency| {
        idempotency.on(Kinesis::new(), &Operation::new("index"), show)
    }),
    ("kinesis-window", include_str!("../tests/events/own/kinesisWindow.json"), |idempotency| {
        idempotency.on(Kinesis::new(), &Operation::new("index"), show)
    }),
    ("dynamodb-stream", include_str!("../tests/events/dynamoStreamEvent.json"), |idempotency| {
        idempotency.on(DynamoDbStream::new(), &Operation::new("index"), show)
    }),
    ("document-db", include_str!("../tests/events/own/documentDb.json"), |idempotency| {
        idempotency.on(DocumentDb::new(), &Operation::new("index"), show)
    }),
    ("kafka", include_str!("../tests/events/own/kafkaPartitions.json"), |idempotency| {
        idempotency.on(Kafka::new(), &Operation::new("index"), show)
    }),
    ("s3", include_str!("../tests/events/s3Event.json"), |idempotency| {
        idempotency.on(S3::new(), &Operation::new("index"), show)
    }),
    ("active-mq", include_str!("../tests/events/activeMQEvent.json"), |idempotency| {
        // The sample messages share an id, and one contains bytes: the key is from the whole record.
        let whole = ActiveMq::new().whole_record();
        let index = Operation::new("index").key("[destination.physicalName, messageID, data]");
        idempotency.on(whole, &index, show)
    }),
    ("rabbit-mq", include_str!("../tests/events/rabbitMQEvent.json"), |idempotency| {
        // The producer sets no message id, so the operation needs a key.
        idempotency.on(RabbitMq::new(), &Operation::new("index").key("data"), show)
    }),
    ("invoke", r#"{"paymentId":"p-1","amount":5}"#, |idempotency| {
        idempotency.on(Invoke::new(), &Operation::new("charge").key("paymentId"), show)
    }),
];

/// The work that is done once; here it only prints.
async fn show(payload: Value, call: Call) -> Result<(), Failure> {
    println!("  handler: {} with {payload}", call.record());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let only = std::env::args().nth(1);
    let names: Vec<_> = EXAMPLES.iter().map(|(source, ..)| *source).collect();
    if let Some(only) = only.as_deref().filter(|only| !names.contains(only)) {
        return Err(
            format!("there is no example {only}; choose one of {}", names.join(", ")).into()
        );
    }
    for (source, event, function) in EXAMPLES {
        if only.as_deref().is_some_and(|only| only != *source) {
            continue;
        }
        println!("{source}");
        let event: Value = serde_json::from_str(event)?;
        let function = function(&Idempotency::new(MemoryStore::new()))?;
        for _ in 0..2 {
            println!("  answer:  {}", testing::invoke(&function, &event).await?);
        }
    }
    Ok(())
}
