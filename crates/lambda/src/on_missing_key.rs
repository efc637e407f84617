//! Records that have no key.

/// What to do with a record in which the key expression finds no key or, without an expression, that has no default key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// The record fails and returns to its source.
    #[default]
    Return,
    /// The handler runs, without protection against duplicates.
    RunUnprotected,
    /// The record is acknowledged without being processed. Only for operations with a key expression.
    Skip,
}
