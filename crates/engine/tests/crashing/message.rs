//! The messages that sources deliver, and the scripts of their handlers.

use std::time::Duration;

use lambda_idempotency_keys::Key;

/// One message, and the script of its handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// Its index in the story, which is also the order that its group has to keep.
    pub(crate) id: usize,
    pub(crate) label: &'static str,
    pub(crate) payload: &'static str,
    pub(crate) fingerprint: Option<&'static str>,
    pub(crate) group: Option<&'static str>,
    /// How often its source has delivered it, this delivery included.
    pub(crate) receives: u32,
    /// The handler fails until the key has this many failed attempts.
    pub(crate) fails: u32,
    /// Whether these failures are permanent.
    pub(crate) permanent: bool,
    pub(crate) takes: Duration,
    /// Where effects are committed: the store refuses them until the key has this many failed attempts.
    pub(crate) refused: u32,
    /// Whether the handler has a step before its effect.
    pub(crate) has_step: bool,
}

/// A message whose handler has its effect at once.
pub(crate) fn message(label: &'static str) -> Message {
    Message {
        id: 0,
        label,
        payload: label,
        fingerprint: None,
        group: None,
        receives: 0,
        fails: 0,
        permanent: false,
        takes: Duration::ZERO,
        refused: 0,
        has_step: false,
    }
}

impl Message {
    pub(crate) fn payload(self, payload: &'static str) -> Self {
        Self { payload, ..self }
    }

    pub(crate) fn fingerprint(self, hash: &'static str) -> Self {
        Self { fingerprint: Some(hash), ..self }
    }

    pub(crate) fn group(self, group: &'static str) -> Self {
        Self { group: Some(group), ..self }
    }

    pub(crate) fn fails(self, fails: u32) -> Self {
        Self { fails, ..self }
    }

    pub(crate) fn refused(self, refused: u32) -> Self {
        Self { refused, ..self }
    }

    pub(crate) fn fails_permanently(self) -> Self {
        Self { fails: u32::MAX, permanent: true, ..self }
    }

    pub(crate) fn takes(self, seconds: u64) -> Self {
        Self { takes: Duration::from_secs(seconds), ..self }
    }

    pub(crate) fn key(&self) -> Key {
        key(self.label)
    }
}

pub(crate) fn key(label: &str) -> Key {
    Key::from_text(format!("op#{label}"))
}
