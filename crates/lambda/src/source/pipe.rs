//! EventBridge Pipes: a list of records, each almost as its own source delivers it.
//!
//! A record from a pipe has the same default key as one that its source delivers directly, because
//! it is the same work. Queues and streams have partial batch responses here, too, if the pipe
//! waits for the response (`InvocationType: REQUEST_RESPONSE`). A pipe identifies a stream's record
//! by its `eventID`; Lambda's own event source mapping uses the sequence number.
//!
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-batching-concurrency.html>

use std::time::Duration;

use lambda_idempotency_core::policy::OnConflict;
use lambda_idempotency_engine::call::RecordId;
use serde_json::value::RawValue;

use super::{
    active_mq::{self, ActiveMq, ActiveMqEvents},
    contract::{About, EventSource, Parts, Source, all_or_error, partial, sealed::Sealed},
    dynamodb::{self, DynamoDbEvents, DynamoDbStream},
    event::{Event, takes_all},
    filter::Kind,
    kafka::{self, Kafka, KafkaEvents},
    kinesis::{self, Kinesis, KinesisEvents},
    rabbit_mq::{self, RabbitMq, RabbitMqEvents},
    record::{Item, Record, id, json_object, object, text},
    settings::Settings,
    sink::RecordEnd,
    sqs::{self, Sqs, SqsEvents},
};
use crate::{error::InvocationError, rejection::Rejection};

/// Records that EventBridge Pipes deliver from `S`, with the settings of `S`. Payloads and default keys are those of `S`.
///
/// Queues and streams have partial batch responses here, too, if the pipe waits for the response (`InvocationType:
/// REQUEST_RESPONSE`); Kafka and brokers have none.
#[derive(Clone, Debug)]
#[must_use = "a source does nothing until it is given to `.on(..)`"]
pub struct Pipe<S>(S);

impl<S: Piped> Pipe<S> {
    /// Records of this source, delivered by a pipe.
    pub fn of(source: S) -> Self {
        Self(source)
    }
}

impl<S: Piped> Sealed for Pipe<S> {
    fn parts(self) -> Parts {
        let Parts { events, settings } = self.0.parts();
        Parts { events: Box::new(PipeEvents { from: From::of(&*events) }), settings }
    }
}

impl<S: Piped> Source for Pipe<S> {}

/// A source from which EventBridge Pipes deliver. Sealed.
#[diagnostic::on_unimplemented(
    message = "EventBridge Pipes do not deliver from `{Self}`",
    label = "not a source of pipes",
    note = "they deliver from `Sqs`, `Kinesis`, `DynamoDbStream`, `Kafka`, `ActiveMq` and `RabbitMq`"
)]
pub trait Piped: Source {}

impl Piped for Sqs {}
impl Piped for Kinesis {}
impl Piped for DynamoDbStream {}
impl Piped for Kafka {}
impl Piped for ActiveMq {}
impl Piped for RabbitMq {}

/// Reads the events of pipes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PipeEvents {
    /// The source of the records; any, if it is not known before the event.
    from: Option<From>,
}

impl PipeEvents {
    pub(super) const OF_ANY: Self = Self { from: None };
}

const NAME: &str = "pipe";
/// The members of every source that differ when a record is delivered again.
const VOLATILE: &[&str] = &[
    "receiptHandle",
    "attributes.ApproximateReceiveCount",
    "redelivered",
    "brokerOutTime",
    "connectionId",
    "basicProperties.headers.x-delivery-count",
    "basicProperties.headers.x-acquired-count",
    "basicProperties.headers.x-death",
];

json_object!(struct Origin {
    /// The pipe's identifier for a record of a stream.
    id: "eventID", source: "eventSource", arn: "eventSourceARN" | "eventSourceArn",
    /// A queue of RabbitMQ.
    key: "eventSourceKey", servers: "bootstrapServers",
});

/// The source of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Sqs,
    Kinesis,
    DynamoDb,
    Kafka,
    ActiveMq,
    RabbitMq,
}

impl From {
    /// The source with this name.
    fn of(source: &dyn EventSource) -> Option<Self> {
        let all =
            [Self::Sqs, Self::Kinesis, Self::DynamoDb, Self::Kafka, Self::ActiveMq, Self::RabbitMq];
        all.into_iter().find(|from| from.events().name() == source.name())
    }

    /// Reads its records where Lambda delivers them.
    const fn events(self) -> &'static dyn EventSource {
        match self {
            Self::Sqs => &SqsEvents,
            Self::Kinesis => &KinesisEvents,
            Self::DynamoDb => &DynamoDbEvents,
            Self::Kafka => &KafkaEvents,
            Self::ActiveMq => &ActiveMqEvents,
            Self::RabbitMq => &RabbitMqEvents,
        }
    }

    /// Partial responses of pipes are for queues and streams only.
    const fn has_partial_responses(self) -> bool {
        matches!(self, Self::Sqs | Self::Kinesis | Self::DynamoDb)
    }

    /// The kind of resource that the ARN of its records names.
    const fn kind(self) -> Kind {
        match self {
            Self::Sqs => Kind::Queue,
            Self::Kinesis => Kind::Stream,
            Self::DynamoDb => Kind::Table,
            Self::Kafka | Self::ActiveMq | Self::RabbitMq => Kind::Broker,
        }
    }
}

