//! Sends to SQS.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_sqs::{
    Client,
    config::timeout::TimeoutConfig,
    error::BuildError,
    types::{MessageAttributeValue, SendMessageBatchRequestEntry},
};
use lambda_idempotency::{
    clock::Timestamp,
    outbox::{OutgoingMessage, SendError, Sender},
    store::BoxFuture,
};

use crate::batches::{Answer, Numbered, Service, send_entries, send_in_batches, without_group};

const SERVICE: &str = "SQS";

/// Sends messages to SQS queues; destinations are their URLs. The function needs `sqs:SendMessage` on each.
///
/// A message to a FIFO queue needs a group.
#[derive(Clone, Debug)]
pub struct SqsSender {
    client: Client,
}

impl SqsSender {
    /// A sender with this configuration.
    #[must_use]
    pub fn new(config: &SdkConfig) -> Self {
        Self { client: Client::new(config) }
    }
}

impl Service for SqsSender {
    fn request<'a>(&'a self, batch: Vec<Numbered<'a>>, left: Duration) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let queue = batch[0].1.message().destination();
            let entry = |at, message: &OutgoingMessage| entry(at, queue, message);
            let send = async |entries| {
                let timeout = TimeoutConfig::builder().operation_timeout(left).build();
                let config = aws_sdk_sqs::config::Builder::default().timeout_config(timeout);
                let request = self.client.send_message_batch().queue_url(queue);
                let request = request.set_entries(Some(entries));
                let answer = request.customize().config_override(config).send().await?;
                let stored = answer.successful().iter().map(|one| one.id());
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
    queue: &str,
    message: &OutgoingMessage,
) -> Result<SendMessageBatchRequestEntry, SendError> {
    let (id, message) = (message.id(), message.message());
    let is_fifo = queue.ends_with(".fifo");
    if is_fifo && message.group().is_none() {
        return Err(without_group("queue"));
    }
    let of_sdk = |error: BuildError| SendError::new("it is not valid for SQS").with_source(error);
    let text = |value: &str| {
        let value = MessageAttributeValue::builder().data_type("String").string_value(value);
        value.build().map_err(of_sdk)
    };
    let mut entry = SendMessageBatchRequestEntry::builder()
        .id(at.to_string())
        .message_body(message.body())
        .set_message_group_id(message.group().map(str::to_owned))
        .set_message_deduplication_id(is_fifo.then(|| id.to_owned()));
    for (name, value) in message.attributes() {
        entry = entry.message_attributes(name, text(value)?);
    }
    // Last, so that no attribute of the message replaces it.
    entry = entry.message_attributes(OutgoingMessage::ID_ATTRIBUTE, text(id)?);
    entry.build().map_err(of_sdk)
}

impl Sender for SqsSender {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(send_in_batches(self, messages, call_deadline))
    }
}
