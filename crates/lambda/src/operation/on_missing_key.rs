//! Records that have no key.

/// What to do with a record in which the key expression finds no key or, without an expression, that has no default key.
///
/// A source can acknowledge such records without processing them:
/// [`skip_without_key`](crate::source::Sqs::skip_without_key).
///
/// A payload that is still in an [envelope](crate::source::Envelope), from which the expression reads nothing, is a bad
/// record whatever is set here: its source lacks an `.envelope(..)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// The record fails and returns to its source; a caller gets an error.
    #[default]
    Return,
    /// The handler runs, without protection against duplicates.
    RunUnprotected,
}
