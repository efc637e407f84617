//! The settings of a store, as its requests need them.

use std::{fmt, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock},
    key::Key,
};

use crate::{
    address::{Address, Login},
    script::Scripts,
    tls::Tls,
};

/// The user's function for the password; its error is left out, because it may hold the password.
pub(crate) type LoadPassword = Arc<dyn Fn() -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// The settings of a store.
pub(crate) struct Config {
    /// The server that the URL names: the only one, or one of a cluster.
    pub(crate) address: Address,
    pub(crate) login: Login,
    pub(crate) load_password: Option<LoadPassword>,
    pub(crate) tls: Option<Tls>,
    pub(crate) database: i64,
    pub(crate) prefix: String,
    pub(crate) attempt_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) backoff: (Duration, Duration),
    pub(crate) expiry_margin: Duration,
    pub(crate) allow_eviction: bool,
    pub(crate) replicas: Option<Replicas>,
    pub(crate) scripts: Scripts,
    pub(crate) clock: Arc<dyn Clock>,
}

/// How many replicas have to have a write before it counts, and how long the server waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replicas {
    pub(crate) least: u32,
    pub(crate) within: Duration,
}

impl Config {
    /// The name under which the server has the record of this key.
    pub(crate) fn name(&self, key: &Key) -> String {
        format!("{}{}", self.prefix, key.as_str())
    }

    /// The key of a record by its name, if it is one of this store.
    pub(crate) fn key(&self, name: &str) -> Option<Key> {
        name.strip_prefix(self.prefix.as_str()).map(Key::from_text)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", &self.address.to_string())
            .field("tls", &self.tls.is_some())
            .field("database", &self.database)
            .field("prefix", &self.prefix)
            .field("attempt_timeout", &self.attempt_timeout)
            .field("allow_eviction", &self.allow_eviction)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}
