//! Why a store cannot be built.

use std::fmt;

use lambda_idempotency_core::store::StoreError;

/// The error of a store that cannot be built.
///
/// `Debug` shows the message, because Rust prints `Debug` when `main` returns an error.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RedisConfigError {
    /// The URL is not one of a server. The message does not repeat it, because it may hold a password.
    #[error(
        "the URL of the server is not valid; it has the form \
         redis://USER:PASSWORD@HOST:PORT/DATABASE, or rediss:// for TLS, where all but the host can be left out"
    )]
    Url,
    /// The URL asks for TLS, and this crate was compiled without it.
    #[error(
        "the URL begins with rediss://, and lambda-idempotency-redis was compiled without its feature `tls`"
    )]
    NoTls,
    /// The certificates to trust cannot be read, or there are none.
    #[error(
        "there are no certificates to trust: {0}; install the certificates of the system, or pass some to \
         `RedisStoreBuilder::root_certificates`"
    )]
    Certificates(&'static str),
    /// The environment names no store.
    #[error("the environment variable {0} is not set: it holds the URL of the server, redis://HOST:PORT")]
    NoUrl(&'static str),
    /// The server did not answer, or it cannot keep idempotency records: the error says why.
    #[error("the store cannot be used")]
    Server(#[source] StoreError),
}

impl fmt::Debug for RedisConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        match self {
            Self::Server(error) => write!(f, ": {error}"),
            _ => Ok(()),
        }
    }
}
