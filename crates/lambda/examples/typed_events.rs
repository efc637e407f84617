//! Handlers that take the types of the crate `aws_lambda_events`: a message of SQS, a record of SNS,
//! an event of EventBridge, a record of Kinesis, a change of DynamoDB, an object of S3.
//!
//! `.whole_record()` hands the record to the handler as AWS delivers it, so any type that deserializes
//! from it fits. Key expressions then read the record, too: `.key("messageAttributes.order.stringValue")`.
//! A handler that only sometimes looks at the record can take its payload, and call
//! `call.record_as::<SqsMessage>()`.
//!
//! ```console
//! $ cargo run -p lambda-idempotency --example typed_events
//! ```

use aws_lambda_events::{
    dynamodb::EventRecord as Change,
    eventbridge::EventBridgeEvent as Event,
    kinesis::KinesisEventRecord as Click,
    s3::S3EventRecord as Upload,
    sns::SnsRecord,
    sqs::{SqsBatchResponse, SqsMessage},
};
use lambda_idempotency::{
    Failure, Idempotency, MemoryStore, Operation,
    source::{DynamoDbStream, EventBridge, Kinesis, S3, Sns, Sqs},
    testing,
};
use serde_json::Value;

const SQS: &str = include_str!("../tests/events/sqsEvent.json");
const OTHERS: [&str; 5] = [
    include_str!("../tests/events/snsEvent.json"),
    include_str!("../tests/events/eventBridgeEvent.json"),
    include_str!("../tests/events/kinesisStreamEvent.json"),
    include_str!("../tests/events/dynamoStreamEvent.json"),
    include_str!("../tests/events/s3Event.json"),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let named = Operation::new;
    let changes = DynamoDbStream::new().whole_record();
    let idempotency = Idempotency::new(MemoryStore::new());
    let function = idempotency
        .function()
        .on(Sqs::new().whole_record(), &named("sqs"), async |it: SqsMessage, _| show(it.message_id))
        .on(Sns::new().whole_record(), &named("sns"), async |it: SnsRecord, _| show(it.sns.message))
        .on(EventBridge::new().whole_record(), &named("bus"), async |it: Event, _| show(it.id))
        .on(Kinesis::new().whole_record(), &named("s"), async |it: Click, _| show(it.event_id))
        .on(changes, &named("changes"), async |it: Change, _| show(it.change.keys))
        .on(S3::new(), &named("s3"), async |it: Upload, _| show(it.s3.object.key))
        .build()?;
    // The responses have types, too. This one says that no message returns to its queue.
    let answer = testing::invoke(&function, &serde_json::from_str(SQS)?).await?;
    let response: SqsBatchResponse = serde_json::from_value(answer)?;
    assert_eq!(response, SqsBatchResponse::default());
    for event in OTHERS {
        testing::invoke(&function, &serde_json::from_str::<Value>(event)?).await?;
    }
    Ok(())
}

fn show(part: impl std::fmt::Debug) -> Result<(), Failure> {
    println!("{part:?}");
    Ok(())
}
