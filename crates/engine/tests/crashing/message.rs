//! What sources deliver: a key, and what its handler does with it.

use std::time::Duration;

use lambda_idempotency_keys::Key;

/// One message, and the script of its handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// Its place in the story: also the order that its group has to keep.
    pub(crate) id: usize,
    pub(crate) label: &'static str,
    pub(crate) payload: &'static str,
    pub(crate) fingerprint: Option<&'static str>,
    pub(crate) group: Option<&'static str>,
    /// How often its source has delivered it, this time included.
    pub(crate) receives: u32,
    /// The handler fails until the key has counted so many failures.
    pub(crate) fails: u32,
    /// And says that it is no use to try again.
    pub(crate) permanent: bool,
    pub(crate) takes: Duration,
    /// Where it has a sink: under which label it is put aside, and how often that fails first.
    pub(crate) aside: Option<(&'static str, u32)>,
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
        aside: None,
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

    pub(crate) fn fails_for_good(self) -> Self {
        Self { fails: u32::MAX, permanent: true, ..self }
    }

    /// It is put aside, under this label, once its sink has failed so often.
    pub(crate) fn aside(self, label: &'static str, fails: u32) -> Self {
        Self { aside: Some((label, fails)), ..self }
    }

    /// The work of putting it aside, as a message of its own.
    pub(crate) fn putting_aside(&self) -> Option<Self> {
        let (label, fails) = self.aside?;
        let aside = message(label).fails(fails);
        // Though it says so, no failure of a sink is permanent.
        Some(Self { id: self.id, permanent: true, ..aside })
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
