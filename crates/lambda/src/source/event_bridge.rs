//! EventBridge: one event for each invocation or, from a custom bus, a list of events. Lambda
//! retries the invocation as a whole if it returns an error.
//!
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html>,
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-target-lambda.html>

use std::{borrow::Cow, slice};

use serde_json::value::RawValue;

use super::{
    contract::{About, EventSource},
    event::Event,
    filter::Kind,
    record::{Record, id, identity_of, json_object, object, record_id, text},
    settings::{Settings, source},
};
use crate::{decode::Format, rejection::Rejection};

source! {
    /// EventBridge events, alone or in the lists of a custom bus; the payload is their `detail`.
    EventBridge => EventBridgeEvents; payload batches unordered
}

/// # Which records
impl EventBridge {
    /// Takes only events with this `source`; together with [`detail_type`](Self::detail_type), only events with both.
    /// Default: all events.
    pub fn event_source(mut self, source: impl Into<String>) -> Self {
        self.0.only_from(Kind::EventSource, source.into());
        self
    }

    /// Takes only events with this `detail-type`. Default: all events.
    pub fn detail_type(mut self, detail_type: impl Into<String>) -> Self {
        self.0.only_from(Kind::DetailType, detail_type.into());
        self
    }
}

const NAME: &str = "eventbridge";

json_object!(struct BusEvent { id, detail_type: "detail-type", source, account, region, detail });

impl EventSource for EventBridgeEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "account, region, source, id",
            catches: "retries by Lambda and by EventBridge, and replay from an archive within the \
                      retention",
            misses: "a publisher that puts an event twice",
            volatile: &[],
            is_cause_of_invocation: true,
        }
    }

    /// A list may contain events of several kinds. One event of the operation is enough:
    /// [`divide`](Self::divide) selects it.
    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        events(event).iter().any(|event| takes(event, settings))
    }

    fn divide<'e>(&self, event: Event<'e>, settings: &Settings) -> (Event<'e>, Option<Event<'e>>) {
        event.divide(|item| takes(item, settings))
    }

    fn records<'e>(&self, event: &Event<'e>, _: &Settings) -> Vec<Record<'e>> {
        events(event).iter().copied().map(read).collect()
    }
}

fn events<'a, 'e>(event: &'a Event<'e>) -> &'a [&'e RawValue] {
    event.items.as_deref().unwrap_or_else(|| slice::from_ref(&event.raw))
}

/// Whether an event is of the kind that the operation takes.
fn takes(event: &RawValue, settings: &Settings) -> bool {
    let event: BusEvent<'_> = object(Some(event));
    match (text(event.detail_type), text(event.source)) {
        (Some(detail_type), Some(source)) => settings
            .takes(&[(Kind::DetailType, Some(&detail_type)), (Kind::EventSource, Some(&source))]),
        _ => false,
    }
}

/// An event in the form that queues get, if it is one.
pub(super) fn in_envelope(raw: &RawValue) -> Option<Record<'_>> {
    let event: BusEvent<'_> = object(Some(raw));
    (event.detail_type.is_some() && event.source.is_some()).then(|| read(raw))
}

fn read(raw: &RawValue) -> Record<'_> {
    let event: BusEvent<'_> = object(Some(raw));
    // The `id` of other JSON may be chosen by an application, and must not be in errors.
    let is_event = event.detail_type.is_some() && event.source.is_some();
    let id = id(event.id).filter(|_| is_event);
    let [account, region, source] = [event.account, event.region, event.source].map(text);
    // A schedule without an `Input` has the detail `{}`, as a text.
    let in_text = text(event.detail).filter(|_| source.as_deref() == Some("aws.scheduler"));
    let format = if in_text.is_some() { Format::Text } else { Format::Json };
    let payload = in_text.or_else(|| event.detail.map(|detail| Cow::Borrowed(detail.get())));
    let record = record_id(NAME, id.as_deref(), source.as_deref().unwrap_or_default());
    // EventBridge's ids are UUIDs; an input transformer may have replaced the id with an
    // application's value, which logs must not show.
    let record = if is_uuid(&record.id) { record } else { record.hidden() };
    Record {
        format,
        identity: match id {
            None => Err(Rejection::NoIdentity("id")),
            id => identity_of(
                NAME,
                [("account", account), ("region", region), ("source", source), ("id", id)],
            ),
        },
        ..Record::new(record, raw, payload.ok_or(Rejection::NoMember("detail")))
    }
}

fn is_uuid(id: &str) -> bool {
    id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
