//! EventBridge Pipes: a list of records, each almost as its own source delivers it.
//!
//! A record from a pipe has the same default key as one that its source delivers directly, because
//! it is the same work. Queues and streams have partial batch responses here, too, if the pipe
//! waits for the response (`InvocationType: REQUEST_RESPONSE`). A pipe identifies a stream's record
//! by its `eventID`; Lambda's own event source mapping uses the sequence number.
//!
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-batching-concurrency.html>

use lambda_idempotency_core::outcome::Outcome;
use lambda_idempotency_engine::call::RecordId;
use lambda_idempotency_keys::View;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Changes, DynamoDb, Event, Identity, Record, Source, active_mq, dynamodb,
    event::{Member, id, object, takes_all, text},
    kafka, kinesis, rabbit_mq,
    record::Item,
    response::{all_or_error, partial},
    sqs,
};
use crate::{
    error::InvocationError,
    operation::{Kind, Operation},
    rejection::Rejection,
};

pub(crate) struct Pipe;

const NAME: &str = "pipe";
/// The members of every source that differ when a record is delivered again.
const VOLATILE: &[&str] =
    &["receiptHandle", "attributes.ApproximateReceiveCount", "redelivered", "brokerOutTime"];

#[derive(Default, Deserialize)]
struct Origin<'e> {
    /// The pipe's identifier for a record of a stream.
    #[serde(rename = "eventID", borrow, default)]
    id: Member<'e>,
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

/// The source of a pipe.
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

impl Source for Pipe {
    fn name(&self) -> &'static str {
        NAME
    }

    /// The members of the records' own source; of all sources, if no filter shows which one it is.
    fn volatile(&self, operation: &Operation) -> &'static [&'static str] {
        if operation.is_from("queue") {
            sqs::VOLATILE
        } else if operation.is_from("broker") {
            // Those of RabbitMQ are among them, and Kafka has none of these members.
            active_mq::VOLATILE
        } else if operation.is_filtered() {
            &[]
        } else {
            VOLATILE
        }
    }

    fn changes(
        &self,
        operation: &Operation,
        view: View,
        reads: &[String],
    ) -> Option<&'static Changes> {
        let is_of_table = operation.is_from("source_table")
            || (view == View::Record && reads.iter().any(|path| path.starts_with("dynamodb.")));
        if is_of_table { DynamoDb.changes(operation, view, reads) } else { None }
    }

    fn identity(&self) -> &'static Identity {
        &Identity {
            parts: "as for the record's own source",
            catches: "as for the record's own source; also retries by the pipe",
            misses: "as for the record's own source",
        }
    }

    /// Accepts an empty list, like an empty batch.
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
        event: &Event<'_>,
        records: &[Record<'_>],
        outcomes: &[Outcome],
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

fn read<'e>(raw: &'e RawValue, operation: &Operation) -> Record<'e> {
    let origin: Origin<'_> = object(Some(raw));
    let by_event_id =
        |record| Record { item: id(origin.id).map(|id| Item::Id(id.into_owned())), ..record };
    match origin.from() {
        Some(From::Sqs) => sqs::read(raw),
        Some(From::Kinesis) => by_event_id(kinesis::read(raw, operation)),
        Some(From::DynamoDb) => by_event_id(dynamodb::read(raw, operation)),
        Some(From::Kafka) => {
            let cluster = kafka::cluster(text(origin.arn), text(origin.servers));
            Record { item: None, ..kafka::read(raw, &cluster, None, operation) }
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
    fn without_a_filter_the_members_of_every_source_are_volatile() {
        let operation = Operation::new("place");
        let sources: [&dyn Source; 6] = [
            &super::super::Sqs,
            &super::super::Kinesis,
            &DynamoDb,
            &super::super::Kafka,
            &super::super::ActiveMq,
            &super::super::RabbitMq,
        ];
        for member in sources.iter().flat_map(|source| source.volatile(&operation)) {
            assert!(VOLATILE.contains(member), "{member}");
        }
    }
}
