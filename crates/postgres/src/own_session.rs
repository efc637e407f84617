//! Whether a connection is a session of its own on the server, or a proxy gives it another one for each transaction.
//!
//! The client asks for a setting when it connects. The server sets it for this session. A proxy that shares sessions
//! refuses the connection, or passes the setting to none of them.

use tokio_postgres::Config;

/// The setting. The server knows none of this name, and keeps it as text.
const SETTING: &str = "-c lambda_idempotency.session=own";

/// Returns a row if the session has the setting.
pub(crate) const IS_OWN: &str = "SELECT 1 FROM current_setting('lambda_idempotency.session', true) AS session(kind) WHERE kind = 'own'";

/// Asks for the setting, beside what the URL asks for.
pub(crate) fn ask(server: &mut Config) {
    let options = server.get_options().map(|options| format!("{options} {SETTING}"));
    server.options(options.unwrap_or_else(|| SETTING.to_owned()));
}
