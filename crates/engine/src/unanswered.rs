//! A store that gives fewer answers than it was asked for.

use lambda_idempotency_core::{
    outbox::SendError,
    store::{StoreError, StoreErrorKind},
};

/// The answers of a call, and what is `missing` for ever after: a store that answers too little must not
/// make a delivery disappear.
pub(crate) fn each<T>(answers: Vec<T>, missing: impl FnMut() -> T) -> impl Iterator<Item = T> {
    answers.into_iter().chain(std::iter::repeat_with(missing))
}

/// The error in place of an answer that a store did not give.
pub(crate) fn unanswered() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "the store gave fewer answers than it was asked for; run its conformance tests",
    )
}

/// The error in place of an answer that a sender did not give.
pub(crate) fn unsent() -> SendError {
    SendError::new("the sender gave fewer answers than it was asked for; correct it")
}
