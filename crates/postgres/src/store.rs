//! The store: connections and settings. The other modules implement its calls.

use std::{fmt, sync::Arc};

use crate::{config::Config, pool::Pool, statements::Statements};

/// A [`Store`](lambda_idempotency_core::store::Store) in a PostgreSQL table. Cheap to clone; clones
/// share the connections.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) pool: Arc<Pool>,
    pub(crate) config: Arc<Config>,
    pub(crate) statements: Arc<Statements>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}
