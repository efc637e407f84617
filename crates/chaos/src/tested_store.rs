//! Which store the function has.

use crate::{FaultKind, named::named};

named! {
    "a store";
    /// Where the function keeps its idempotency records.
    #[derive(Default)]
    pub enum TestedStore {
        /// In the embedded DynamoDB.
        #[default]
        DynamoDb = "dynamodb",
        /// In a server of PostgreSQL that the rig starts, kills and starts again.
        Postgres = "postgres",
        /// In such a server of Redis or Valkey.
        Redis = "redis",
    }
}

impl TestedStore {
    /// Whether it commits effects in the transaction that completes their key.
    #[must_use]
    pub const fn commits(self) -> bool {
        !matches!(self, Self::Redis)
    }

    /// Whether this can go wrong with it. What is wrong with processes and handlers can with every store.
    #[must_use]
    pub fn has(self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::Throttle | FaultKind::Error | FaultKind::Conflict => self == Self::DynamoDb,
            FaultKind::Silence | FaultKind::ServerKill => self != Self::DynamoDb,
            _ => true,
        }
    }
}
