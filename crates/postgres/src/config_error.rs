//! Why a store cannot be built.

use std::fmt;

use lambda_idempotency_core::{retry::chain, store::StoreError, tls::TlsError};

/// The error of a store that cannot be built, or not be used. It never shows the URL, which may hold a
/// password.
///
/// `Debug` shows the message, because Rust prints `Debug` when `main` returns an error.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresConfigError {
    /// The environment names no store.
    #[error(
        "the environment variable {0} is not set: it names the PostgreSQL server and database to use, as \
         postgres://USER@HOST/DATABASE"
    )]
    NoUrl(&'static str),
    /// The environment variable cannot be read.
    #[error(
        "the environment variable {0} is not valid UTF-8 text: write it as postgres://USER@HOST/DATABASE, with \
         special characters percent-encoded"
    )]
    NotText(&'static str),
    /// The environment variable is not a URL that can be read.
    #[error(
        "the environment variable {0} is not the URL of a PostgreSQL server: write it as \
         postgres://USER@HOST:PORT/DATABASE, with special characters percent-encoded"
    )]
    UnfitVariable(&'static str),
    /// The URL cannot be read.
    #[error(
        "the URL of the PostgreSQL server cannot be read: write it as \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters percent-encoded"
    )]
    UnfitUrl,
    /// A parameter of the URL, or its value, that libpq knows and this store does not.
    #[error(
        "the URL of the PostgreSQL server has a value of `{0}` that this store does not support: leave the parameter out. \
         The server's certificate and its name are always checked"
    )]
    UnsupportedParameter(String),
    /// The URL names a cluster of Aurora DSQL.
    #[error(
        "Aurora DSQL cannot keep idempotency records for this store, which needs transactions at the isolation level READ \
         COMMITTED: use PostgreSQL on RDS or Aurora, or DynamoDB"
    )]
    AuroraDsql,
    /// The certificates that were given cannot be read.
    #[error(
        "the root certificates cannot be read: give them as PEM, with BEGIN CERTIFICATE and END CERTIFICATE \
         lines, or in the URL the file of them as ?sslrootcert=FILE"
    )]
    UnfitCertificates,
    /// The machine has no root certificates.
    #[error(
        "this machine has no root certificates to check the server's with: give them with \
         `root_certificates`"
    )]
    NoCertificates,
    /// The crate was built without TLS, and the URL does not turn it off.
    #[error(
        "this crate was built without TLS: turn on its feature `tls`, or end the URL with ?sslmode=disable \
         if nobody else can read what is sent"
    )]
    NoTls,
    /// A table name that is empty, too long, or would need quotation marks.
    #[error(
        "{0:?} cannot be a table name: 1 to 52 lower-case letters, digits and `_`, not beginning with a \
         digit, perhaps after a schema and a point"
    )]
    UnfitTable(String),
    /// The number of connections is zero.
    #[error("a store needs a connection: set `max_connections` to 1 or more")]
    NoConnections,
    /// The server does not answer, or it cannot keep idempotency records.
    #[error("the PostgreSQL server cannot be used")]
    Server(#[source] StoreError),
}

impl From<TlsError> for PostgresConfigError {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::UnfitCertificates => Self::UnfitCertificates,
            TlsError::NoCertificates => Self::NoCertificates,
            _ => Self::NoTls,
        }
    }
}

impl fmt::Debug for PostgresConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        match self {
            Self::Server(error) => write!(f, ": {}", chain(error)),
            _ => Ok(()),
        }
    }
}
