//! Event sources: how each delivers records, identifies them, and is told what became of them.
//!
//! One file a source, each an implementation of [`Source`].

mod event_bridge;
mod sns;
mod sqs;

pub(crate) use event_bridge::EventBridge;
pub(crate) use sns::Sns;
pub(crate) use sqs::Sqs;

use std::{borrow::Cow, sync::Arc};

use lambda_idempotency_core::{
    call::RecordId,
    outcome::{Outcome, Rejection},
    policy::Conflict,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{error::InvocationError, operation::Operation};

/// One kind of event source.
pub(crate) trait Source: Send + Sync {
    /// Its name in logs, errors and default keys.
    fn name(&self) -> &'static str;

    /// What becomes of a delivery whose key is held elsewhere, if the user does not say.
    fn conflict(&self) -> Conflict;

    /// Whether the event is from this source, and from where `operation` takes its records.
    fn recognises(&self, event: &Envelope<'_>, operation: &Operation) -> bool;

    /// The event's records, in its order. One that cannot be read has no payload; the others are
    /// none the worse for it.
    fn records<'e>(&self, event: &Envelope<'e>) -> Vec<Record<'e>>;

    /// What the source is told.
    fn respond(
        &self,
        records: &[RecordId],
        outcomes: &[Outcome],
    ) -> Result<Box<RawValue>, InvocationError>;
}

/// One record of an event.
pub(crate) struct Record<'e> {
    pub(crate) id: RecordId,
    /// The record as AWS delivers it.
    pub(crate) raw: &'e RawValue,
    /// What the handler is called with.
    pub(crate) payload: Result<Cow<'e, str>, Rejection>,
    /// What stays the same when the record is delivered again.
    pub(crate) identity: Vec<Cow<'e, str>>,
    /// Its order group, where the source keeps an order.
    pub(crate) group: Option<Arc<str>>,
}

/// The outermost members of an event; enough to tell where it is from.
///
/// Every member is taken as it comes: one of an unexpected type is as good as missing, and must not
/// make the rest unreadable.
#[derive(Deserialize)]
pub(crate) struct Envelope<'e> {
    #[serde(rename = "Records", borrow, default)]
    records: Member<'e>,
    #[serde(rename = "detail-type", borrow, default)]
    detail_type: Member<'e>,
    #[serde(borrow, default)]
    source: Member<'e>,
    #[serde(borrow, default)]
    detail: Member<'e>,
    #[serde(borrow, default)]
    id: Member<'e>,
    #[serde(borrow, default)]
    account: Member<'e>,
    #[serde(borrow, default)]
    region: Member<'e>,
    #[serde(skip)]
    raw: Member<'e>,
    /// `Records`, if that is a list: read once for all that ask whose it is.
    #[serde(skip)]
    list: Option<Vec<&'e RawValue>>,
}

/// A member of an object, of whatever type; `None` if it is missing or `null`.
type Member<'e> = Option<&'e RawValue>;

/// The members by which a record names its source.
#[derive(Default, Deserialize)]
struct Origin<'e> {
    #[serde(rename = "eventSource", alias = "EventSource", borrow, default)]
    source: Member<'e>,
    #[serde(rename = "eventSourceARN", borrow, default)]
    queue: Member<'e>,
    #[serde(rename = "Sns", borrow, default)]
    sns: Member<'e>,
}

#[derive(Default, Deserialize)]
struct Topic<'e> {
    #[serde(rename = "TopicArn", borrow, default)]
    arn: Member<'e>,
}

impl<'e> Origin<'e> {
    fn of(record: &'e RawValue) -> Self {
        object(Some(record))
    }

    /// The queue or topic.
    fn arn(&self) -> Option<Cow<'e, str>> {
        text(self.queue).or_else(|| text(object::<Topic<'_>>(self.sns).arn))
    }
}

impl<'e> Envelope<'e> {
    /// Reads the outside of an event; `None` if it is no JSON object.
    pub(crate) fn read(event: &'e RawValue) -> Option<Self> {
        let envelope: Self = members(event)?;
        let list = envelope.records.and_then(|list| serde_json::from_str(list.get()).ok());
        Some(Self { raw: Some(event), list, ..envelope })
    }

