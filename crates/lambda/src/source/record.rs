//! One record of an event, in the form that all sources produce.

use std::{borrow::Cow, sync::Arc};

use lambda_idempotency_engine::{
    call::RecordId,
    delivered::{Messaging, Reads},
};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use crate::{decode::Format, rejection::Rejection};

/// One record of an event.
#[derive(Clone)]
pub(crate) struct Record<'e> {
    pub(crate) id: RecordId,
    /// The record as AWS delivers it; for Kafka, as key expressions see it.
    pub(crate) raw: Cow<'e, str>,
    /// The payload for the handler.
    pub(crate) payload: Result<Cow<'e, str>, Rejection>,
    /// The form of the payload: a part of the event's JSON, unless the source carries texts.
    pub(crate) format: Format,
    /// The original text of the payload, where `payload` does not contain it: the base64 text, the
    /// text without the expected envelope, or the payload that `whole_record` replaced.
    pub(crate) body: Option<Cow<'e, str>>,
    /// The values that stay the same when the record is delivered again, and that no other record
    /// has.
    pub(crate) identity: Result<Vec<Cow<'e, str>>, Rejection>,
    /// Its order group, if the source keeps an order.
    pub(crate) group: Option<Arc<str>>,
    /// How often it was received, including this time, if its source counts that. Among records
    /// without a group, the one that was received most often starts first, because it is closest to
    /// the source's limit.
    pub(crate) receives: Option<u32>,
    /// Reads the attributes that the producer attached to the record, and the trace header that the source
    /// adds, if the source has them.
    pub(crate) reads: Reads,
    /// Its identifier in a partial batch response, if it has one.
    pub(crate) item: Option<Item>,
}

impl<'e> Record<'e> {
    /// A record with this id, without an order group and without an identifier for partial batch
    /// responses.
    pub(super) fn new(
        id: RecordId,
        raw: &'e RawValue,
        payload: Result<Cow<'e, str>, Rejection>,
    ) -> Self {
        Self {
            id,
            raw: Cow::Borrowed(raw.get()),
            payload,
            format: Format::Json,
            body: None,
            identity: Err(Rejection::NoIdentity("id")),
            group: None,
            receives: None,
            reads: Reads::default(),
            item: None,
        }
    }

    /// The record's content, whether it can be read or not. It stays the same at each delivery. `None` if the record has
    /// none.
    pub(crate) fn content(&self) -> Option<&str> {
        self.body.as_deref().or(self.payload.as_deref().ok())
    }

    /// The record without its `volatile` members: it stays the same at each delivery.
    pub(crate) fn stable(&self, volatile: &[&str]) -> Cow<'_, str> {
        match serde_json::from_str::<Value>(&self.raw) {
            Ok(mut record) if !volatile.is_empty() => {
                for path in volatile {
                    remove(&mut record, path);
                }
                Cow::Owned(record.to_string())
            }
            // A record that cannot be read: two ids for its sink are better than one that another record has.
            _ => Cow::Borrowed(&*self.raw),
        }
    }
}

/// Removes a member, by the names on the way to it, with dots between them.
fn remove(record: &mut Value, path: &str) {
    let (outer, name) =
        path.rsplit_once('.').map_or((None, path), |(outer, name)| (Some(outer), name));
    let mut names = outer.into_iter().flat_map(|outer| outer.split('.'));
    if let Some(Value::Object(members)) = names.try_fold(record, |value, name| value.get_mut(name))
    {
        members.remove(name);
    }
}

/// The identity of a record of this source: the values of these members. If one is missing or empty, records of different
/// origins could share the rest, so it is none.
pub(super) fn identity_of<'e, const N: usize>(
    source: &'static str,
    members: [(&'static str, Option<Cow<'e, str>>); N],
) -> Result<Vec<Cow<'e, str>>, Rejection> {
    let mut parts = Vec::with_capacity(N + 1);
    parts.push(Cow::Borrowed(source));
    for (name, value) in members {
        let value = value.filter(|value| !value.is_empty());
        parts.push(value.ok_or(Rejection::NoIdentity(name))?);
    }
    Ok(parts)
}

/// How logs and errors name a record: by its id, if it has one, and its origin.
pub(super) fn record_id(source: &'static str, id: Option<&str>, arn: &str) -> RecordId {
    RecordId::new(source, id.unwrap_or_default()).with_arn(Some(Arc::from(arn)))
}

/// Lets neighbours that are of one origin share its name: usually all records of an event are.
pub(crate) fn share_arns(records: &mut [Record<'_>]) {
    let mut last: Option<Arc<str>> = None;
    for record in records {
        match (&last, &mut record.id.arn) {
            (Some(last), Some(arn)) if last == arn => *arn = Arc::clone(last),
            (_, arn) => last.clone_from(arn),
        }
    }
}

/// The identifier of a record in a partial batch response.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub(crate) enum Item {
    /// A message id, a sequence number, or the event id of a stream's record in a pipe.
    Id(String),
    /// An offset in a Kafka partition.
    Offset {
        /// Topic and partition, as the event contains them: `orders-0`.
        partition: String,
        /// The offset.
        offset: u64,
    },
}

/// Describes a record in OpenTelemetry's [conventions for messaging]; `None` if its source is not one of messages.
///
/// [conventions for messaging]: https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/
///
/// The conventions name the systems `aws_sqs`, `aws.sns`, `kafka`, `rabbitmq` and `activemq`; the others are named
/// like SNS.
pub(crate) fn messaging(record: &RecordId) -> Option<Messaging<'_>> {
    let arn = record.arn.as_deref().unwrap_or_default();
    let resource = arn.rsplit(':').next().filter(|name| !name.is_empty());
    // An id that an application has chosen has another label.
    let id = Some(&*record.id).filter(|id| !id.is_empty() && *id == record.label());
    let (system, destination, message_id) = match record.source {
        "sqs" => ("aws_sqs", resource, id),
        "sns" => ("aws.sns", resource, id),
        // The event does not name its bus.
        "eventbridge" => ("aws.eventbridge", None, id),
        "kinesis" => ("aws.kinesis", resource.and_then(|name| name.strip_prefix("stream/")), id),
        // The id is `topic-partition@offset`.
        "kafka" => ("kafka", topic(&record.id), None),
        // The ARN is that of the broker.
        "rabbitmq" => ("rabbitmq", None, id),
        "activemq" => ("activemq", None, id),
        _ => return None,
    };
    Some(Messaging { system, destination, message_id })
}

fn topic(id: &str) -> Option<&str> {
    let (partition, _) = id.rsplit_once('@')?;
    partition.rsplit_once('-').map(|(topic, _)| topic)
}
