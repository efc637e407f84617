//! Which record of which source a handler is called for.

use std::{fmt, sync::Arc};

use lambda_idempotency_keys::{Digest, Secret};

/// Which record of which source.
///
/// Log this value itself, or its [`label`](Self::label), and not its `id`: where an application has
/// chosen the id, `Display`, `Debug` and the label show a hash of it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordId {
    /// The kind of source: `sqs`, `sns`, `eventbridge`, ...
    pub source: &'static str,
    /// The record's id in that source: message id, event id, ... As the source delivers it, and so
    /// not for logs.
    pub id: Arc<str>,
    /// The queue, topic or bus it came from.
    pub arn: Option<Arc<str>>,
    /// The text that is shown in place of an id that an application has chosen.
    hash: Option<Arc<str>>,
}

impl RecordId {
    /// The record `id` of a source.
    #[must_use]
    pub fn new(source: &'static str, id: impl Into<Arc<str>>) -> Self {
        Self { source, id: id.into(), arn: None, hash: None }
    }

    /// Adds where it came from.
    #[must_use]
    pub fn with_arn(mut self, arn: Option<Arc<str>>) -> Self {
        self.arn = arn;
        self
    }

    /// Shows a hash instead of the id, for ids that applications choose, which may contain anything. An
    /// empty id stays empty.
    ///
    /// ```
    /// use lambda_idempotency_engine::call::RecordId;
    /// let record = RecordId::new("rabbitmq", "ann@example.com").hidden();
    /// assert_eq!(&*record.id, "ann@example.com");
    /// assert_eq!(record.to_string(), "rabbitmq record #06f0ffecefef");
    /// ```
    #[must_use]
    pub fn hidden(self) -> Self {
        let digest = Digest::new(Self::HASH);
        self.shown_as(digest)
    }

    /// Makes the hash of a [`hidden`](Self::hidden) id with a secret, so that it takes the secret to
    /// find the id by trying. Changes nothing about an id that is shown.
    #[must_use]
    pub fn hashed_with(self, secret: &Secret) -> Self {
        match self.hash {
            Some(_) => self.shown_as(Digest::with_secret(secret, Self::HASH)),
            None => self,
        }
    }

    const HASH: &'static [u8] = b"lambda-idempotency record id 1";

    fn shown_as(mut self, mut digest: Digest) -> Self {
        // Enough to tell the records of a log from one another.
        const DIGITS: usize = 12;
        if !self.id.is_empty() {
            digest.part(self.source.as_bytes());
            digest.part(self.id.as_bytes());
            let digits: String = digest.hex().chars().take(DIGITS).collect();
            self.hash = Some(format!("#{digits}").into());
        }
        self
    }

    /// The name of the record in logs and errors: its id, or `#` and 12 hexadecimal digits of a hash of an
    /// id that an application has chosen.
    #[must_use]
    pub fn label(&self) -> &str {
        self.shown()
    }

    pub(crate) fn shown(&self) -> &Arc<str> {
        self.hash.as_ref().unwrap_or(&self.id)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} record {}", self.source, self.label())
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordId")
            .field("source", &self.source)
            .field("id", &self.label())
            .field("arn", &self.arn)
            .finish()
    }
}
