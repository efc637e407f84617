//! Records that have no key.

/// What to do with a record in which the key expression finds no key or, without an expression, that has no default key.
///
/// None is acknowledged without a call of the handler, since a mistake in the expression would lose them all. Records that
/// are not for this function are left out by the event source mapping (`FilterCriteria`), the subscription or the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// The record fails and returns to its source; a caller gets an error.
    #[default]
    Return,
    /// The handler runs, without protection against duplicates.
    RunUnprotected,
}
