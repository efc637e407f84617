//! Why a step could not run, or could not be kept.

use std::sync::Arc;

use lambda_idempotency_core::store::StoreError;

/// How many steps of a key are kept.
pub const MAX_STEPS: usize = 32;

/// How many bytes the steps of a key may have together, as JSON with their names. Each write of the record
/// repeats them until the key is completed.
pub const MAX_STEP_BYTES: usize = 32 * 1024;

/// Why a step of a call could not run, or why its result could not be kept or answered. Where its text does not
/// say otherwise, the step was not called.
///
/// It holds no result; the step's name is the one in the code.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// Its name cannot be stored.
    #[error(
        "the name of a step has {length} bytes or a character that is not visible ASCII: give it a name of 1 to \
         64 visible ASCII characters"
    )]
    Name {
        /// How many bytes the name has.
        length: usize,
    },
    /// Another step of this call has the name.
    #[error(
        "the step `{name}` was already called in this attempt, and a result is kept once for each name: give \
         each step of a call a name of its own"
    )]
    Twice {
        /// The name.
        name: Arc<str>,
    },
    /// The key has as many steps as can be kept.
    #[error(
        "the step `{name}` would be one more than the {MAX_STEPS} that are kept for a key: do several things in \
         one step, or give parts of the work keys of their own"
    )]
    TooMany {
        /// The step.
        name: Arc<str>,
    },
    /// Its result, with those of the other steps, is more than is kept. The step was called, and what it did
    /// has happened; the next attempt calls it again.
    #[error(
        "the step `{name}` has run, but its result brings the steps of its key to {bytes} bytes, and at most \
         {MAX_STEP_BYTES} are kept; the next attempt runs it again. Return only what a later attempt needs, \
         such as an id"
    )]
    TooLarge {
        /// The step.
        name: Arc<str>,
        /// How many bytes the steps of the key would have.
        bytes: usize,
    },
    /// Its result cannot be written as JSON. The step was called, and what it did has happened; the next
    /// attempt calls it again.
    #[error(
        "the step `{name}` has run, but its result cannot be written as JSON; the next attempt runs it again. \
         Return a type that serde can write, with text as the keys of its maps"
    )]
    Unserializable {
        /// The step.
        name: Arc<str>,
    },
    /// Its kept result is not of the type that it returns. The step was called, in this attempt or in one
    /// before, and is not called again.
    #[error(
        "what is kept of the step `{name}` cannot be read as `{expected}` (line {line}, column {column}). It is \
         not run again: accept the type that an earlier version returned, or give the changed step another name"
    )]
    Mismatch {
        /// The step.
        name: Arc<str>,
        /// The type that it returns now.
        expected: &'static str,
        /// The line in the JSON of its result, from 1.
        line: usize,
        /// The column.
        column: usize,
    },
    /// The operation is optimistic, so there is no claim that could keep the result.
    #[error(
        "the step `{name}` cannot be kept, because the operation is optimistic and claims no key; use \
         `.mode(Mode::Transactional)`, or do without steps"
    )]
    Unclaimed {
        /// The step.
        name: Arc<str>,
    },
    /// The operation is a mutex, which keeps nothing of an attempt.
    #[error(
        "the step `{name}` cannot be kept, because the operation has `.mode(Mode::Mutex)`, which keeps nothing of an \
         attempt; use an operation that is not a mutex, or do without steps"
    )]
    Mutex {
        /// The step.
        name: Arc<str>,
    },
    /// The kept steps of the key cannot be read at all. No step is called.
    #[error(
        "what is kept of this key's steps cannot be read: its attribute was changed, or a later version of this \
         library wrote it. Look at the record, and free its key if its steps may run again"
    )]
    Unreadable,
    /// The store refused to keep its result. The step was called, and what it did has happened; unless another
    /// write of this attempt keeps it, the next attempt calls it again.
    #[error(
        "the step `{name}` has run, but the store refused to keep its result; the next attempt may run it again"
    )]
    NotKept {
        /// The step.
        name: Arc<str>,
        /// Why.
        source: StoreError,
    },
    /// The handler has returned or was stopped, so no step is kept any more.
    #[error(
        "the handler of this call has ended, so the step `{name}` is not kept: await steps before the handler \
         returns"
    )]
    HandlerEnded {
        /// The step.
        name: Arc<str>,
    },
}
