//! The store: its servers and its settings. The other modules implement its calls.

use std::{fmt, sync::Arc};

use crate::{config::Config, servers::Servers};

/// A [`Store`](lambda_idempotency_core::store::Store) in Redis or Valkey. Cheap to clone; clones share the
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
