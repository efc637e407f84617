//! A source with the operation and the handler of its records: what is checked before the first event.

mod agreement;
mod direct;
mod payload_type;
mod volatile;

use std::sync::Arc;

use lambda_idempotency_core::policy::Policy;
use lambda_idempotency_engine::batch::{Engine, Job};
use lambda_idempotency_keys::View;

use crate::{
    decode::Format,
    error::ConfigError,
    handler::ErasedHandler,
    names::HandlerType,
    operation::{Operation, Prepared},
    rejection::Rejection,
    source::{Envelope, Event, EventSource, Parts, Record, Settings, records_of},
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

/// A route that has not been checked.
pub(crate) struct Draft {
    pub(crate) source: Parts,
    pub(crate) operation: Operation,
    pub(crate) handler: Arc<dyn ErasedHandler>,
    pub(crate) handler_type: HandlerType,
    /// The name of the type that the handler takes.
    pub(crate) payload: &'static str,
}

impl Draft {
    /// Compiles the operation for its source, and refuses what cannot work there.
    pub(crate) fn checked(self, engine: &Engine) -> Result<Route, ConfigError> {
        self.takes_records()?;
        let Self {
            source: Parts { events: source, settings },
            operation,
            handler,
            handler_type,
            ..
        } = self;
        if let Some(problem) = settings.mistake(source.name()) {
            let name = operation.name();
            return Err(ConfigError::source(format!("operation `{name}`: {problem}")));
        }
        if settings.returns_whole_batch && !source.has_partial_responses() {
            return Err(ConfigError::source(format!(
                "operation `{}`: `.without_partial_responses()` has no effect for {} from {}, which has none; remove it",
                operation.name(),
                source.name(),
                source.origin()
            )));
        }
        let prepared = operation.prepared_for(&settings).map_err(|mistake| match mistake {
            // The expression may be the source's own.
            ConfigError::Key(problem) => ConfigError::key(format!("{}: {problem}", source.name())),
            other => other,
        })?;
        let mut policy = prepared.policy.clone();
        policy.on_conflict = prepared.on_conflict.unwrap_or_else(|| source.conflict());
        let route = Route {
            source,
            settings,
            operation,
            prepared,
            policy,
            handler,
            handler_type,
            keeps_result: false,
        };
        route.chooses_key()?;
        route.refuse_volatile()?;
        route.tells_notifications_apart()?;
        route.prepared.names_what_it_excludes()?;
        route.prepared.commits_with(engine)?;
        Ok(route)
    }
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

    /// The handler's call for a payload.
    pub(crate) fn job(&self, payload: &str, format: Format) -> Result<Job<'_>, Rejection> {
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

    /// Refuses keys that do not tell apart the notifications in one message: S3 may put several into one. With one key for
    /// several notifications only the first would be processed, and the others answered from its record. With a key for
    /// each, a handler that gets the whole message would process all of them each time.
    fn tells_notifications_apart(&self) -> Result<(), ConfigError> {
        if !self.settings.envelopes.contains(&Envelope::S3) {
            return Ok(());
        }
        let (prepared, name) = (&self.prepared, self.operation.name());
        if self.settings.whole_record {
            // Any key is of the whole message then.
            if prepared.names_key() {
                return Ok(());
            }
            return Err(ConfigError::source(format!(
                "operation `{name}` has a source with `.whole_record()` and `.envelope(Envelope::S3)`, and S3 may put \
                 several notifications into one message: each has a key of its own, and the handler would get the whole \
                 message for each; name a key of the message, such as `.key(\"messageId\")`, or leave `.whole_record()` out"
            )));
        }
        match prepared.key.as_ref().filter(|key| key.view == View::Record) {
            None => Ok(()),
            Some(key) => Err(ConfigError::key(format!(
                "the key of operation `{name}` reads the whole message, with `{}`, and S3 may put several \
                 notifications into one: they would have one key, and only the first would be processed; select the key \
                 from the notification, such as `s3.object.key`, or take the message as one record with `.whole_record()`",
                key.text
            ))),
        }
    }
}

/// Whether both read the same events.
fn is_same(one: &dyn EventSource, other: &dyn EventSource) -> bool {
    (one.name(), one.origin()) == (other.name(), other.origin())
}
