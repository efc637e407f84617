//! EventBridge: one event for each invocation or, from a custom bus, a list of events. Lambda
//! retries the invocation as a whole if it returns an error.
//!
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html>,
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-custom-bus-target-lambda.html>

use std::{borrow::Cow, slice};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Event, Identity, Record, Source,
    event::{Member, id, object, text},
    record::{identity_of, record_id},
};
use crate::{
    operation::{Kind, Operation},
    rejection::Rejection,
};

pub(crate) struct EventBridge;

const NAME: &str = "eventbridge";

#[derive(Default, Deserialize)]
struct BusEvent<'e> {
    #[serde(borrow, default)]
    id: Member<'e>,
    #[serde(rename = "detail-type", borrow, default)]
    detail_type: Member<'e>,
    #[serde(borrow, default)]
    source: Member<'e>,
    #[serde(borrow, default)]
    account: Member<'e>,
    #[serde(borrow, default)]
    region: Member<'e>,
    #[serde(borrow, default)]
    detail: Member<'e>,
}

impl Source for EventBridge {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_cause_of_invocation(&self) -> bool {
        true
    }

    fn identity(&self) -> &'static Identity {
        &Identity {
            parts: "account, region, source, id",
            catches: "retries by Lambda and by EventBridge, and replay from an archive within the \
                      retention",
            misses: "a publisher that puts an event twice",
        }
    }

    /// A list may contain events of several kinds. One event of the operation is enough:
    /// [`divide`](Self::divide) selects it.
    fn recognises(&self, event: &Event<'_>, operation: &Operation) -> bool {
        events(event).iter().any(|event| takes(event, operation))
    }

    fn divide<'e>(
        &self,
        event: Event<'e>,
        operation: &Operation,
    ) -> (Event<'e>, Option<Event<'e>>) {
        event.divide(|item| takes(item, operation))
    }

    fn records<'e>(&self, event: &Event<'e>, _: &Operation) -> Vec<Record<'e>> {
        events(event).iter().copied().map(read).collect()
    }
}

fn events<'a, 'e>(event: &'a Event<'e>) -> &'a [&'e RawValue] {
    event.items.as_deref().unwrap_or_else(|| slice::from_ref(&event.raw))
}

/// Whether an event is of the kind that the operation takes.
fn takes(event: &RawValue, operation: &Operation) -> bool {
    let event: BusEvent<'_> = object(Some(event));
    match (text(event.detail_type), text(event.source)) {
        (Some(detail_type), Some(source)) => operation
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
    let payload = event.detail.map(|detail| Cow::Borrowed(detail.get()));
    let [account, region, source] = [event.account, event.region, event.source].map(text);
    let record = record_id(NAME, id.as_deref(), source.as_deref().unwrap_or_default());
    // EventBridge's ids are UUIDs; an input transformer may have replaced the id with an
    // application's value, which logs must not show.
    let record = if is_uuid(&record.id) { record } else { record.hidden() };
    Record {
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