    /// The event's records, if it has a list of them.
    fn records(&self) -> Option<&[&'e RawValue]> {
        self.list.as_deref()
    }

    /// What the event looks like, in a few words without any of its values but AWS's own.
    pub(crate) fn describe(&self) -> String {
        match (self.records(), text(self.detail_type)) {
            (Some(records), _) => match records.first().map(|first| Origin::of(first)) {
                None => "an empty list of `Records`".to_owned(),
                Some(origin) => match (text(origin.source), origin.arn()) {
                    (Some(source), Some(arn)) => {
                        format!("`Records` of event source {source:?} from {arn}")
                    }
                    (Some(source), None) => format!("`Records` of event source {source:?}"),
                    (None, _) => "`Records` without an event source".to_owned(),
                },
            },
            (None, Some(detail_type)) => {
                let source = text(self.source).unwrap_or_default();
                format!("an EventBridge event {detail_type:?} from {source:?}")
            }
            (None, None) => "it has neither `Records` nor a `detail-type`".to_owned(),
        }
    }
}

/// A member that is a string, borrowed where it has no escapes.
fn text(member: Member<'_>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Text<'e>(#[serde(borrow)] Cow<'e, str>);

    serde_json::from_str::<Text<'_>>(member?.get()).ok().map(|text| text.0)
}

/// A member that is an object; one without members if it is not.
fn object<'e, T: Deserialize<'e> + Default>(member: Member<'e>) -> T {
    member.and_then(members).unwrap_or_default()
}

/// The members of an object. Not the items of an array, which `serde` would take for them in order.
fn members<'e, T: Deserialize<'e>>(value: &'e RawValue) -> Option<T> {
    if !value.get().starts_with('{') {
        return None;
    }
    serde_json::from_str(value.get()).ok()
}

/// Whether the event's records are from this event source, and from where `operation` takes them.
/// An empty batch may be anyone's: nothing tells, and nothing is to be done.
fn delivers(source: &str, event: &Envelope<'_>, operation: &Operation) -> bool {
    let Some(records) = event.records() else { return false };
    let Some(first) = records.first().map(|first| Origin::of(first)) else { return true };
    text(first.source).is_some_and(|found| found == source)
        && names(operation.origin.as_deref(), first.arn().as_deref())
}

/// Whether an ARN is the wanted one, or ends with the wanted name.
fn names(wanted: Option<&str>, arn: Option<&str>) -> bool {
    let Some(wanted) = wanted else { return true };
    arn.is_some_and(|arn| arn == wanted || arn.rsplit(':').next() == Some(wanted))
}

/// Tells a source without partial responses: nothing if all is acknowledged, else an error.
fn all_or_error(
    source_name: &'static str,
    records: &[RecordId],
    outcomes: &[Outcome],
) -> Result<Box<RawValue>, InvocationError> {
    /// Names are enough to look the rest up in the log.
    const SHOWN: usize = 3;
    let problem = |(at, (record, outcome)): (usize, (&RecordId, &Outcome))| {
        let problem = outcome.problem()?;
        // Without an id, its place has to do.
        let place = if record.id.is_empty() {
            format!("no. {} of the batch", at + 1)
        } else {
            String::new()
        };
        Some(format!("{record}{place}: {problem}"))
    };
    let problems: Vec<_> = records.iter().zip(outcomes).enumerate().filter_map(problem).collect();
    if problems.is_empty() {
        return Ok(RawValue::NULL.to_owned());
    }
    let mut shown = problems.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    if problems.len() > SHOWN {
        shown.push_str("; ...");
    }
    let (failed, total) = (problems.len(), outcomes.len());
    Err(InvocationError::Records { source_name, failed, total, problems: shown })
}
