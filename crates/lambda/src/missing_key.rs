//! Records that have no key.

/// What becomes of a record in which the key expression finds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// The record fails and goes back to its source.
    #[default]
    Return,
    /// The handler runs, without protection against duplicates.
    RunUnprotected,
    /// The record is acknowledged without being processed.
    Skip,
}
