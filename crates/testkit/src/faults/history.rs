//! The calls of a store and their results.

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
        /// The arguments.
        writes: Vec<Write>,
        /// The verdicts that the caller got, including injected faults; `None` if the caller was
        /// dropped before, or still waits.
        verdicts: Option<Vec<Verdict>>,
    },
    /// A call of `read`.
    Read {
        /// The arguments.
        keys: Vec<Key>,
    },
}

impl Call {
    pub(super) fn write(writes: &[Write]) -> Self {
        Self::Write { writes: writes.to_vec(), verdicts: None }
    }

    pub(super) fn answer(&mut self, answers: &[Verdict]) {
        if let Self::Write { verdicts, .. } = self {
            *verdicts = Some(answers.to_vec());
        }
    }
}
