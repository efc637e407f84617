//! All sources, and one that is not known before the event.

use lambda_idempotency_keys::{IntoKeyPath, Secret};

use super::{
    active_mq::ActiveMqEvents,
    contract::{EventSource, Source, parts},
    document_db::DocumentDbEvents,
    dynamodb::DynamoDbEvents,
    envelopes::unwrap,
    event::Event,
    event_bridge::EventBridgeEvents,
    invoke::InvokeEvents,
    kafka::KafkaEvents,
    kinesis::KinesisEvents,
    pipe::PipeEvents,
    rabbit_mq::RabbitMqEvents,
    record::Record,
    s3::S3Events,
    scheduler::SchedulerEvents,
    settings::{KeepOrder, Settings},
    sns::SnsEvents,
    sqs::SqsEvents,
};
use crate::{envelope::Envelope, rejection::Rejection};

/// Every source, in the order in which they are tried: [`Invoke`](super::Invoke) is the last, because it takes any
/// event.
pub(crate) const ALL: [&dyn EventSource; 13] = [
    &SqsEvents,
    &SnsEvents,
    &S3Events,
    &KinesisEvents,
    &DynamoDbEvents,
    &DocumentDbEvents,
    &KafkaEvents,
    &ActiveMqEvents,
    &RabbitMqEvents,
    &EventBridgeEvents,
    &PipeEvents::OF_ANY,
    &SchedulerEvents,
    &InvokeEvents,
];

/// The records of an event of this source, without their envelopes. Ids that logs must not show are hashed with the secret, if
/// there is one.
pub(crate) fn records_of<'e>(
    source: &dyn EventSource,
    event: &Event<'e>,
    settings: &Settings,
    secret: Option<&Secret>,
) -> Vec<Record<'e>> {
    let mut records = source.records(event, settings);
    // Whatever its key: a batch differs at each delivery, and the handler's result would acknowledge all of it.
    if source.answers_its_caller()
        && let Some(name) = polled(event)
    {
        records.iter_mut().for_each(|record| record.payload = Err(Rejection::Polled(name)));
    }
    unwrap(records, settings, secret)
}

/// The source of a batch that a poller delivers, if the event is one.
fn polled(event: &Event<'_>) -> Option<&'static str> {
    let any = Settings::default();
    let polled = ALL.iter().filter(|source| !source.about().is_cause_of_invocation);
    polled.filter(|source| source.recognises(event, &any)).map(|source| source.name()).next()
}

/// Whichever source an event is from, with the settings that decide which key a record has: for
/// [`inspect`](crate::keys::inspect).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct AnySource(pub(crate) Settings);

/// The settings of this source, whichever source the event is from.
impl<S: Source> From<S> for AnySource {
    fn from(source: S) -> Self {
        Self(parts(source).settings)
    }
}

impl AnySource {
    /// With every setting at its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Sqs::key`](super::Sqs::key).
    pub fn key(mut self, path: impl IntoKeyPath) -> Self {
        self.0.key = Some(path.into_path());
        self
    }

    /// As [`Sqs::fingerprint`](super::Sqs::fingerprint).
    pub fn fingerprint(mut self, path: impl IntoKeyPath) -> Self {
        self.0.fingerprint = Some(path.into_path());
        self
    }

    /// As [`Sqs::envelope`](super::Sqs::envelope).
    pub fn envelope(mut self, envelope: Envelope) -> Self {
        self.0.envelopes.push(envelope);
        self
    }

    /// As [`Sqs::whole_record`](super::Sqs::whole_record).
    pub fn whole_record(mut self) -> Self {
        self.0.whole_record = true;
        self
    }

    /// As [`Kinesis::order`](super::Kinesis::order).
    pub fn order(mut self, order: KeepOrder) -> Self {
        self.0.order = Some(order);
        self
    }
}
