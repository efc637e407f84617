//! The outermost members of an event, which show its source.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    filter::Kind,
    record::{Member, items, json_object, list, object, text},
    settings::Settings,
};

/// The outermost members of an event.
///
/// A member of an unexpected type counts as missing. It must not make the rest of the event
/// unreadable.
pub(crate) struct Event<'e> {
    /// The whole event.
    pub(crate) raw: &'e RawValue,
    /// The request id, which stays the same when Lambda retries an asynchronous invocation.
    pub(super) request_id: &'e str,
    /// Its members, if it is an object.
    pub(super) outside: Outside<'e>,
    /// `Records`, if that is a list: parsed once for all sources.
    pub(super) records: Option<Vec<&'e RawValue>>,
    /// The items of the event, if it is itself a list.
    pub(super) items: Option<Vec<&'e RawValue>>,
    /// Where these were in the list, if it has been divided.
    pub(crate) places: Option<Vec<usize>>,
}

impl<'e> Event<'e> {
    /// The same event with this record alone, if the record is an item of a list; otherwise the whole event.
    pub(crate) fn with_record_alone(&self, raw: &str) -> Option<Cow<'e, RawValue>> {
        // Items are slices of the event, in its order.
        let is_in = |list: &Option<Vec<&RawValue>>| {
            let found = list
                .as_ref()
                .map(|list| list.binary_search_by_key(&raw.as_ptr(), |item| item.get().as_ptr()));
            found.is_some_and(|found| found.is_ok())
        };
        let text = if is_in(&self.records) {
            format!(r#"{{"Records":[{raw}]}}"#)
        } else if is_in(&self.items) {
            format!("[{raw}]")
        } else {
            return Some(Cow::Borrowed(self.raw));
        };
        RawValue::from_string(text).ok().map(Cow::Owned)
    }
}

#[derive(Default, Deserialize)]
pub(super) struct Outside<'e> {
    /// Its items, read together with the other members: they are nearly all of an event.
    #[serde(rename = "Records", borrow, default, deserialize_with = "items")]
    list: Option<Vec<&'e RawValue>>,
    /// Kafka: lists of records by partition.
    #[serde(borrow, default)]
    pub(super) records: Member<'e>,
    /// ActiveMQ: a list.
    #[serde(borrow, default)]
    pub(super) messages: Member<'e>,
    /// DocumentDB: a list.
    #[serde(borrow, default)]
    pub(super) events: Member<'e>,
    /// RabbitMQ: lists by queue.
    #[serde(rename = "rmqMessagesByQueue", borrow, default)]
    pub(super) queues: Member<'e>,
    /// The event source, if it is an outermost member.
    #[serde(rename = "eventSource", borrow, default)]
    pub(super) event_source: Member<'e>,
    #[serde(rename = "eventSourceArn", alias = "eventSourceARN", borrow, default)]
    pub(super) arn: Member<'e>,
    #[serde(rename = "bootstrapServers", borrow, default)]
    pub(super) servers: Member<'e>,
    #[serde(rename = "detail-type", borrow, default)]
    pub(super) detail_type: Member<'e>,
    #[serde(borrow, default)]
    pub(super) source: Member<'e>,
    #[serde(rename = "scheduleArn", borrow, default)]
    pub(super) schedule: Member<'e>,
    #[serde(rename = "scheduledTime", borrow, default)]
    pub(super) scheduled: Member<'e>,
    /// The state of a tumbling window.
    #[serde(borrow, default)]
    pub(super) state: Member<'e>,
    #[serde(borrow, default)]
    pub(super) window: Member<'e>,
    /// `s3:TestEvent`.
    #[serde(rename = "Event", borrow, default)]
    pub(super) event: Member<'e>,
    #[serde(rename = "Bucket", borrow, default)]
    pub(super) bucket: Member<'e>,
}

// The members by which a record names its source.
json_object!(struct Origin {
    source: "eventSource" | "EventSource", arn: "eventSourceARN", sns: "Sns", s3,
});

json_object!(struct Topic { arn: "TopicArn" });
json_object!(struct Notification { bucket });
json_object!(struct Bucket { arn });

impl<'e> Origin<'e> {
    fn of(record: &'e RawValue) -> Self {
        object(Some(record))
    }

    /// The queue, topic, stream or bucket.
    fn arn(&self) -> Option<Cow<'e, str>> {
        text(self.arn)
            .or_else(|| text(object::<Topic<'_>>(self.sns).arn))
            .or_else(|| text(object::<Bucket<'_>>(object::<Notification<'_>>(self.s3).bucket).arn))
    }
}

impl<'e> Event<'e> {
    /// Reads the outermost members of an event.
    pub(crate) fn read(raw: &'e RawValue, request_id: &'e str) -> Self {
        let mut outside: Outside<'e> = object(Some(raw));
        let records = outside.list.take();
        Self { raw, request_id, records, items: list(Some(raw)), outside, places: None }
    }

    /// Its `Records`; none if it has no such list.
    pub(super) fn records(&self) -> &[&'e RawValue] {
        self.records.as_deref().unwrap_or_default()
    }

