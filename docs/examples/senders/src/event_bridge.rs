//! Sends to EventBridge.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_eventbridge::{Client, config::timeout::TimeoutConfig, types::PutEventsRequestEntry};
use lambda_idempotency::{
    clock::Timestamp,
    outbox::{OutgoingMessage, SendError, Sender},
    store::BoxFuture,
};

use crate::batches::{
    Answer, Entries, Numbered, Service, entries, failed, refused, send_in_batches,
};

const SERVICE: &str = "EventBridge";

/// Sends messages to event buses; destinations are their names or ARNs. The function needs `events:PutEvents` on each.
///
/// Each message needs the attributes `source` and `detail-type`, and no others, and its body is a JSON object. The id is
/// the first of the event's resources. Event buses keep no order.
///
/// **EventBridge accepts events for a bus that does not exist and drops them.** No sender can notice that, so check
/// the name where you deploy the function.
#[derive(Clone, Debug)]
pub struct EventBridgeSender {
    client: Client,
}

impl EventBridgeSender {
    /// A sender with this configuration.
    #[must_use]
    pub fn new(config: &SdkConfig) -> Self {
        Self { client: Client::new(config) }
    }
}

impl Service for EventBridgeSender {
    fn request<'a>(&'a self, batch: Vec<Numbered<'a>>, left: Duration) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Entries { positions, entries, mut invalid } =
                entries(&batch, |_, message| entry(message));
            if entries.is_empty() {
                return Answer::AllBut(invalid);
            }
            let timeout = TimeoutConfig::builder().operation_timeout(left).build();
            let config = aws_sdk_eventbridge::config::Builder::default().timeout_config(timeout);
            let request = self.client.put_events().set_entries(Some(entries));
            let answer = match request.customize().config_override(config).send().await {
                Ok(answer) => answer,
                Err(error) => return failed(SERVICE, error),
            };
            // The answers are in the order of the entries. One without an event id is of an entry that has failed.
            for (index, at) in positions.into_iter().enumerate() {
                let entry = answer.entries().get(index);
                if entry.and_then(|entry| entry.event_id()).is_none() {
                    invalid
                        .push((at, refused(SERVICE, entry.and_then(|entry| entry.error_code()))));
                }
            }
            Answer::AllBut(invalid)
        })
    }
}

fn entry(message: &OutgoingMessage) -> Result<PutEventsRequestEntry, SendError> {
    let (id, message) = (message.id(), message.message());
    let (source, kind) = (message.attribute("source"), message.attribute("detail-type"));
    let (Some(source), Some(kind), 2, None) =
        (source, kind, message.attributes().len(), message.group())
    else {
        return Err(incomplete());
    };
    let entry = PutEventsRequestEntry::builder()
        .event_bus_name(message.destination())
        .source(source)
        .detail_type(kind)
        .resources(id)
        .detail(message.body());
    Ok(entry.build())
}

fn incomplete() -> SendError {
    SendError::new(
        "an event needs the attributes `source` and `detail-type`, no others, and no group; correct the handler",
    )
}

impl Sender for EventBridgeSender {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(send_in_batches(self, messages, call_deadline))
    }
}
