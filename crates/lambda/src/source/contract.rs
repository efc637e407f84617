//! The trait of all sources.

use std::{fmt, time::Duration};

use lambda_idempotency_core::policy::OnConflict;
use serde_json::value::RawValue;

use super::{Settings, event::Event, identity::Identity, record::Record, response::all_or_error};
use crate::{divert::Ended, error::InvocationError};

/// One kind of event source.
pub(crate) trait EventSource: fmt::Debug + Send + Sync {
    /// Its name in logs, errors and default keys.
    fn name(&self) -> &'static str;

    /// The source of the records, where another service delivers them: the source of a pipe.
    fn origin(&self) -> &'static str {
        ""
    }

    /// Whether the answer can name the records that are returned.
    fn has_partial_responses(&self) -> bool {
        true
    }

    /// What a record's default key is made of, and which duplicates it recognises.
    fn identity(&self) -> &'static Identity;

    /// The paths of the members of a raw record that differ when it is delivered again: keys and
    /// fingerprints must not contain them.
    fn volatile(&self, _: &Settings) -> &'static [&'static str] {
        &[]
    }

    /// The default policy for a delivery whose key another worker holds.
    ///
    /// The delivery waits, except for sources where another delivery costs little. Most sources
    /// retry only a few times, perhaps each time within the lease of a worker that died, or deliver
    /// nothing else until they get a response.
    fn conflict(&self) -> OnConflict {
        OnConflict::Wait { up_to: Duration::MAX }
    }

    /// Whether a record is what Lambda calls the function for. Otherwise, Lambda's poller has fetched it, and
    /// the trace of the invocation is that of the poller.
    fn is_cause_of_invocation(&self) -> bool {
        false
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
        outcomes: &[Ended],
    ) -> Result<Box<RawValue>, InvocationError> {
        all_or_error(self.name(), records, outcomes)
    }
}