    /// Whether its `Records` are from this event source, and all of them pass the filters of
    /// `operation`. `kind` is the kind of resource that their ARN names.
    ///
    /// An empty batch can only be recognised by its ARN, which windows of streams have. Without an
    /// ARN every source accepts it, because it contains no work.
    pub(super) fn delivers(&self, source: &str, kind: Kind, settings: &Settings) -> bool {
        let Some(records) = &self.records else { return false };
        let Some(first) = records.first() else {
            return text(self.outside.arn).is_none_or(|arn| {
                let service = source.strip_prefix("aws:").unwrap_or(source);
                arn.split(':').nth(2) == Some(service) && settings.takes(&[(kind, Some(&arn))])
            });
        };
        let first = Origin::of(first);
        text(first.source).is_some_and(|found| found == source)
            && settings.takes(&[(kind, first.arn().as_deref())])
            && takes_all(records, settings, |record| (kind, Origin::of(record).arn()))
    }

    /// Divides a list of events into those that `takes` accepts and the others, if there are any.
    /// An event that is not a list is not divided.
    pub(super) fn divide(mut self, takes: impl Fn(&RawValue) -> bool) -> (Self, Option<Self>) {
        let Some(items) = self.items.take() else { return (self, None) };
        let places = self.places.take().unwrap_or_else(|| (0..items.len()).collect());
        let all = places.into_iter().zip(items);
        let (taken, others): (Vec<_>, Vec<_>) = all.partition(|(_, item)| takes(item));
        let (taken_places, taken) = taken.into_iter().unzip();
        let (other_places, others): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        let rest = (!others.is_empty()).then(|| Self {
            items: Some(others),
            records: None,
            outside: Outside::default(),
            places: Some(other_places),
            ..self
        });
        (Self { items: Some(taken), places: Some(taken_places), ..self }, rest)
    }

    /// The state that a tumbling window of a stream passes from call to call, if the event belongs
    /// to one.
    pub(super) fn window_state(&self) -> Option<&'e RawValue> {
        self.outside.window.and(self.outside.state)
    }

    /// Describes the event in a clause. Its only values in it are the names of a source and of a kind of event, each
    /// short and without control characters.
    pub(crate) fn describe(&self) -> String {
        if let Some(items) = self.items.as_deref().filter(|items| !items.is_empty()) {
            let first: Outside<'_> = object(items.first().copied());
            if let (Some(kind), Some(source)) = (text(first.detail_type), text(first.source)) {
                let events = items.len();
                let (kind, source) = (shown(&kind), shown(&source));
                return format!(
                    "it is a list of {events} events, of which the first is an EventBridge event \
                     \"{kind}\" from \"{source}\""
                );
            }
            let origin = items.first().map(|first| Origin::of(first)).unwrap_or_default();
            if let Some(source) = text(origin.source) {
                let from = from(origin.arn().as_deref());
                let (records, source) = (items.len(), shown(&source));
                return format!(
                    "it is a list of {records} records, of which the first is of event source \"{source}\"{from}"
                );
            }
        }
        if !self.raw.get().starts_with('{') {
            return "it is not a JSON object".to_owned();
        }
        if let Some(records) = &self.records {
            return match records.first().map(|first| Origin::of(first)) {
                None => "its list of `Records` is empty".to_owned(),
                Some(origin) => match text(origin.source) {
                    Some(source) => format!(
                        "it contains `Records` of event source \"{}\"{}",
                        shown(&source),
                        from(origin.arn().as_deref())
                    ),
                    None => "it contains `Records` without an event source".to_owned(),
                },
            };
        }
        let outside = &self.outside;
        if let Some(detail_type) = text(outside.detail_type) {
            let source = text(outside.source).unwrap_or_default();
            let (kind, source) = (shown(&detail_type), shown(&source));
            return format!("it is an EventBridge event \"{kind}\" from \"{source}\"");
        }
        match text(outside.event_source) {
            Some(source) => {
                let arn = text(outside.arn);
                format!("its event source is \"{}\"{}", shown(&source), from(arn.as_deref()))
            }
            None => "it has neither `Records` nor a `detail-type` nor an `eventSource` (an `Input` of one's own hides the \
                     event of a rule, and that of a schedule needs its `scheduleArn` and `scheduledTime`)"
                .to_owned(),
        }
    }
}

/// Where something is from, if that is known.
fn from(arn: Option<&str>) -> String {
    arn.map_or_else(String::new, |arn| format!(" from {}", shown(arn)))
}

/// A name of AWS's, of a few dozen characters, as errors show it: anybody may have sent what stands in its place.
pub(super) fn shown(name: &str) -> String {
    const LONGEST: usize = 256;
    let mut shown: String = name.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if name.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    shown
}

/// Whether every record that names its origin passes the filters of `settings`. A record that does
/// not name it is a bad record, and fails alone.
pub(super) fn takes_all<'e>(
    records: &[&'e RawValue],
    settings: &Settings,
    origin: impl Fn(&'e RawValue) -> (Kind, Option<Cow<'e, str>>),
) -> bool {
    !settings.is_filtered()
        || records.iter().all(|record| {
            let (kind, arn) = origin(record);
            arn.filter(|arn| !arn.is_empty())
                .is_none_or(|arn| settings.takes(&[(kind, Some(&arn))]))
        })
}
