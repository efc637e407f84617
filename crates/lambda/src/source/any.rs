//! All sources, one that is not known before the event, and the envelopes around their records: for example, an S3
//! notification in an SNS notification in an SQS message.

use std::borrow::Cow;

use lambda_idempotency_engine::delivered::Reads;
use lambda_idempotency_keys::{IntoKeyPath, Secret};
use serde_json::value::RawValue;

use super::{
    active_mq::ActiveMqEvents,
    contract::{About, EventSource, Source, parts},
    document_db::DocumentDbEvents,
    dynamodb::DynamoDbEvents,
    event::{Event, shown},
    event_bridge::{self, EventBridgeEvents},
    invoke::InvokeEvents,
    kafka::KafkaEvents,
    kinesis::KinesisEvents,
    pipe::PipeEvents,
    rabbit_mq::RabbitMqEvents,
    record::Record,
    s3::{self, S3Events},
    scheduler::SchedulerEvents,
    settings::{KeepOrder, Settings},
    sns::{self, SnsEvents},
    sqs::{self, SqsEvents},
};
use crate::{decode::Format, envelope::Envelope, rejection::Rejection};

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

/// Removes the envelopes that `settings` names, outermost first. Ids that logs must not show are
/// hashed with the operation's secret, if it has one, like its keys.
///
/// Payload and identity are then those of the inner record: its id stays the same when the outer
/// record gets a new one. If one outer record contains several, they are returned together: each
/// keeps the outer record's id, order group and identifier. An envelope without records (S3's test
/// event) leaves no record.
pub(crate) fn unwrap<'e>(
    records: Vec<Record<'e>>,
    settings: &Settings,
    secret: Option<&Secret>,
) -> Vec<Record<'e>> {
    let records: Vec<_> = records.into_iter().map(legible).collect();
    let mut records = match secret {
        Some(secret) => hidden_with(secret, records),
        None => records,
    };
    if settings.is_filtered() {
        records.iter_mut().for_each(refuse_unknown_origin);
    }
    for envelope in &settings.envelopes {
        records = records.into_iter().flat_map(|record| open(record, *envelope)).collect();
    }
    if settings.whole_record {
        for record in &mut records {
            if matches!(
                &record.payload,
                Ok(_) | Err(Rejection::NotText(_) | Rejection::PayloadNotText | Rejection::Framed)
            ) {
                let payload = std::mem::replace(&mut record.payload, Ok(record.raw.clone()));
                record.body = record.body.take().or(payload.ok());
                record.format = Format::Json;
            }
        }
    }
    records
}

/// A record whose name and origin can be written in a line of a log or an error.
fn legible(mut record: Record<'_>) -> Record<'_> {
    let needs = |text: &str| text.len() > 1024 || text.contains(char::is_control);
    if needs(&record.id.id) {
        record.id.id = shown(&record.id.id).into();
    }
    if let Some(arn) = record.id.arn.as_mut().filter(|arn| needs(arn)) {
        *arn = shown(arn).into();
    }
    record
}

/// A filtered operation may not be the one for a record that does not tell where it is from.
fn refuse_unknown_origin(record: &mut Record<'_>) {
    if record.id.arn.as_deref().is_none_or(str::is_empty) && record.payload.is_ok() {
        // The origin is the first part of an identity.
        let member = match &record.identity {
            Err(Rejection::NoIdentity(member)) => member,
            _ => "eventSourceARN",
        };
        record.payload = Err(Rejection::NoMember(member));
    }
}

/// Hashes ids that logs must not show with this secret.
pub(crate) fn hidden_with<'e>(secret: &Secret, mut records: Vec<Record<'e>>) -> Vec<Record<'e>> {
    for record in &mut records {
        record.id = record.id.clone().hashed_with(secret);
    }
    records
}

/// The identity of the records: that of the innermost envelope, or the source's own.
pub(crate) fn known_by(source: &dyn EventSource, settings: &Settings) -> &'static About {
    match settings.envelopes.last() {
        None => source.about(),
        Some(Envelope::Sns) => SnsEvents.about(),
        Some(Envelope::EventBridge) => EventBridgeEvents.about(),
        Some(Envelope::S3) => S3Events.about(),
    }
}

fn open<'e>(mut record: Record<'e>, envelope: Envelope) -> Vec<Record<'e>> {
    let Ok(payload) = &record.payload else { return vec![record] };
    let raw = serde_json::from_str::<&RawValue>(payload).ok();
    let is_about_subscription =
        envelope == Envelope::Sns && raw.is_some_and(sns::is_about_subscription);
    let opened = raw.and_then(|raw| {
        let inner = match envelope {
            Envelope::Sns => vec![sns::in_envelope(raw)?],
            Envelope::EventBridge => vec![event_bridge::in_envelope(raw)?],
            Envelope::S3 => s3::in_envelope(raw)?,
        };
        Some(inner.into_iter().map(|inner| inside(&record, envelope, inner)).collect())
    });
    opened.unwrap_or_else(|| {
        let rejection = if is_about_subscription {
            Rejection::AboutSubscription
        } else {
            Rejection::NotInEnvelope(envelope)
        };
        let payload = std::mem::replace(&mut record.payload, Err(rejection));
        record.body = record.body.take().or(payload.ok());
        vec![record]
    })
}

/// The outer record with the inner one's payload and identity. The outer record is not cloned,
/// because its payload contains all inner records and would be copied for each of them.
fn inside<'e>(outer: &Record<'e>, envelope: Envelope, inner: Record<'_>) -> Record<'e> {
    let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    // Without a payload, the inner record is the content. The outer record cannot be, because it
    // differs at each delivery.
    let body = inner.payload.is_err().then(|| owned(inner.raw));
    Record {
        id: outer.id.clone(),
        raw: outer.raw.clone(),
        payload: inner.payload.map(owned),
        format: inner.format,
        body,
        identity: inner.identity.map(|parts| parts.into_iter().map(owned).collect()),
        group: outer.group.clone(),
        receives: outer.receives,
        reads: match envelope {
            Envelope::Sns if outer.id.source == SqsEvents.name() => {
                Reads::with(&sqs::READS_OF_NOTIFICATIONS)
            }
            _ => outer.reads,
        },
        item: outer.item.clone(),
    }
}
