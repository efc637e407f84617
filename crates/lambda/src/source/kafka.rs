//! Kafka, Amazon MSK or self-managed: records of one or more partitions, each in order. The
//! response contains a checkpoint for each partition.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-kafka-configure.html>

use std::{borrow::Cow, fmt::Write as _, sync::Arc};

use lambda_idempotency_engine::{
    call::RecordId,
    delivered::{ReadFunctions, Reads},
};
use serde_json::{Value, value::RawValue};

use super::{
    contract::{About, EventSource, partial},
    event::Event,
    filter::Kind,
    record::{
        Item, Member, Record, base64_bytes, base64_decode, descend, id, json_object, list, named,
        object, text, text_of_bytes,
    },
    settings::{KeepOrder, Settings, source},
    sink::RecordEnd,
};
use crate::{decode::Format, error::InvocationError, rejection::Rejection};

source! {
    /// Records of a Kafka topic, in the order of their partitions; the payload is their value as text, `null` for a
    /// tombstone.
    ///
    /// Needs provisioned mode and `FunctionResponseTypes: [ReportBatchItemFailures]`, or
    /// [`without_partial_responses`](Self::without_partial_responses).
    Kafka => KafkaEvents; payload messages batches partial ordered
}

/// # Which records
impl Kafka {
    /// Takes only records of this topic, by its name. Default: all topics. If two clusters have topics of the same name,
    /// add [`broker`](Self::broker).
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.0.only_from(Kind::Topic, topic.into());
        self
    }

    /// Takes only records of this cluster, by its name or ARN. Default: all clusters.
    pub fn broker(mut self, broker: impl Into<String>) -> Self {
        self.0.only_from(Kind::Broker, broker.into());
        self
    }
}

const NAME: &str = "kafka";

json_object!(struct Delivered {
    topic, partition,
    /// Topic and partition, in a pipe.
    topic_partition: "eventSourceKey", offset, timestamp, key, value, headers,
});

impl EventSource for KafkaEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "cluster (its ARN, or its bootstrap servers), topic, partition, offset, timestamp",
            catches: "everything that Lambda delivers again: records behind a checkpoint, halves of \
                      a batch, whole batches; also a reset of offsets within the retention",
            misses: "a producer that sends twice, mirrored topics, and other bootstrap servers for \
                     the same cluster",
            volatile: &[],
            is_cause_of_invocation: false,
        }
    }

    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        let source = text(event.outside.event_source);
        let is_kafka = matches!(
            source.as_deref(),
            Some("aws:kafka" | "aws:SelfManagedKafka" | "SelfManagedKafka")
        );
        is_kafka
            && partitions(event).is_some_and(|partitions| {
                let arn = text(event.outside.arn);
                let cluster = (Kind::Broker, arn.as_deref());
                let takes = |partition: &String| {
                    let topic = partition.rsplit_once('-').map(|(topic, _)| topic);
                    settings.takes(&[cluster, (Kind::Topic, topic)])
                };
                if partitions.is_empty() {
                    return settings.takes(&[cluster]);
                }
                partitions.iter().map(|(partition, _)| partition).all(takes)
            })
    }

    fn records<'e>(&self, event: &Event<'e>, settings: &Settings) -> Vec<Record<'e>> {
        let cluster = cluster(text(event.outside.arn), text(event.outside.servers));
        let mut records = Vec::new();
        for (partition, entries) in partitions(event).unwrap_or_default() {
            let Some(entries) = list(Some(entries)) else {
                // Its records must not count as done.
                let id = RecordId::new(NAME, partition);
                let payload = Err(Rejection::NoList);
                records.push(Record::new(id, entries, payload));
                continue;
            };
            let entries = entries.into_iter();
            records.extend(entries.map(|raw| read(raw, &cluster, Some(&partition), settings)));
        }
        records
    }

    fn respond(
        &self,
        _: &Event<'_>,
        records: &[Record<'_>],
        outcomes: &[RecordEnd],
    ) -> Result<Box<RawValue>, InvocationError> {
        partial(NAME, None, records, outcomes)
    }
}

/// The lists of records, by topic and partition.
fn partitions<'e>(event: &Event<'e>) -> Option<Vec<(String, &'e RawValue)>> {
    named(event.outside.records)
}

