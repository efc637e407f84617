//! The store: connections and settings. The other modules implement its calls.

use std::{fmt, sync::Arc};

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    store::{Capabilities, Store, StoreError, Verdict, Write},
};

use crate::{config::Config, connection::Pool, effects::PostgresEffects, statements::Statements};

/// A [`Store`] in a PostgreSQL table. Cheap to clone; clones
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

impl Store for PostgresStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE.with_effects::<PostgresEffects>()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(self.write_all(writes, call_deadline))
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        Box::pin(self.read_all(keys, call_deadline))
    }
}
