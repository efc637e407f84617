//! Chooses the sender by the destination.

use aws_config::{BehaviorVersion, SdkConfig};
use futures_util::future::join3;
use lambda_idempotency::{
    clock::Timestamp,
    outbox::{OutgoingMessage, SendError, Sender},
    store::BoxFuture,
};

use crate::{EventBridgeSender, SnsSender, SqsSender};

/// Sends to queues (destinations that are URLs), topics (ARNs of SNS), and event buses (all other destinations).
#[derive(Clone, Debug)]
pub struct Senders {
    sqs: SqsSender,
    sns: SnsSender,
    event_bridge: EventBridgeSender,
}

impl Senders {
    /// Senders with this configuration.
    #[must_use]
    pub fn new(config: &SdkConfig) -> Self {
        Self {
            sqs: SqsSender::new(config),
            sns: SnsSender::new(config),
            event_bridge: EventBridgeSender::new(config),
        }
    }

    /// Senders with the configuration of the environment.
    pub async fn from_env() -> Self {
        Self::new(&aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    Sqs,
    Sns,
    EventBridge,
}

fn service(message: &OutgoingMessage) -> Service {
    let to = message.message().destination();
    if to.starts_with("https://") || to.starts_with("http://") {
        Service::Sqs
    } else if to.split(':').nth(2) == Some("sns") {
        Service::Sns
    } else {
        Service::EventBridge
    }
}

impl Sender for Senders {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            let of = |wanted| -> Vec<OutgoingMessage> {
                messages.iter().filter(|message| service(message) == wanted).cloned().collect()
            };
            let (queues, topics, buses) =
                (of(Service::Sqs), of(Service::Sns), of(Service::EventBridge));
            let (sqs, sns, event_bridge) = join3(
                self.sqs.send(&queues, call_deadline),
                self.sns.send(&topics, call_deadline),
                self.event_bridge.send(&buses, call_deadline),
            )
            .await;
            let (mut sqs, mut sns) = (sqs.into_iter(), sns.into_iter());
            let mut event_bridge = event_bridge.into_iter();
            let answers = messages.iter().filter_map(|message| match service(message) {
                Service::Sqs => sqs.next(),
                Service::Sns => sns.next(),
                Service::EventBridge => event_bridge.next(),
            });
            answers.collect()
        })
    }
}
