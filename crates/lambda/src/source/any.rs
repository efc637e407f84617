//! A source that is not known before the event, for [`inspect`](crate::keys::inspect).

use super::{Envelope, KeepOrder, Source, parts, settings::Settings};
use crate::keys::IntoKeyPath;

/// Whichever source an event is from, with the settings that decide which key a record has: for
/// [`inspect`](crate::keys::inspect).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct AnySource(pub(crate) Settings);

/// The settings of this source, whichever source the event is from.
impl<S: Source> From<S> for AnySource {
    fn from(source: S) -> Self {
        Self(parts(source).settings)
    }
}

impl AnySource {
    /// With every setting at its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Sqs::key`](super::Sqs::key).
    pub fn key(mut self, path: impl IntoKeyPath) -> Self {
        self.0.key = Some(path.into_path());
        self
    }

    /// As [`Sqs::fingerprint`](super::Sqs::fingerprint).
    pub fn fingerprint(mut self, path: impl IntoKeyPath) -> Self {
        self.0.fingerprint = Some(path.into_path());
        self
    }

    /// As [`Sqs::envelope`](super::Sqs::envelope).
    pub fn envelope(mut self, envelope: Envelope) -> Self {
        self.0.envelopes.push(envelope);
        self
    }

    /// As [`Sqs::whole_record`](super::Sqs::whole_record).
    pub fn whole_record(mut self) -> Self {
        self.0.whole_record = true;
        self
    }

    /// As [`Kinesis::order`](super::Kinesis::order).
    pub fn order(mut self, order: KeepOrder) -> Self {
        self.0.order = Some(order);
        self
    }
}
