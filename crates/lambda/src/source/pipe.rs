//! EventBridge Pipes: a bare list of records, each as its own source delivers it, or nearly.
//!
//! A record that comes through a pipe is the same work as one that comes directly: it has the same
//! default key. Sources with partial responses have them here too, if the pipe waits for the answer
//! (`InvocationType: REQUEST_RESPONSE`).
//!
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-batching-concurrency.html>

use std::borrow::Cow;

use lambda_idempotency_core::{
    call::RecordId,
    outcome::{Outcome, Rejection},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Event, Identity, Record, Source, active_mq, dynamodb,
    event::{Member, object, takes_all, text},
    kafka, kinesis, rabbit_mq,
    response::{Item, all_or_error, partial},
    sqs,
};
use crate::{
    error::InvocationError,
    operation::{Kind, Operation},
};

pub(crate) struct Pipe;

const NAME: &str = "pipe";

#[derive(Default, Deserialize)]
struct Origin<'e> {
    #[serde(rename = "eventSource", borrow, default)]
    source: Member<'e>,
    #[serde(rename = "eventSourceARN", alias = "eventSourceArn", borrow, default)]
    arn: Member<'e>,
    /// A queue of RabbitMQ.
    #[serde(rename = "eventSourceKey", borrow, default)]
    key: Member<'e>,
    #[serde(rename = "bootstrapServers", borrow, default)]
    servers: Member<'e>,
}

/// Where a pipe takes its records from.
#[derive(Clone, Copy)]
enum From {
    Sqs,
    Kinesis,
    DynamoDb,
    Kafka,
    ActiveMq,
    RabbitMq,
}

impl From {
    /// What the ARN of its records names.
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

impl Source for Pipe {
    fn name(&self) -> &'static str {
        NAME
    }

    fn identity(&self) -> &'static Identity {
        &Identity {
            parts: "that of the record's own source",
            catches: "what that of the record's own source does, and retries by the pipe",
            misses: "what that of the record's own source does",
        }
    }

    /// An empty list may be anyone's, as an empty batch.
    fn recognises(&self, event: &Event<'_>, operation: &Operation) -> bool {
        event.items.as_ref().is_some_and(|items| {
            items.first().is_none_or(|first| {
                let found = |item| {
                    let origin: Origin<'_> = object(Some(item));
                    (origin.from(), text(origin.arn))
                };
                let (from, arn) = found(first);
                from.is_some_and(|from| {
                    operation.takes(&[(from.kind(), arn.as_deref())])
                        && takes_all(items, operation, |item| {
                            let (from, arn) = found(item);
                            (from.map_or(Kind::Queue, From::kind), arn)
                        })
                })
            })
        })
    }

    fn records<'e>(&self, event: &Event<'e>, operation: &Operation) -> Vec<Record<'e>> {
        event.items.iter().flatten().map(|raw| read(raw, operation)).collect()
    }

    fn respond(
        &self,
        _: &Event<'_>,
        records: &[Record<'_>],
        outcomes: &[Outcome],
    ) -> Result<Box<RawValue>, InvocationError> {
        match records.first().map(|first| &first.item) {
            None | Some(Some(Item::Sequence(_))) => partial(NAME, None, records, outcomes),
            Some(Some(Item::Message(_))) => sqs::respond(records, outcomes),
            // Partial responses of pipes are for queues and streams only.
            Some(Some(Item::Offset { .. }) | None) => all_or_error(NAME, records, outcomes),
        }
    }
}

fn read<'e>(raw: &'e RawValue, operation: &Operation) -> Record<'e> {
    let origin: Origin<'_> = object(Some(raw));
    let arn = || text(origin.arn).unwrap_or_default();
    match origin.from() {
        Some(From::Sqs) => sqs::read(raw),
        Some(From::Kinesis) => kinesis::read(raw, operation),
        Some(From::DynamoDb) => dynamodb::read(raw, operation),
        Some(From::Kafka) => kafka::read(
            raw,
            &kafka::cluster(text(origin.arn), text(origin.servers)),
            None,
            operation,
        ),
        Some(From::ActiveMq) => active_mq::read(raw, &arn()),
        Some(From::RabbitMq) => {
            rabbit_mq::read(raw, &arn(), text(origin.key).unwrap_or(Cow::Borrowed("")))
        }
        None => {
            let payload = Err(Rejection::NoPayload("eventSource of a pipe"));
            Record::new(RecordId::new(NAME, ""), raw, payload)
        }
    }
}
