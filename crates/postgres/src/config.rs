//! The settings of a store, as its calls need them.

use std::{fmt, time::Duration};

use lambda_idempotency_core::settings::Timing;

use crate::{isolation::Isolation, table::Table};

/// The settings of a store.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) table: Table,
    pub(crate) timing: Timing,
    /// How long a host may take until there is a connection.
    pub(crate) connect_timeout: Duration,
    /// How many hosts the URL names.
    pub(crate) hosts: u32,
    pub(crate) max_connections: usize,
    pub(crate) max_idle: Duration,
    /// `None` leaves it to the session.
    pub(crate) isolation: Option<Isolation>,
}

impl Config {
    /// How long all hosts may take until there is a connection.
    pub(crate) fn connecting(&self) -> Duration {
        self.connect_timeout.saturating_mul(self.hosts)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("table", &self.table.name())
            .field("attempt_timeout", &self.timing.attempt_timeout)
            .field("max_connections", &self.max_connections)
            .field("max_idle", &self.max_idle)
            .finish_non_exhaustive()
    }
}