impl Origin<'_> {
    fn from(&self) -> Option<From> {
        Some(match &*text(self.source)? {
            "aws:sqs" => From::Sqs,
            "aws:kinesis" => From::Kinesis,
            "aws:dynamodb" => From::DynamoDb,
            "aws:kafka" | "aws:SelfManagedKafka" | "SelfManagedKafka" => From::Kafka,
            "aws:amq" => From::ActiveMq,
            "aws:rmq" => From::RabbitMq,
            _ => return None,
        })
    }
}

impl EventSource for PipeEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "as for the record's own source",
            catches: "as for the record's own source; also retries by the pipe",
            misses: "as for the record's own source",
            volatile: VOLATILE,
            is_cause_of_invocation: false,
        }
    }

    /// A queue delivers a message again, whoever reads it.
    fn conflict(&self) -> OnConflict {
        self.from.map_or(OnConflict::Wait { up_to: Duration::MAX }, |from| from.events().conflict())
    }

    fn origin(&self) -> &'static str {
        self.from.map_or("", |from| from.events().name())
    }

    /// The members of the records' own source; of all sources, if it is not known.
    fn volatile(&self) -> &'static [&'static str] {
        self.from.map_or(VOLATILE, |from| from.events().volatile())
    }

    fn has_partial_responses(&self) -> bool {
        self.from.is_none_or(From::has_partial_responses)
    }

    /// Accepts an empty list, like an empty batch.
    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        event.items.as_ref().is_some_and(|items| {
            let Some(first) = items.first() else { return true };
            let first: Origin<'_> = object(Some(first));
            let Some(from) = first.from().filter(|from| self.from.is_none_or(|mine| mine == *from))
            else {
                return false;
            };
            if from == From::Kafka {
                // A filter may also be for the topic, which no ARN names.
                return items.iter().all(|item| kafka::takes(item, settings));
            }
            settings.takes(&[(from.kind(), text(first.arn).as_deref())])
                && takes_all(items, settings, |item| {
                    let origin: Origin<'_> = object(Some(item));
                    (origin.from().map_or(Kind::Queue, From::kind), text(origin.arn))
                })
        })
    }

    fn records<'e>(&self, event: &Event<'e>, settings: &Settings) -> Vec<Record<'e>> {
        let is_control = |raw: &RawValue| {
            object::<Origin<'_>>(Some(raw)).from() == Some(From::Kinesis)
                && kinesis::is_control_message(raw)
        };
        let records = event.items.iter().flatten().filter(|raw| !is_control(raw));
        records.map(|raw| read(raw, settings)).collect()
    }

    fn respond(
        &self,
        event: &Event<'_>,
        records: &[Record<'_>],
        outcomes: &[RecordEnd],
    ) -> Result<Box<RawValue>, InvocationError> {
        let first = event.items.iter().flatten().next();
        match first.and_then(|first| object::<Origin<'_>>(Some(first)).from()) {
            Some(From::Sqs) => sqs::respond(records, outcomes),
            None | Some(From::Kinesis | From::DynamoDb) => partial(NAME, None, records, outcomes),
            // Partial responses of pipes are for queues and streams only.
            Some(From::Kafka | From::ActiveMq | From::RabbitMq) => {
                all_or_error(NAME, records, outcomes)
            }
        }
    }
}

fn read<'e>(raw: &'e RawValue, settings: &Settings) -> Record<'e> {
    let origin: Origin<'_> = object(Some(raw));
    let by_event_id =
        |record| Record { item: id(origin.id).map(|id| Item::Id(id.into_owned())), ..record };
    match origin.from() {
        Some(From::Sqs) => sqs::read(raw),
        Some(From::Kinesis) => by_event_id(kinesis::read(raw, settings)),
        Some(From::DynamoDb) => by_event_id(dynamodb::read(raw, settings)),
        Some(From::Kafka) => {
            let cluster = kafka::cluster(text(origin.arn), text(origin.servers));
            Record { item: None, ..kafka::read(raw, &cluster, None, settings) }
        }
        Some(From::ActiveMq) => active_mq::read(raw, origin.arn),
        Some(From::RabbitMq) => rabbit_mq::read(raw, origin.arn, text(origin.key)),
        None => {
            let payload = Err(Rejection::NoMember("eventSource"));
            Record::new(RecordId::new(NAME, ""), raw, payload)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_source_is_not_known_the_members_of_every_source_are_volatile() {
        for from in
            [From::Sqs, From::Kinesis, From::DynamoDb, From::Kafka, From::ActiveMq, From::RabbitMq]
        {
            let pipe = PipeEvents { from: Some(from) };
            for member in pipe.volatile() {
                assert!(VOLATILE.contains(member), "{member}");
            }
        }
    }
}