/// The cluster's name: its ARN, or its bootstrap servers in sorted order. Empty if neither is known.
pub(super) fn cluster<'e>(
    arn: Option<Cow<'e, str>>,
    servers: Option<Cow<'e, str>>,
) -> Cow<'e, str> {
    arn.filter(|arn| !arn.is_empty()).unwrap_or_else(|| {
        let servers = servers.unwrap_or_default();
        let servers = servers.split(',').map(str::trim);
        let mut servers: Vec<_> = servers.filter(|server| !server.is_empty()).collect();
        servers.sort_unstable();
        Cow::Owned(servers.join(","))
    })
}

/// Whether a pipe's record is of the cluster and the topic that the filters name.
pub(super) fn takes(raw: &RawValue, settings: &Settings) -> bool {
    json_object!(struct Origin {
        arn: "eventSourceARN" | "eventSourceArn", topic, topic_partition: "eventSourceKey",
    });
    let origin: Origin<'_> = object(Some(raw));
    let (topic, both) = (text(origin.topic), text(origin.topic_partition));
    let before = |both: &'_ str| both.rsplit_once('-').map(|(topic, _)| topic.to_owned());
    let topic = topic.map(Cow::into_owned).or_else(|| before(&both?));
    let cluster = text(origin.arn);
    settings.takes(&[(Kind::Broker, cluster.as_deref()), (Kind::Topic, topic.as_deref())])
}

/// Reads a record from the event's list for `partition`; `None` for pipes, which have no such
/// lists.
pub(super) fn read<'e>(
    raw: &'e RawValue,
    cluster: &Cow<'e, str>,
    partition: Option<&str>,
    settings: &Settings,
) -> Record<'e> {
    let delivered: Delivered<'_> = object(Some(raw));
    let number = |text: &str| text.parse::<u64>().ok();
    let offset = delivered.offset.and_then(|raw| number(raw.get()));
    // A text in one of AWS's samples of pipes.
    let own = delivered.partition.and_then(|raw| number(raw.get().trim_matches('"')));
    let named = (id(delivered.topic), own);
    let (partition, unknown) = match (partition, named) {
        (Some(partition), _) => (partition.to_owned(), None),
        (None, (Some(topic), Some(partition))) => (format!("{topic}-{partition}"), None),
        (None, (topic, _)) => match (id(delivered.topic_partition), topic) {
            (Some(both), _) => (both.into_owned(), None),
            (None, Some(topic)) => (topic.into_owned(), Some("partition")),
            (None, None) => (String::new(), Some("topic")),
        },
    };
    let unknown = if cluster.is_empty() { Some("bootstrapServers") } else { unknown };
    let decoded = Decoded::of(&delivered);
    // A tombstone: the value of this key was deleted.
    let format = if delivered.value.is_none() { Format::Json } else { Format::Text };
    let payload = match (&decoded.value, delivered.value) {
        (_, None) => Ok(Cow::Borrowed("null")),
        (Some(value), _) if !value.starts_with('\0') => Ok(Cow::Owned(value.clone())),
        (_, Some(bytes)) if is_framed(bytes) => Err(Rejection::Framed),
        (Some(value), _) => Ok(Cow::Owned(value.clone())),
        (None, Some(_)) => Err(Rejection::NotText("value")),
    };
    let group = match settings.order {
        Some(KeepOrder::Key) => Some(format!("{partition} {}", decoded.key)),
        Some(KeepOrder::None) => None,
        _ => Some(partition.clone()),
    };
    let name = offset.map_or_else(String::new, |offset| format!("{partition}@{offset}"));
    let record = RecordId::new(NAME, name).with_arn(Some(Arc::from(&**cluster)));
    Record {
        raw: Cow::Owned(decoded.record(raw, &delivered)),
        identity: match (unknown, offset) {
            (Some(member), _) => Err(Rejection::NoIdentity(member)),
            (None, None) => Err(Rejection::NoIdentity("offset")),
            // A topic that is deleted and created again starts with offset 0, but its records have
            // other timestamps.
            (None, Some(offset)) => Ok(vec![
                Cow::Borrowed(NAME),
                cluster.clone(),
                Cow::Owned(partition.clone()),
                Cow::Owned(offset.to_string()),
                delivered.timestamp.map(|time| Cow::Borrowed(time.get())).unwrap_or_default(),
            ]),
        },
        item: offset.map(|offset| Item::Offset { partition, offset }),
        group: group.map(Arc::from),
        reads: Reads::with(&READS),
        format,
        body: text(delivered.value),
        ..Record::new(record, raw, payload)
    }
}

