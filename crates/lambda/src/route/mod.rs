//! A source with the operation and the handler of its records.

pub(crate) mod checks;

use std::{borrow::Cow, sync::Arc};

use lambda_idempotency_core::{
    outcome::{Outcome, ResultKept},
    policy::Policy,
};
use lambda_idempotency_engine::{
    batch::{Delivery, Job, Work},
    delivered::Delivered,
};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    decode::Format,
    error::{ResultLost, RunError},
    find_key::Extraction,
    handler::ErasedHandler,
    names::HandlerType,
    operation::{Operation, Prepared},
    rejection::Rejection,
    result::{ResultFrom, result_of},
    source::{Event, EventSource, Record, Settings, records_of},
};

/// A source, and what is done with its records.
pub(crate) struct Route {
    pub(crate) source: Box<dyn EventSource>,
    pub(crate) settings: Settings,
    pub(crate) operation: Operation,
    pub(crate) prepared: Prepared,
    pub(crate) policy: Policy,
    pub(crate) handler: Arc<dyn ErasedHandler>,
    pub(crate) handler_type: HandlerType,
    /// Whether a result that is not `()` is kept, because the caller of a direct invocation gets it.
    pub(crate) keeps_result: bool,
}

impl Route {
    /// Whether this route takes every event of the other, if it comes first.
    pub(crate) fn shadows(&self, other: &Self) -> bool {
        is_same(&*self.source, &*other.source) && self.settings.covers(&other.settings)
    }

    /// The records of an event, or of the route's share of it.
    pub(crate) fn records<'e>(&self, event: &Event<'e>) -> Vec<Record<'e>> {
        let secret = self.operation.secret();
        let mut records = records_of(&*self.source, event, &self.settings, secret);
        if self.settings.in_order {
            let batch: Arc<str> = Arc::from("");
            records.iter_mut().for_each(|record| record.group = Some(Arc::clone(&batch)));
        }
        records
    }

    /// The delivery of a record.
    pub(crate) fn delivery<'r>(
        &'r self,
        record: &'r Record<'_>,
        delivered: Delivered,
        extraction: &Extraction<'_>,
    ) -> Delivery<'r> {
        let work = match &record.payload {
            Ok(payload) => extraction.work(&record.id, record.texts(payload), |payload| {
                self.job(payload, record.format)
            }),
            Err(rejection) => Work::Reject(rejection.clone().into()),
        };
        let sink = match work {
            Work::Reject(_) => &self.settings.bad_records,
            _ => &self.settings.failures,
        };
        let (group, has_sink) = (record.group.clone(), sink.is_some());
        Delivery::alone(record.id.clone(), delivered, work).in_group(group).letting_pass(has_sink)
    }

    /// Says at the start that the handler's results go nowhere.
    pub(crate) fn warn_of_dropped_result(&self) {
        if self.handler.drops_result() && !self.keeps_result {
            tracing::warn!(
                operation = &*self.prepared.name,
                source = self.source.name(),
                "the handler returns a result that nobody gets: this source ignores it, and it is not kept; return `()`, or \
                 keep it with `keep_result(..)` for duplicates and `kept_result`"
            );
        }
    }

    /// The handler's call for a payload.
    fn job(&self, payload: &str, format: Format) -> Result<Job<'_>, Rejection> {
        let format = match format {
            Format::Text if self.prepared.reads_payload() => Format::JsonText,
            format => format,
        };
        let job = Arc::clone(&self.handler).job(payload, format, self.keeps_result)?;
        Ok(self.prepared.keeping(job))
    }

    /// The answer to an event with this outcome: the handler's result, now or earlier, or why there is none.
    pub(crate) fn answer(
        &self,
        event: &Event<'_>,
        outcome: Option<Outcome>,
    ) -> Result<Box<RawValue>, RunError> {
        let result = self.result(outcome)?;
        let Some(answer) = &self.settings.answer else { return Ok(result) };
        let answer = answer.make(&result, event.raw).map_err(RunError::ResultLost)?;
        to_raw_value(&answer).map_err(|_| RunError::ResultLost(ResultLost::Unserializable))
    }

    fn result(&self, outcome: Option<Outcome>) -> Result<Box<RawValue>, RunError> {
        // A handler that ran in this call and returned a value has a result here, unless it cannot be JSON.
        let lost = match &outcome {
            Some(
                Outcome::Executed { kept: ResultKept::Unserializable, .. }
                | Outcome::Unprotected { .. }
                | Outcome::CompletionLost { .. },
            ) => ResultLost::Unserializable,
            _ => ResultLost::NotKept,
        };
        let answered = match &outcome {
            Some(Outcome::Failed { failure, permanent: false, .. }) => failure.answer().cloned(),
            _ => None,
        };
        let result = match answered {
            Some(answer) => Some(answer),
            None => match result_of(outcome)? {
                ResultFrom::Now(result) | ResultFrom::Earlier(result) => result,
            },
        };
        let json = match &result {
            Some(json) => Cow::Borrowed(&**json),
            None if self.handler.returns_nothing() => Cow::Borrowed("null"),
            None => return Err(RunError::ResultLost(lost)),
        };
        // Another library may have stored the result, which need not be JSON.
        RawValue::from_string(json.into_owned())
            .map_err(|_| RunError::ResultLost(ResultLost::OtherType))
    }

    /// The source, with the names of its filters.
    pub(crate) fn describe(&self) -> String {
        let source = match (self.source.name(), self.source.origin()) {
            (name, "") => name.to_owned(),
            (name, origin) => format!("{name} of {origin}"),
        };
        let names: Vec<&str> = self.settings.filter_names().collect();
        if names.is_empty() { source } else { format!("{source} from {}", names.join(", ")) }
    }
}

/// Whether both read the same events.
fn is_same(one: &dyn EventSource, other: &dyn EventSource) -> bool {
    (one.name(), one.origin()) == (other.name(), other.origin())
}
