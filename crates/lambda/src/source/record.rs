//! One record of an event, in the form that all sources produce, and how the members of its JSON are read: texts, lists,
//! objects, bytes.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_idempotency_engine::{
    call::RecordId,
    delivered::{Messaging, Reads},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
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

/// A member of an object, of whatever type; `None` if it is missing or `null`.
pub(super) type Member<'e> = Option<&'e RawValue>;

/// Declares an object of which these members are read, each by its name in JSON and maybe another one.
macro_rules! json_object {
    ($vis:vis struct $name:ident {
        $($(#[$doc:meta])* $field:ident $(: $json:literal $(| $alias:literal)?)?),* $(,)?
    }) => {
        #[derive(Default, serde::Deserialize)]
        $vis struct $name<'e> {$(
            $(#[$doc])*
            #[serde($(rename = $json, $(alias = $alias,)?)? borrow, default)]
            $field: $crate::source::record::Member<'e>,
        )*}
    };
}

pub(super) use json_object;

/// A string, borrowed if it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'e>(#[serde(borrow)] pub(super) Cow<'e, str>);

/// A member that is a string, borrowed if it has no escapes.
pub(super) fn text(member: Member<'_>) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(member?.get()).ok().map(|text| text.0)
}

/// A member that is a string, a number or a boolean, as text.
pub(super) fn scalar(member: Member<'_>) -> Option<String> {
    let raw = member?.get();
    let plain = !raw.starts_with(['"', '{', '[']) && raw != "null";
    if plain { Some(raw.to_owned()) } else { text(member).map(Cow::into_owned) }
}

/// A nested member, by the names on the path to it.
pub(super) fn descend<'e>(json: &'e str, names: &[&str]) -> Member<'e> {
    if !names.iter().all(|name| may_name(json, name)) {
        return None;
    }
    let whole = serde_json::from_str(json).ok()?;
    names.iter().try_fold(whole, |raw: &RawValue, name| {
        object::<BTreeMap<String, &RawValue>>(Some(raw)).remove(*name)
    })
}

/// Whether a member of this JSON, or of an object in it, may have this name. Found without parsing, because each
/// handler's span looks for a trace context that most records do not have.
fn may_name(json: &str, name: &str) -> bool {
    // Only `\u0061` and the like can stand for these.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    json.contains(name) || !name.bytes().all(plain) || json.contains(r"\u")
}

/// Text that is delivered as a list of bytes, in which bytes above 127 are negative numbers.
pub(super) fn text_of_bytes(numbers: &[i16]) -> Option<String> {
    let bytes = numbers.iter().map(|number| {
        u8::try_from(*number).or_else(|_| i8::try_from(*number).map(i8::cast_unsigned))
    });
    String::from_utf8(bytes.collect::<Result<_, _>>().ok()?).ok()
}

/// A member that is a string and not empty: an empty id would be the same for all records.
pub(super) fn id(member: Member<'_>) -> Option<Cow<'_, str>> {
    text(member).filter(|id| !id.is_empty())
}

/// A member that is a list.
pub(super) fn list(member: Member<'_>) -> Option<Vec<&RawValue>> {
    let text = member?.get();
    // An error would be made first, with its line and column.
    if text.starts_with('[') { serde_json::from_str(text).ok() } else { None }
}

/// The members of an object by name, in its order. A name that occurs twice is there twice: what it contains must not count as
/// done.
pub(super) fn named(member: Member<'_>) -> Option<Vec<(String, &RawValue)>> {
    struct Named;

    impl<'e> Visitor<'e> for Named {
        type Value = Vec<(String, &'e RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'e>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(member) = members.next_entry()? {
                found.push(member);
            }
            Ok(found)
        }
    }

    serde_json::Deserializer::from_str(member?.get()).deserialize_map(Named).ok()
}

/// A member that is an object; the default, without members, if it is not.
pub(super) fn object<'e, T: Deserialize<'e> + Default>(member: Member<'e>) -> T {
    member.and_then(members).unwrap_or_default()
}

/// The members of an object. Arrays are refused, because `serde` would read their items as members
/// in order.
pub(super) fn members<'e, T: Deserialize<'e>>(value: &'e RawValue) -> Option<T> {
    if !value.get().starts_with('{') {
        return None;
    }
    serde_json::from_str(value.get()).ok()
}

/// The items of a member that is a list; `None` if it is something else. Something else is read as a value, so the object
/// around it cannot be read if that is half a surrogate pair, or a number beyond the range of doubles. No source has one there.
pub(super) fn items<'e, D: Deserializer<'e>>(
    member: D,
) -> Result<Option<Vec<&'e RawValue>>, D::Error> {
    struct Items;

    impl<'e> Visitor<'e> for Items {
        type Value = Option<Vec<&'e RawValue>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }

        fn visit_seq<A: SeqAccess<'e>>(self, items: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(items)).map(Some)
        }

        fn visit_map<A: MapAccess<'e>>(self, members: A) -> Result<Self::Value, A::Error> {
            IgnoredAny::deserialize(MapAccessDeserializer::new(members)).map(|_| None)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(None)
        }
    }

    member.deserialize_any(Items)
}

/// The text of the base64 in the member with this name.
pub(super) fn base64_text<'e>(
    base64: Option<Cow<'e, str>>,
    member: &'static str,
) -> Result<Cow<'e, str>, Rejection> {
    let base64 = base64.ok_or(Rejection::NoMember(member))?;
    base64_decode(&base64).map(Cow::Owned).ok_or(Rejection::NotText(member))
}

/// The text, if the bytes are UTF-8.
pub(super) fn base64_decode(base64: &str) -> Option<String> {
    base64_bytes(base64).and_then(|bytes| String::from_utf8(bytes).ok())
}

pub(super) fn base64_bytes(base64: &str) -> Option<Vec<u8>> {
    STANDARD.decode(base64).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Around<'e> {
        #[serde(borrow, default, deserialize_with = "items")]
        list: Option<Vec<&'e RawValue>>,
        after: u8,
    }

    #[test]
    fn what_is_not_a_list_counts_as_missing() {
        for other in ["null", "true", "-1", "1", "1.5", r#""a\u0062""#, r#"{"a":[{"b":1}]}"#] {
            let json = format!(r#"{{"list":{other},"after":7}}"#);
            let read: Around<'_> = serde_json::from_str(&json).unwrap();
            assert!(read.list.is_none() && read.after == 7, "{json}");
        }
    }

    #[test]
    fn a_list_has_its_items_as_they_are_written() {
        let read: Around<'_> = serde_json::from_str(r#"{"list":[1,{"a": 2}],"after":7}"#).unwrap();
        let items: Vec<&str> = read.list.iter().flatten().map(|item| item.get()).collect();
        assert_eq!((items, read.after), (vec!["1", r#"{"a": 2}"#], 7));
    }

    #[test]
    fn a_member_is_found_however_its_name_is_written() {
        for (json, name) in [
            (r#"{"a":{"traceparent":"x"}}"#, "traceparent"),
            (r#"{"a":{"tr\u0061ceparent":"x"}}"#, "traceparent"),
            (r#"{"a":{"a\/b":"x"}}"#, "a/b"),
            (r#"{"a":{"\"":"x"}}"#, "\""),
        ] {
            assert_eq!(text(descend(json, &["a", name])).as_deref(), Some("x"), "{json}");
        }
        for absent in [r#"{"a":{"body":"traceparent"}}"#, r#"{"a":{}}"#, "[1]", "{"] {
            assert!(descend(absent, &["a", "traceparent"]).is_none(), "{absent}");
        }
    }
}
