//! What was asked of the store, and what was answered.

use lambda_idempotency_core::{
    key::Key,
    store::{Verdict, Write},
};

/// One call of a [`FaultyStore`](super::FaultyStore).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Call {
    /// A call of `write`.
    Write {
        /// What was asked.
        writes: Vec<Write>,
        /// What the caller was told, faults included; `None` if it did not wait for the answer (or
        /// still does).
        verdicts: Option<Vec<Verdict>>,
    },
    /// A call of `read`.
    Read {
        /// What was asked.
        keys: Vec<Key>,
    },
}

impl Call {
    pub(super) fn write(writes: &[Write]) -> Self {
        Self::Write { writes: writes.to_vec(), verdicts: None }
    }

    pub(super) fn answer(&mut self, told: &[Verdict]) {
        if let Self::Write { verdicts, .. } = self {
            *verdicts = Some(told.to_vec());
        }
    }
}
