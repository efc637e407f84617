//! A source with the operation and the handler of its records.

mod checks;
mod direct;

pub(crate) use checks::Draft;

use std::sync::Arc;

use lambda_idempotency_core::policy::Policy;
use lambda_idempotency_engine::{
    batch::{Delivery, Job, Work},
    delivered::Delivered,
};

use crate::{
    decode::Format,
    find_key::Extraction,
    handler::ErasedHandler,
    names::HandlerType,
    operation::{Operation, Prepared},
    rejection::Rejection,
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
