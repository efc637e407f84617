//! The store: its servers and its settings. The other modules implement its calls.

use std::{fmt, sync::Arc};

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    store::{Capabilities, Store, StoreError, Verdict, Write},
};

use crate::{config::Config, limits::budget, servers::Servers};

/// A [`Store`] in Redis or Valkey. Cheap to clone; clones share the
/// connections.
///
/// Nothing runs between calls: a connection is read and written by the calls that use it, so it stands still while
/// Lambda has frozen the process.
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) servers: Arc<Servers>,
    pub(crate) config: Arc<Config>,
}

impl RedisStore {
    pub(crate) fn of(config: Config) -> Self {
        let config = Arc::new(config);
        Self { servers: Arc::new(Servers::new(Arc::clone(&config))), config }
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

impl Store for RedisStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE.with_native_expiry()
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
        Box::pin(async move {
            let budget = budget(&self.config, call_deadline);
            let answers = self.read_all(keys, &budget).await;
            answers.into_iter().map(|answer| answer.map_err(|f| f.report(false))).collect()
        })
    }
}
