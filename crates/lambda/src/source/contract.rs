//! The types and the trait that all sources have.

use std::{fmt, time::Duration};

use lambda_idempotency_core::policy::OnConflict;
use serde_json::value::RawValue;

use super::{
    event::Event, record::Record, response::all_or_error, settings::Settings, sink::RecordEnd,
};
use crate::error::InvocationError;

/// An event source with its settings: a type of [this module](super). Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event source",
    label = "not an event source",
    note = "sources are types of `lambda_idempotency::source`, each made by `new()`: `Sqs::new()`, `Kinesis::new()`, ...",
    note = "the order of arguments is: source, operation, handler; requests of HTTP are for `Idempotency::http`"
)]
pub trait Source: sealed::Sealed {}

/// A source's settings, and what reads its events.
#[derive(Debug)]
pub struct Parts {
    pub(crate) events: Box<dyn EventSource>,
    pub(crate) settings: Settings,
}

pub(super) mod sealed {
    pub trait Sealed {
        fn parts(self) -> super::Parts;
    }
}

/// Takes a source apart.
pub(crate) fn parts(source: impl Source) -> Parts {
    sealed::Sealed::parts(source)
}

/// The facts about a source that are constant.
#[derive(Debug)]
pub(crate) struct About {
    /// Its name in logs, errors and default keys.
    pub(crate) name: &'static str,
    /// The members of a record that its default key is made of. Shown by [`inspect`](crate::keys::inspect) and documented in
    /// [the guide](crate::guide::sources#default-keys), with the next two.
    pub(crate) identity: &'static str,
    /// Which duplicates the default key recognises.
    pub(crate) catches: &'static str,
    /// Which duplicates it does not recognise: those need a key from the payload.
    pub(crate) misses: &'static str,
    /// The paths of the members of a raw record that differ when it is delivered again: keys and fingerprints must not contain
    /// them.
    pub(crate) volatile: &'static [&'static str],
    /// Whether a record is what Lambda calls the function for. Otherwise, Lambda's poller has fetched it, and the trace of the
    /// invocation is that of the poller.
    pub(crate) is_cause_of_invocation: bool,
}

/// One kind of event source.
pub(crate) trait EventSource: fmt::Debug + Send + Sync {
    /// The facts about it that are constant.
    fn about(&self) -> &'static About;

    /// Its name.
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// The source of the records, where another service delivers them: the source of a pipe.
    fn origin(&self) -> &'static str {
        ""
    }

    /// Whether the answer can name the records that are returned.
    fn has_partial_responses(&self) -> bool {
        true
    }

    /// The members that differ when a record is delivered again: see [`About::volatile`].
    fn volatile(&self) -> &'static [&'static str] {
        self.about().volatile
    }

    /// The default policy for a delivery whose key another worker holds.
    ///
    /// The delivery waits, except for sources where another delivery costs little. Most sources
    /// retry only a few times, perhaps each time within the lease of a worker that died, or deliver
    /// nothing else until they get a response.
    fn conflict(&self) -> OnConflict {
        OnConflict::Wait { up_to: Duration::MAX }
    }

    /// Whether the event is from this source, and passes the filters of `settings`.
    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool;

    /// Divides an event that it [recognises](Self::recognises) into the part that `settings` take and the
    /// rest, if there is any, for the next sources.
    fn divide<'e>(&self, event: Event<'e>, _: &Settings) -> (Event<'e>, Option<Event<'e>>) {
        (event, None)
    }

    /// Whether its caller waits for the handler's result. Such a source takes any event, as one record, and is tried last.
    fn answers_its_caller(&self) -> bool {
        false
    }

    /// The event's records, in its order. A record that cannot be read has no payload, and does not
    /// affect the others.
    fn records<'e>(&self, event: &Event<'e>, settings: &Settings) -> Vec<Record<'e>>;

    /// The response to the source. Default, for sources without partial responses: `null` if all
    /// records are acknowledged, else an error.
    fn respond(
        &self,
        _event: &Event<'_>,
        records: &[Record<'_>],
        outcomes: &[RecordEnd],
    ) -> Result<Box<RawValue>, InvocationError> {
        all_or_error(self.name(), records, outcomes)
    }
}
