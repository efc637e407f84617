//! The kinds of violations that the audit finds.

/// The kind of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Offence {
    /// A message was acknowledged although its order had not been placed, or had failed permanently.
    Lost,
    /// A message was never settled, or a key is still held.
    Stuck,
    /// An order was placed again without an accepted cause.
    Doubled,
    /// A handler started for a key that was completed.
    RanAgain,
    /// A message was dead-lettered although its order does not fail permanently.
    DeadLettered,
    /// The store's records differ from what happened.
    Store,
    /// The first effect of a message came before that of an earlier message of its group.
    OutOfOrder,
    /// Two executions got the same fence.
    Fence,
    /// A process ended by itself, or an invocation failed as a whole.
    Crashed,
    /// The ledger contradicts itself.
    Ledger,
}
