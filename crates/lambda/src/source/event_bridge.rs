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

use super::{Envelope, Record, Source, Text, all_or_error};
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
        let is = |wanted: &Option<String>, found: &Text<'_>| {
            wanted.as_ref().is_none_or(|wanted| *wanted == found.0)
        };
        match (&event.detail_type, &event.source) {
            (Some(detail_type), Some(source)) => {
                is(&operation.detail_type, detail_type) && is(&operation.origin, source)
            }
            _ => false,
        }
    }

    fn records<'e>(&self, event: &Envelope<'e>) -> Result<Vec<Record<'e>>, InvocationError> {
        let text = |text: &Option<Text<'e>>| {
            text.as_ref().map_or(Cow::Borrowed(""), |text| text.0.clone())
        };
        let Some(raw) = event.raw else { return Ok(Vec::new()) };
        let payload = match (&event.id, event.detail) {
            (None, _) => Err(Rejection::NoPayload("id")),
            (_, None) => Err(Rejection::NoPayload("detail")),
            (_, Some(detail)) => Ok(Cow::Borrowed(detail.get())),
        };
        let (id, source) = (text(&event.id), text(&event.source));
        Ok(vec![Record {
            id: RecordId::new(NAME, &*id).from_arn(Some(Arc::from(&*source))),
            raw,
            payload,
            group: None,
            identity: vec![
                Cow::Borrowed(NAME),
                text(&event.account),
                text(&event.region),
                source,
                id,
            ],
        }])
    }

    fn respond(
        &self,
        records: &[RecordId],
        outcomes: &[Outcome],
    ) -> Result<Box<RawValue>, InvocationError> {
        all_or_error(NAME, records, outcomes)
    }
}
