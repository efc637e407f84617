//! How isolated the transactions of a store are.

/// How isolated the transactions of a store are from others at the same time: see
/// [`PostgresStoreBuilder::isolation`](crate::PostgresStoreBuilder::isolation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// Each statement sees what was committed before it began.
    ReadCommitted,
    /// All statements of a transaction see the same rows, and none changes a row that another has changed since.
    RepeatableRead,
    /// As if one transaction ran after the other.
    Serializable,
}

impl Isolation {
    pub(crate) const fn clause(self) -> &'static str {
        match self {
            Self::ReadCommitted => " ISOLATION LEVEL READ COMMITTED",
            Self::RepeatableRead => " ISOLATION LEVEL REPEATABLE READ",
            Self::Serializable => " ISOLATION LEVEL SERIALIZABLE",
        }
    }
}
