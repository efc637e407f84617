//! Why a store cannot be built.

use std::fmt;

use lambda_idempotency_core::{retry::chain, store::StoreError, tls::TlsError};

/// The error of a store that cannot be built. It never shows the URL, which may hold a password.
///
/// `Debug` shows the message, because Rust prints `Debug` when `main` returns an error.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RedisConfigError {
    /// The environment names no store.
    #[error(
        "the environment variable {0} is not set: it names the Redis server to use, as redis://HOST:PORT"
    )]
    NoUrl(&'static str),
    /// The environment variable cannot be read.
    #[error(
        "the environment variable {0} is not valid UTF-8 text: write it as redis://HOST:PORT, with special characters \
         percent-encoded"
    )]
    NotText(&'static str),
    /// The environment variable is not a URL that can be read.
    #[error(
        "the environment variable {0} is not the URL of a Redis server: write it as \
         redis://USER@HOST:PORT/DATABASE, or rediss:// for TLS, with special characters percent-encoded"
    )]
    UnfitVariable(&'static str),
    /// The URL cannot be read.
    #[error(
        "the URL of the Redis server cannot be read: write it as redis://USER:PASSWORD@HOST:PORT/DATABASE, or \
         rediss:// for TLS, with special characters percent-encoded"
    )]
    UnfitUrl,
    /// The certificates that were given cannot be read.
    #[error(
        "the root certificates cannot be read: give them as PEM, with BEGIN CERTIFICATE and END CERTIFICATE \
         lines"
    )]
    UnfitCertificates,
    /// The machine has no root certificates.
    #[error(
        "this machine has no root certificates to check the server's with: give them with \
         `root_certificates`"
    )]
    NoCertificates,
    /// The crate was built without TLS, which the URL asks for.
    #[error(
        "this crate was built without TLS: turn on its feature `tls`, or write redis:// in the URL if \
         nobody else can read what is sent"
    )]
    NoTls,
    /// The server does not answer, or it cannot keep idempotency records.
    #[error("the Redis server cannot be used")]
    Server(#[source] StoreError),
}

impl From<TlsError> for RedisConfigError {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::UnfitCertificates => Self::UnfitCertificates,
            TlsError::NoCertificates => Self::NoCertificates,
            _ => Self::NoTls,
        }
    }
}

impl fmt::Debug for RedisConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        match self {
            Self::Server(error) => write!(f, ": {}", chain(error)),
            _ => Ok(()),
        }
    }
}
