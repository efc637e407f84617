//! Diverts records that will never be processed, so that they do not block later records of their
//! stream: in an SQS queue or, if they are too large for that, in an S3 bucket.
//!
//! The function needs `sqs:SendMessage` on the queue and its URL in `SINK_QUEUE_URL`, `s3:PutObject` on
//! the bucket and its name in `SINK_BUCKET`. One of the two sinks may be enough: `to_bucket` takes
//! records of any size; a message in the queue can cause an alarm. Both contain payloads: encrypt them,
//! and let few people read them.

use aws_config::BehaviorVersion;
use lambda_idempotency::{
    Call, DynamoDbStore, Failure, Idempotency, Operation,
    source::{DivertedRecord, Kinesis},
};
use lambda_runtime::Error;

/// The largest message of SQS: 1 MiB.
const LARGEST_MESSAGE: usize = 1024 * 1024;

#[derive(serde::Deserialize)]
struct Order {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let sink = Sink::from_env().await?;
    let index = Operation::new("index-order")
        .key("orderId")
        // Without a limit, a record whose handler always fails is tried until it expires.
        .max_failed_attempts(3);
    let orders = Kinesis::new().divert(async move |record| sink.put(record).await);
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    lambda_runtime::run(idempotency.on(orders, &index, index_order)?).await
}

async fn index_order(_: Order, _: Call) -> Result<(), Failure> {
    Ok(())
}

/// Where records are diverted to.
#[derive(Clone)]
struct Sink {
    sqs: aws_sdk_sqs::Client,
    queue_url: String,
    s3: aws_sdk_s3::Client,
    bucket: String,
}

impl Sink {
    async fn from_env() -> Result<Self, Error> {
        let config = aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await;
        Ok(Self {
            sqs: aws_sdk_sqs::Client::new(&config),
            queue_url: std::env::var("SINK_QUEUE_URL")?,
            s3: aws_sdk_s3::Client::new(&config),
            bucket: std::env::var("SINK_BUCKET")?,
        })
    }

    /// If this returns `Ok`, the record is acknowledged. If not, it is returned to its source, and its next delivery comes
    /// here again, with the same id.
    async fn put(&self, record: DivertedRecord) -> Result<(), Failure> {
        let text = describe(&record);
        if text.len() <= LARGEST_MESSAGE {
            self.to_queue(text).await
        } else {
            self.to_bucket(&record.id, text).await
        }
    }

    async fn to_queue(&self, text: String) -> Result<(), Failure> {
        self.sqs.send_message().queue_url(&self.queue_url).message_body(text).send().await?;
        Ok(())
    }

    /// A record that comes again overwrites its own object.
    async fn to_bucket(&self, id: &str, text: String) -> Result<(), Failure> {
        self.s3
            .put_object()
            .bucket(&self.bucket)
            .key(format!("{id}.json"))
            .content_type("application/json")
            .body(text.into_bytes().into())
            .send()
            .await?;
        Ok(())
    }
}

/// The record, and what an operator needs to decide about it. Before you send the record again, delete the
/// idempotency record with this key, because it contains the permanent failure.
fn describe(record: &DivertedRecord) -> String {
    let DivertedRecord { id: diverted, operation, record: id, key_hash, raw, reason, .. } = record;
    serde_json::json!({
        // The same at each delivery: whoever reads the queue recognises copies by it.
        "divertedId": diverted,
        "operation": &**operation,
        "source": id.source,
        "arn": id.arn.as_deref(),
        "id": &*id.id,
        "keyHash": key_hash,
        "reason": reason.to_string(),
        "record": raw,
    })
    .to_string()
}
