//! Sends to SNS.

use std::{collections::HashMap, time::Duration};

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

use crate::batches::{
    Answer, Entries, Numbered, Service, entries, failed, refused, send_in_batches,
};

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
            let Entries { positions, entries, mut invalid } =
                entries(&batch, |at, message| entry(at, topic, message));
            if entries.is_empty() {
                return Answer::AllBut(invalid);
            }
            let timeout = TimeoutConfig::builder().operation_timeout(left).build();
            let config = aws_sdk_sns::config::Builder::default().timeout_config(timeout);
            let request = self.client.publish_batch().topic_arn(topic);
            let request = request
                .set_publish_batch_request_entries(Some(entries))
                .customize()
                .config_override(config);
            let answer = match request.send().await {
                Ok(answer) => answer,
                Err(error) => return failed(SERVICE, error),
            };
            let stored: Vec<_> = answer.successful().iter().filter_map(|one| one.id()).collect();
            let codes: HashMap<_, _> =
                answer.failed().iter().map(|one| (one.id(), one.code())).collect();
            for at in positions {
                let id = at.to_string();
                if !stored.contains(&&*id) {
                    invalid.push((at, refused(SERVICE, codes.get(&*id).copied())));
                }
            }
            Answer::AllBut(invalid)
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
        return Err(SendError::new(
            "a message to a FIFO topic needs a group; add `with_group` in the handler",
        ));
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
