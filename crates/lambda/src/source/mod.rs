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

    /// The event's records, in its order.
    fn records<'e>(&self, event: &Envelope<'e>) -> Result<Vec<Record<'e>>, InvocationError>;

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
#[derive(Deserialize)]
pub(crate) struct Envelope<'e> {
    #[serde(rename = "Records", borrow, default)]
    records: Option<Vec<&'e RawValue>>,
    #[serde(rename = "detail-type", borrow, default)]
    detail_type: Option<Text<'e>>,
    #[serde(borrow, default)]
    source: Option<Text<'e>>,
    #[serde(borrow, default)]
    detail: Option<&'e RawValue>,
    #[serde(borrow, default)]
    id: Option<Text<'e>>,
    #[serde(borrow, default)]
    account: Option<Text<'e>>,
    #[serde(borrow, default)]
    region: Option<Text<'e>>,
    #[serde(skip)]
    raw: Option<&'e RawValue>,
}

/// A string that is borrowed where it has no escapes.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'e>(#[serde(borrow)] pub(crate) Cow<'e, str>);

/// The members by which a record names its source.
#[derive(Deserialize)]
struct Origin<'e> {
    #[serde(rename = "eventSource", alias = "EventSource", borrow, default)]
    source: Option<Text<'e>>,
    #[serde(rename = "eventSourceARN", borrow, default)]
    queue: Option<Text<'e>>,
    #[serde(rename = "Sns", borrow, default)]
    sns: Option<Topic<'e>>,
}

#[derive(Deserialize)]
struct Topic<'e> {
    #[serde(rename = "TopicArn", borrow, default)]
    arn: Option<Text<'e>>,
}

impl<'e> Envelope<'e> {
    /// Reads the outside of an event; `None` if it is no JSON object with such members.
    pub(crate) fn read(event: &'e RawValue) -> Option<Self> {
        let mut envelope: Self = serde_json::from_str(event.get()).ok()?;
        envelope.raw = Some(event);
        Some(envelope)
    }

    /// What the event looks like, in a few words without any of its values but AWS's own.
    pub(crate) fn describe(&self) -> String {
        match (&self.records, &self.detail_type) {
            (Some(records), _) if records.is_empty() => "an empty list of `Records`".to_owned(),
            (Some(records), _) => match records.first().and_then(|first| origin(first)) {
                Some(Origin { source: Some(source), queue, sns }) => {
                    let arn = queue.or(sns.and_then(|topic| topic.arn));
                    let from = arn.map(|arn| format!(" from {}", arn.0)).unwrap_or_default();
                    format!("`Records` of event source {:?}{from}", source.0)
                }
                _ => "`Records` without an event source".to_owned(),
            },
            (None, Some(detail_type)) => {
                let source = self.source.as_ref().map_or("", |source| &source.0);
                format!("an EventBridge event {:?} from {source:?}", detail_type.0)
            }
            (None, None) => "it has neither `Records` nor a `detail-type`".to_owned(),
        }
    }
}

fn origin<'e>(record: &'e RawValue) -> Option<Origin<'e>> {
    serde_json::from_str(record.get()).ok()
}

/// Whether the event's records are from this event source, and from where `operation` takes them.
/// An empty batch may be anyone's: nothing tells, and nothing is to be done.
fn delivers(source: &str, event: &Envelope<'_>, operation: &Operation) -> bool {
    match event.records.as_deref() {
        None => false,
        Some([]) => true,
        Some([first, ..]) => origin(first).is_some_and(|Origin { source: found, queue, sns }| {
            let arn = queue.or(sns.and_then(|topic| topic.arn));
            found.is_some_and(|found| found.0 == source)
                && names(operation.origin.as_deref(), arn.as_ref())
        }),
    }
}

/// Whether an ARN is the wanted one, or ends with the wanted name.
fn names(wanted: Option<&str>, arn: Option<&Text<'_>>) -> bool {
    let Some(wanted) = wanted else { return true };
    arn.is_some_and(|arn| arn.0 == wanted || arn.0.rsplit(':').next() == Some(wanted))
}

/// Tells a source without partial responses: nothing if all is acknowledged, else an error.
fn all_or_error(
    source_name: &'static str,
    records: &[RecordId],
    outcomes: &[Outcome],
) -> Result<Box<RawValue>, InvocationError> {
    /// Names are enough to look the rest up in the log.
    const SHOWN: usize = 3;
    let problems: Vec<_> = records
        .iter()
        .zip(outcomes)
        .filter_map(|(record, outcome)| Some(format!("{record}: {}", outcome.problem()?)))
        .collect();
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
