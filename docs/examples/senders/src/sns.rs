//! Sends to SNS.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_sns::{
    Client,
    config::timeout::TimeoutConfig,
    error::BuildError,
    types::{MessageAttributeValue, PublishBatchRequestEntry},
};
use lambda_idempotency::{
    clock::Timestamp,
    outbox::{OutgoingMessage, SendError, Sender},
    store::BoxFuture,
};

use crate::batches::{Answer, Numbered, Service, send_entries, send_in_batches, without_group};

const SERVICE: &str = "SNS";

/// Sends messages to SNS topics; destinations are their ARNs. The function needs `sns:Publish` on each.
///
/// A message to a FIFO topic needs a group.
#[derive(Clone, Debug)]
pub struct SnsSender {
    client: Client,
}

impl SnsSender {
    /// A sender with this configuration.
    #[must_use]
    pub fn new(config: &SdkConfig) -> Self {
        Self { client: Client::new(config) }
    }
}

impl Service for SnsSender {
    fn request<'a>(&'a self, batch: Vec<Numbered<'a>>, left: Duration) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let topic = batch[0].1.message().destination();
            let entry = |at, message: &OutgoingMessage| entry(at, topic, message);
            let send = async |entries| {
                let timeout = TimeoutConfig::builder().operation_timeout(left).build();
                let config = aws_sdk_sns::config::Builder::default().timeout_config(timeout);
                let request = self.client.publish_batch().topic_arn(topic);
                let request = request.set_publish_batch_request_entries(Some(entries));
                let answer = request.customize().config_override(config).send().await?;
                let stored = answer.successful().iter().filter_map(|one| one.id());
                let stored = stored.map(str::to_owned).collect();
                let failed = answer.failed().iter();
                let codes = failed.map(|one| (one.id().to_owned(), one.code().to_owned()));
                Ok((stored, codes.collect()))
            };
            send_entries(SERVICE, &batch, entry, send).await
        })
    }
}

fn entry(
    at: usize,
    topic: &str,
    message: &OutgoingMessage,
) -> Result<PublishBatchRequestEntry, SendError> {
    let (id, message) = (message.id(), message.message());
    let is_fifo = topic.ends_with(".fifo");
    if is_fifo && message.group().is_none() {
        return Err(without_group("topic"));
    }
    let of_sdk = |error: BuildError| SendError::new("it is not valid for SNS").with_source(error);
    let text = |value: &str| {
        let value = MessageAttributeValue::builder().data_type("String").string_value(value);
        value.build().map_err(of_sdk)
    };
    let mut entry = PublishBatchRequestEntry::builder()
        .id(at.to_string())
        .message(message.body())
        .set_message_group_id(message.group().map(str::to_owned))
        .set_message_deduplication_id(is_fifo.then(|| id.to_owned()));
    for (name, value) in message.attributes() {
        entry = entry.message_attributes(name, text(value)?);
    }
    // Last, so that no attribute of the message replaces it.
    entry = entry.message_attributes(OutgoingMessage::ID_ATTRIBUTE, text(id)?);
    entry.build().map_err(of_sdk)
}

impl Sender for SnsSender {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(send_in_batches(self, messages, call_deadline))
    }
}
