//! Why there is no connection to the server.

use tokio_postgres::Error;

/// Why there is no connection.
pub(crate) enum Unconnected {
    /// The server could not be reached, or refused.
    Failed(Error),
    /// The database has this encoding, which cannot hold each text.
    Encoding(String),
}

impl Unconnected {
    /// Whether the server refused the password, which may have been changed since it was loaded: `28P01`, and `28000` where
    /// it asks another service.
    pub(crate) fn is_of_password(&self) -> bool {
        let Self::Failed(error) = self else { return false };
        error.code().is_some_and(|code| code.code().starts_with("28"))
    }
}
