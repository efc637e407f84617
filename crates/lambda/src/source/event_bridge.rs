//! EventBridge: one event an invocation, tried again if it returns an error.
//!
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html>

use std::{borrow::Cow, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    call::RecordId,
    outcome::{Outcome, Rejection},
    policy::Conflict,
};
use serde_json::value::RawValue;

use super::{Envelope, Record, Source, all_or_error, text};
use crate::{error::InvocationError, operation::Operation};

pub(crate) struct EventBridge;

const NAME: &str = "eventbridge";

impl Source for EventBridge {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Lambda tries an asynchronous invocation twice more, perhaps both times inside the lease of a
    /// call that died.
    fn conflict(&self) -> Conflict {
        Conflict::Wait { up_to: Duration::MAX }
    }

    fn recognises(&self, event: &Envelope<'_>, operation: &Operation) -> bool {
        let is = |wanted: &Option<String>, found: Cow<'_, str>| {
            wanted.as_ref().is_none_or(|wanted| *wanted == found)
        };
        match (text(event.detail_type), text(event.source)) {
            (Some(detail_type), Some(source)) => {
                is(&operation.detail_type, detail_type) && is(&operation.origin, source)
            }
            _ => false,
        }
    }

    fn records<'e>(&self, event: &Envelope<'e>) -> Vec<Record<'e>> {
        let Some(raw) = event.raw else { return Vec::new() };
        // An empty id would be the same for all.
        let id = text(event.id).filter(|id| !id.is_empty());
        let payload = match (&id, event.detail) {
            (None, _) => Err(Rejection::NoPayload("id")),
            (_, None) => Err(Rejection::NoPayload("detail")),
            (_, Some(detail)) => Ok(Cow::Borrowed(detail.get())),
        };
        let [account, region, source, id] =
            [text(event.account), text(event.region), text(event.source), id]
                .map(Option::unwrap_or_default);
        vec![Record {
            id: RecordId::new(NAME, &*id).from_arn(Some(Arc::from(&*source))),
            raw,
            payload,
            group: None,
            identity: vec![Cow::Borrowed(NAME), account, region, source, id],
        }]
    }

    fn respond(
        &self,
        records: &[RecordId],
        outcomes: &[Outcome],
    ) -> Result<Box<RawValue>, InvocationError> {
        all_or_error(NAME, records, outcomes)
    }
}
