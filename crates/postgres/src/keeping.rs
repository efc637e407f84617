//! On which connections the server may keep statements: on those where none can meet a statement of another client.
//!
//! A connection is a session of its own on the server, or a proxy gives it another session for each transaction. The client
//! asks for a setting when it connects. The server sets it for this session. A proxy that shares sessions refuses the
//! connection, or passes the setting to none of them.
//!
//! `PgBouncer` 1.21 and later, with `max_prepared_statements`, shares sessions and keeps the statements of its clients apart:
//! it gives each text a name of its own, and prepares it on the session where a client uses it next. The names show that.

use tokio_postgres::Config;

/// On which connections the server may keep statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    Nowhere,
    /// On sessions of their own.
    OwnSession,
    /// Through a `PgBouncer` that keeps those of its clients apart.
    PgBouncer,
}

/// The setting. The server knows none of this name, and keeps it as text.
const SETTING: &str = "-c lambda_idempotency.session=own";

/// Returns a row if the session has the setting.
pub(crate) const IS_OWN: &str = "SELECT 1 FROM current_setting('lambda_idempotency.session', true) AS session(kind) WHERE kind = 'own'";

/// A statement to prepare, before asking for its name.
pub(crate) const PROBE: &str = "SELECT 'lambda-idempotency'";

/// Returns a row if the session has [`PROBE`] under names of `PgBouncer` only.
pub(crate) const IS_RENAMED: &str = "SELECT 1 FROM pg_catalog.pg_prepared_statements \
     WHERE statement = 'SELECT ''lambda-idempotency''' HAVING bool_and(starts_with(name, 'PGBOUNCER_'))";

impl Keeping {
    /// Asks for the setting, beside what the URL asks for.
    pub(crate) fn ask(self, server: &mut Config) {
        if self == Self::OwnSession {
            let options = server.get_options().map(|options| format!("{options} {SETTING}"));
            server.options(options.unwrap_or_else(|| SETTING.to_owned()));
        }
    }
}
