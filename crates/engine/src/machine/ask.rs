//! What the host asks the machine to do with a record.

use std::sync::Arc;

use super::carried::Carried;
use lambda_idempotency_core::{
    outcome::Rejected,
    record::{Fingerprint, Json},
};
use lambda_idempotency_keys::Key;

/// What to do with a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Its handler is called once per key.
    Keyed,
    /// Its handler is called at every delivery.
    Unprotected,
    /// Nothing; it is returned, since it cannot be processed.
    Reject(Carried<Rejected>),
}

/// What the machine knows of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask<'a> {
    /// Its idempotency key.
    pub key: Option<Key>,
    /// What must agree with other deliveries of the key.
    pub fingerprint: Option<Fingerprint>,
    /// The payload. Without a fingerprint, records of a key are copies if their payloads are equal.
    pub payload: &'a str,
    /// Its order group.
    pub group: Option<Arc<str>>,
    /// How often it was received, this time included; 0 if its source does not count that.
    pub receives: u32,
    /// What to do with the record.
    pub task: Task,
    /// Whether somebody takes care of it if it will never be processed, so that its group need not wait.
    pub lets_pass: bool,
    /// What its claim keeps, to do the work again where nothing redelivers it.
    pub kept: Option<Json>,
}

/// What copies have in common, besides the key.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Same<'e> {
    Fingerprint(&'e Fingerprint),
    Payload(&'e str),
}

impl<'a> Ask<'a> {
    /// A record that asks for its key alone.
    #[cfg(test)]
    pub(super) const fn keyed(key: Key) -> Self {
        Self {
            key: Some(key),
            fingerprint: None,
            payload: "",
            group: None,
            receives: 0,
            task: Task::Keyed,
            lets_pass: false,
            kept: None,
        }
    }

    /// What it asks for. Records of a key that ask for the same are copies: they have equal fingerprints
    /// or, without fingerprints, equal payloads.
    pub(super) fn same(&self) -> Same<'_> {
        match &self.fingerprint {
            Some(fingerprint) => Same::Fingerprint(fingerprint),
            None => Same::Payload(self.payload),
        }
    }
}
