//! Why there is no connection to the server.

use tokio_postgres::Error;

/// Why there is no connection.
pub(crate) enum Unconnected {
    /// The user's function did not load the password.
    NoPassword,
    /// The server could not be reached, or refused.
    Failed(Error),
    /// The database has this encoding, which cannot hold each text.
    Encoding(String),
}
