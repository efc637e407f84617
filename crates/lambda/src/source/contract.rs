//! What every source has to do.

use std::time::Duration;

use lambda_idempotency_core::{outcome::Outcome, policy::OnConflict};
use serde_json::value::RawValue;

use super::{event::Event, identity::Identity, record::Record, response::all_or_error};
use crate::{error::InvocationError, operation::Operation};

/// One kind of event source.
pub(crate) trait Source: Send + Sync {
    /// Its name in logs, errors and default keys.
    fn name(&self) -> &'static str;

    /// What a record's default key is made of, and what that is good for.
    fn identity(&self) -> &'static Identity;

    /// The members of a raw record that differ when it is delivered again, by their paths: keys and
    /// fingerprints must not hold them.
    fn volatile(&self, _: &Operation) -> &'static [&'static str] {
        &[]
    }

    /// What becomes of a delivery whose key is held elsewhere, if the user does not say.
    ///
    /// It waits, except where it costs little to have it back: most sources try again only a few
    /// times, perhaps each time inside the lease of a call that died, or stand still until they are
    /// answered.
    fn conflict(&self) -> OnConflict {
        OnConflict::Wait { up_to: Duration::MAX }
    }

    /// Whether the event is from this source, and from where `operation` takes its records.
    fn recognises(&self, event: &Event<'_>, operation: &Operation) -> bool;

    /// Takes from an event that it [recognises](Self::recognises) what is the operation's, and leaves
    /// the rest, if there is any, to the operations that are asked next.
    fn divide<'e>(&self, event: Event<'e>, _: &Operation) -> (Event<'e>, Option<Event<'e>>) {
        (event, None)
    }

    /// Whether it takes any event, and so is asked last.
    fn takes_anything(&self) -> bool {
        false
    }

    /// The event's records, in its order. One that cannot be read has no payload; the others are
    /// none the worse for it.
    fn records<'e>(&self, event: &Event<'e>, operation: &Operation) -> Vec<Record<'e>>;

    /// What the source is told. One without partial responses: nothing if all is acknowledged, else
    /// an error.
    fn respond(
        &self,
        _event: &Event<'_>,
        records: &[Record<'_>],
        outcomes: &[Outcome],
    ) -> Result<Box<RawValue>, InvocationError> {
        all_or_error(self.name(), records, outcomes)
    }
}
