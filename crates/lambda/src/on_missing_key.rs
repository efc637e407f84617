//! Records that have no key.

/// What to do with a record in which the key expression finds no key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// The record fails and returns to its source.
    #[default]
    Return,
    /// The handler runs, without protection against duplicates.
    RunUnprotected,
    /// The record is acknowledged without being processed.
    Skip,
}