/// The parts that are delivered in base64 or as lists of bytes, decoded.
struct Decoded {
    /// JSON: a string, `null`, or `{"base64":".."}` for bytes that are not text.
    key: Value,
    value: Option<String>,
    headers: serde_json::Map<String, Value>,
}

impl Decoded {
    fn of(delivered: &Delivered<'_>) -> Self {
        let key = text(delivered.key).map_or(Value::Null, |key| text_or_bytes(&key));
        let value = text(delivered.value).and_then(|value| base64_decode(&value));
        Self { key, value, headers: headers(delivered.headers) }
    }

    /// The record as key expressions see it: what is not decoded stays as it is delivered.
    fn record(&self, raw: &RawValue, delivered: &Delivered<'_>) -> String {
        let mut record = String::from("{");
        for (name, member) in named(Some(raw)).unwrap_or_default() {
            if !matches!(&*name, "key" | "value" | "headers") {
                // Writing to a string does not fail.
                let _ = write!(record, "{}:{},", Value::String(name), member.get());
            }
        }
        let value = match (&self.value, text(delivered.value)) {
            (Some(text), _) => Value::String(text.clone()),
            (None, Some(bytes)) => text_or_bytes(&bytes),
            (None, None) => Value::Null,
        };
        let headers = Value::Object(self.headers.clone());
        let _ = write!(record, r#""key":{},"value":{value},"headers":{headers}}}"#, self.key);
        record
    }
}

/// Whether a value begins as those that are written with a schema registry: a zero byte, and four of the schema's id.
fn is_framed(value: &RawValue) -> bool {
    let bytes = text(Some(value)).and_then(|value| base64_bytes(&value));
    bytes.is_some_and(|bytes| bytes.len() > 5 && bytes.first() == Some(&0))
}

/// A string if the bytes are text; otherwise an object, which cannot be confused with a string.
fn text_or_bytes(encoded: &str) -> Value {
    match base64_decode(encoded) {
        Some(text) => Value::String(text),
        None => Value::Object([("base64".to_owned(), encoded.into())].into_iter().collect()),
    }
}

/// Headers by name. A name that occurs several times has a list of its values, and bytes that are
/// not text stay a list of numbers.
///
/// They are delivered as objects that contain a list of bytes each; bytes above 127 are negative
/// numbers.
fn headers(delivered: Member<'_>) -> serde_json::Map<String, Value> {
    let mut headers = serde_json::Map::new();
    for entry in list(delivered).unwrap_or_default() {
        for (name, header) in named(Some(entry)).unwrap_or_default() {
            // A header that is no list of bytes stays as it is delivered.
            let value = match serde_json::from_str::<Vec<i16>>(header.get()) {
                Ok(numbers) => {
                    text_of_bytes(&numbers).map_or_else(|| Value::from(numbers), Value::String)
                }
                Err(_) => serde_json::from_str(header.get()).unwrap_or_default(),
            };
            match headers.get_mut(&name) {
                None => drop(headers.insert(name, Value::Array(vec![value]))),
                Some(Value::Array(values)) => values.push(value),
                Some(_) => {}
            }
        }
    }
    for values in headers.values_mut() {
        if let Value::Array(found) = values
            && found.len() == 1
            && let Some(value) = found.pop()
        {
            *values = value;
        }
    }
    headers
}

const READS: ReadFunctions = ReadFunctions { attribute: Some(attribute), trace_header: None };

/// A header; the last one if its name occurs several times. See [`headers`].
fn attribute(record: &str, name: &str) -> Option<String> {
    let header = descend(record, &["headers", name]);
    let header = text(header).or_else(|| text(list(header)?.pop()));
    header.map(Cow::into_owned)
}
