//! The settings of a store, as its requests need them.

use std::{fmt, time::Duration};

use lambda_idempotency_core::{
    key::Key,
    settings::{LoadPassword, Timing},
    tls::Tls,
};

use crate::{
    address::{Address, Login},
    script::Scripts,
};

/// The settings of a store.
pub(crate) struct Config {
    /// The server that the URL names: the only one, or one of a cluster.
    pub(crate) address: Address,
    pub(crate) login: Login,
    pub(crate) load_password: Option<LoadPassword>,
    pub(crate) tls: Option<Tls>,
    pub(crate) database: i64,
    pub(crate) prefix: String,
    pub(crate) timing: Timing,
    pub(crate) connect_timeout: Duration,
    pub(crate) expiry_margin: Duration,
    pub(crate) allow_eviction: bool,
    pub(crate) scripts: Scripts,
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
            .field("attempt_timeout", &self.timing.attempt_timeout)
            .field("allow_eviction", &self.allow_eviction)
            .finish_non_exhaustive()
    }
}
