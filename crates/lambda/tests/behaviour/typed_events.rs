//! Handlers can take the types of `aws_lambda_events`: they get what the crate itself reads from the event, and the
//! function answers as it does with a handler of raw JSON.

use aws_lambda_events::{
    activemq::{ActiveMqEvent, ActiveMqMessage},
    documentdb::{DocumentDbEvent, DocumentDbInnerEvent},
    dynamodb,
    eventbridge::EventBridgeEvent,
    kinesis::{KinesisEvent, KinesisEventRecord},
    rabbitmq::{RabbitMqEvent, RabbitMqMessage},
    s3::{S3Event, S3EventRecord},
    sns::{SnsEvent, SnsRecord},
    sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage},
    streams::{DynamoDbEventResponse, KinesisEventResponse},
};
use lambda_idempotency::{
    Operation,
    source::{ActiveMq, DocumentDb, DynamoDbStream, EventBridge, Kinesis, RabbitMq, S3, Sns, Sqs},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    support::{Noted, World, batch, order, sample},
    support_streams::put,
};

/// Whether both have the same records. Their order may differ, because records are processed concurrently.
fn same<T: PartialEq>(one: &[T], other: &[T]) -> bool {
    one.len() == other.len() && one.iter().all(|record| other.contains(record))
}

/// What the crate reads from the event.
fn read<E: DeserializeOwned, T>(event: &str, records: impl Fn(E) -> Vec<T>) -> Vec<T> {
    let records = records(serde_json::from_str(event).unwrap());
    assert!(!records.is_empty());
    records
}

/// Delivers each sample twice, to a function whose handler takes this type, and to one whose handler takes raw JSON.
macro_rules! takes_the_type {
    ($source:expr, $record:ty, $event:ty, $records:expr, $operation:expr, $samples:expr) => {
        for name in $samples {
            let event = sample(&format!("aws_lambda_events/{name}"));
            let (typed, raw) = (World::new(), World::new());
            let (taken, taken_raw) = (Noted::<$record>::new(), Noted::<Value>::new());
            let function = typed.with_handler($source, &$operation, taken.payloads());
            let raw_function = raw.with_handler($source, &$operation, taken_raw.payloads());
            for _ in 0..2 {
                let answer = typed.invoke_raw(&function, &event).await.unwrap();
                assert_eq!(answer, raw.invoke_raw(&raw_function, &event).await.unwrap(), "{name}");
            }
            let taken = taken.take();
            let wanted = read::<$event, $record>(&event, $records);
            assert!(same(&taken, &wanted), "{name}: {taken:?}, must be {wanted:?}");
            assert_eq!(taken.len(), taken_raw.take().len(), "{name}");
        }
    };
}

#[tokio::test]
async fn handlers_take_the_records_of_each_source() {
    let whole = || Operation::new("a");
    macro_rules! take {
        ($source:ident, $record:ty, $event:ty, $records:expr, [$($sample:literal),+]) => {
            take!($source::new().whole_record(), whole(), $record, $event, $records, [$($sample),+])
        };
        ($source:expr, $operation:expr, $record:ty, $event:ty, $records:expr, [$($sample:literal),+]) => {
            takes_the_type!($source, $record, $event, $records, $operation, [$($sample),+])
        };
    }
    take!(Sqs, SqsMessage, SqsEvent, |e| e.records, ["example-sqs-event"]);
    take!(
        Sns,
        SnsRecord,
        SnsEvent,
        |e| e.records,
        ["example-sns-event", "example-sns-event-pascal-case"]
    );
    take!(
        EventBridge,
        EventBridgeEvent,
        EventBridgeEvent,
        |e| vec![e],
        ["example-eventbridge-event-obj", "example-eventbridge-schedule"]
    );
    take!(
        Kinesis,
        KinesisEventRecord,
        KinesisEvent,
        |e| e.records,
        ["example-kinesis-event", "example-kinesis-event-encrypted"]
    );
    take!(
        DynamoDbStream,
        dynamodb::EventRecord,
        dynamodb::Event,
        |e| e.records,
        ["example-dynamodb-event", "example-dynamodb-event-null-items"]
    );
    take!(S3::new(), whole(), S3EventRecord, S3Event, |e| e.records, ["example-s3-event"]);
    take!(
        DocumentDb,
        DocumentDbInnerEvent,
        DocumentDbEvent,
        |e| e.events,
        ["example-documentdb-insert-event", "example-documentdb-delete-event"]
    );
    take!(ActiveMq, ActiveMqMessage, ActiveMqEvent, |e| e.messages, ["example-activemq-event"]);
    // The sample of RabbitMQ has no message id.
    take!(
        RabbitMq::new().whole_record(),
        whole().key("data"),
        RabbitMqMessage,
        RabbitMqEvent,
        |e| e.messages_by_queue.into_values().flatten().collect(),
        ["example-rabbitmq-event"]
    );
}

/// The answer, read as this type and written again.
fn again<T: DeserializeOwned + Serialize>(answer: &Value) -> T {
    let response: T = serde_json::from_value(answer.clone()).unwrap();
    assert_eq!(serde_json::to_value(&response).unwrap(), *answer);
    response
}

#[tokio::test]
async fn answers_have_the_types_of_responses() {
    let fail = |message: &str| order(message, message, "fail");
    let world = World::new();
    let sqs = world.on(Sqs::new(), &Operation::new("a"));
    let event = batch([fail("m-1"), order("m-2", "b", "")]);
    let response: SqsBatchResponse = again(&world.invoke(&sqs, &event).await.unwrap());
    let mut failed = BatchItemFailure::default();
    failed.item_identifier = "m-1".to_owned();
    assert_eq!(response.batch_item_failures, [failed]);

    let kinesis = world.on(Kinesis::new(), &Operation::new("b"));
    let event = batch([put(1, "k", "a", ""), put(2, "k", "b", "fail")]);
    let answer = world.invoke(&kinesis, &event).await.unwrap();
    let response: KinesisEventResponse = again(&answer);
    assert_eq!(response.batch_item_failures.len(), 1);
    let changes: DynamoDbEventResponse = again(&answer);
    assert_eq!(json!(changes), json!(response));
}
