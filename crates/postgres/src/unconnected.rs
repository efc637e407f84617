//! Why there is no connection to the server.

use tokio_postgres::Error;

/// Why there is no connection.
pub(crate) enum Unconnected {
    /// The user's function did not load the password.
    NoPassword,
    /// The server could not be reached, or refused.
    Failed(Error),
    /// A proxy shares the sessions of the server among its clients.
    Shared,
    /// The database has this encoding, which cannot hold each text.
    Encoding(String),
}

impl Unconnected {
    /// Whether a server has answered, and says what is wrong.
    pub(crate) fn is_of_server(&self) -> bool {
        match self {
            Self::Failed(error) => error.as_db_error().is_some(),
            Self::Shared | Self::Encoding(_) => true,
            Self::NoPassword => false,
        }
    }
}
