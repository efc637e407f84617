//! A handler can take the whole record.

use aws_lambda_events::{
    cloudwatch_events::CloudWatchEvent, dynamodb, eventbridge::EventBridgeEvent,
    kinesis::KinesisEvent, s3::S3Event, sqs,
};
use lambda_idempotency::{
    Call, ConfigError, Failure, Operation,
    handler::Payload,
    source::{DynamoDbStream, EventBridge, Invoke, Kinesis, Pipe, S3, Source, Sqs},
};
use serde_json::Value;

use crate::{
    support::{World, batch},
    support_streams::with_data,
};

/// A handler of whole records can take bytes that are not UTF-8.
#[tokio::test]
async fn payloads_that_are_not_utf8_are_accepted() {
    let world = World::new();
    let event = batch([with_data(1, "k", [0xff, 0x00])]);
    let text = world.with_handler(Kinesis::new(), &Operation::new("a"), world.raw_handler());
    assert_eq!(world.returned(&text, &event).await.len(), 1);
    let (whole, operation) = (Kinesis::new().whole_record(), Operation::new("b"));
    let whole = world.with_handler(whole, &operation, world.raw_handler());
    assert!(world.returned(&whole, &event).await.is_empty());
    assert_eq!(world.ledger.total(), 1);
}

/// Builds a function whose handler takes this type.
fn takes<T: Payload>(source: impl Source) -> Result<(), ConfigError> {
    let handler = async |_: T, _: Call| Ok::<_, Failure>(());
    World::new().idempotency().on(source, &Operation::new("a"), handler).map(drop)
}

/// It would refuse every record.
#[test]
fn a_handler_of_whole_events_is_refused() {
    for refused in [
        takes::<sqs::SqsEvent>(Sqs::new()),
        takes::<sqs::SqsEvent>(Sqs::new().whole_record()),
        takes::<sqs::SqsEventObj<Value>>(Sqs::new()),
        takes::<sqs::SqsEvent>(Pipe::of(Sqs::new())),
        takes::<KinesisEvent>(Kinesis::new()),
        takes::<dynamodb::Event>(DynamoDbStream::new()),
        takes::<S3Event>(S3::new()),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, ConfigError::Source(_)), "{error}");
        let text = error.to_string();
        let parts = ["operation `a` takes a whole event, `aws_lambda_events::", "gets one record"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    assert_eq!(takes::<sqs::SqsEvent>(Invoke::by_request_id()), Ok(()));
    assert_eq!(takes::<S3Event>(Sqs::new()), Ok(()), "the notifications in a message");
}

/// Every member of these types may be missing, so that each payload would be an empty record.
#[test]
fn a_handler_of_records_has_to_get_them() {
    for refused in [
        takes::<sqs::SqsMessage>(Sqs::new()),
        takes::<sqs::SqsMessage>(Pipe::of(Sqs::new())),
        takes::<EventBridgeEvent<Value>>(EventBridge::new()),
        takes::<CloudWatchEvent>(EventBridge::new()),
    ] {
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("`a` takes a whole record") && text.contains(".whole_record()"),
            "{text}"
        );
    }
    assert_eq!(takes::<sqs::SqsMessage>(Sqs::new().whole_record()), Ok(()));
    assert_eq!(takes::<EventBridgeEvent<Value>>(Sqs::new()), Ok(()), "the event in a message");
}
