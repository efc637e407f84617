//! Hides a message whose key another worker holds until the lease of that claim ends.
//!
//! Without this, such a message is delivered again when its visibility timeout ends, which may be long
//! after the lease, or so early that it is returned and counted as received once more. The function
//! needs `sqs:ChangeMessageVisibility` on the queue, and its URL in `ORDERS_QUEUE_URL`.

use aws_config::BehaviorVersion;
use aws_sdk_sqs::Client;
use lambda_idempotency::{
    Call, DynamoDbStore, Failure, Idempotency, Operation,
    source::{BusyRecord, Sqs},
};
use lambda_runtime::Error;

/// The longest visibility timeout of SQS, in seconds.
const LONGEST: u64 = 12 * 60 * 60;

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    receipt_handle: String,
}

#[derive(serde::Deserialize)]
struct Order {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let queue = std::env::var("ORDERS_QUEUE_URL")?;
    let sqs = Client::new(&aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await);
    let hide = async move |busy: BusyRecord| {
        let Ok(message) = serde_json::from_str::<Message>(&busy.raw) else { return };
        // One second more, because the lease still holds the key in its last second.
        let seconds = (busy.wait.as_secs() + 1).min(LONGEST);
        let hidden = sqs
            .change_message_visibility()
            .queue_url(queue)
            .receipt_handle(message.receipt_handle)
            .visibility_timeout(i32::try_from(seconds).unwrap_or(i32::MAX))
            .send()
            .await;
        if hidden.is_err() {
            // The message is delivered again when its visibility timeout ends.
            lambda_runtime::tracing::warn!(record = %busy.record, "could not be hidden");
        }
    };
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
    let place = Operation::new("place-order").key("orderId");
    lambda_runtime::run(idempotency.on(Sqs::new().on_busy(hide), &place, place_order)?).await
}

async fn place_order(_: Order, _: Call) -> Result<(), Failure> {
    Ok(())
}
