//! Direct invocation (`InvocationType: Event`): any JSON. Lambda retries it if the function returns
//! an error.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html>

use std::borrow::Cow;

use lambda_idempotency_engine::call::RecordId;

use super::{Event, EventSource, Identity, Record, Settings, Shape, setters::source};
use crate::rejection::Rejection;

source! {
    /// Every event that no other source of the function recognises, wherever this one is registered: asynchronous
    /// invocations with your own JSON. The payload is the whole event.
    Invoke => InvokeEvents; messages batches
}

/// Reads its events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InvokeEvents;

const NAME: &str = "invoke";

impl EventSource for InvokeEvents {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_cause_of_invocation(&self) -> bool {
        true
    }

    fn identity(&self) -> &'static Identity {
        &Identity {
            parts: "the invocation's request id",
            catches: "retries by Lambda of an asynchronous invocation",
            misses: "a caller that invokes twice",
        }
    }

    fn takes_anything(&self) -> bool {
        true
    }

    fn recognises(&self, _: &Event<'_>, _: &Settings) -> bool {
        true
    }

    fn records<'e>(&self, event: &Event<'e>, _: &Settings) -> Vec<Record<'e>> {
        let id = event.request_id;
        let identity = match (Shape::of(event), id) {
            (Some(shape), _) => Err(shape.has_no_request_id()),
            (None, "") => Err(Rejection::NoRequestId),
            (None, id) => Ok(vec![Cow::Borrowed(NAME), Cow::Borrowed(id)]),
        };
        let payload = Ok(Cow::Borrowed(event.raw.get()));
        vec![Record { identity, ..Record::new(RecordId::new(NAME, id), event.raw, payload) }]
    }
}
