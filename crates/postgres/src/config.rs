//! The settings of a store, as its calls need them, and why a store cannot be built.

use std::{fmt, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    retry::{Budget, Timing, chain},
    store::StoreError,
    tls::TlsError,
};

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
    /// Its transactions are read-only.
    pub(crate) reads_only: bool,
}

impl Config {
    /// How long all hosts may take until there is a connection.
    pub(crate) fn connecting(&self) -> Duration {
        self.connect_timeout.saturating_mul(self.hosts)
    }

    /// The same, with the patience that the call has by now.
    pub(crate) fn connecting_by(&self, budget: &Budget<'_>) -> Duration {
        budget.doubled(self.connecting(), self.timing.attempt_timeout)
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

/// How isolated the transactions of a store are from others at the same time: see
/// [`PostgresStoreBuilder::isolation`](crate::PostgresStoreBuilder::isolation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// Each statement sees what was committed before it began.
    ReadCommitted,
    /// All statements of a transaction see the same rows, and none changes a row that another has changed since.
    RepeatableRead,
    /// As if one transaction ran after the other.
    Serializable,
}

impl Isolation {
    pub(crate) const fn clause(self) -> &'static str {
        match self {
            Self::ReadCommitted => " ISOLATION LEVEL READ COMMITTED",
            Self::RepeatableRead => " ISOLATION LEVEL REPEATABLE READ",
            Self::Serializable => " ISOLATION LEVEL SERIALIZABLE",
        }
    }
}

/// The longest name that PostgreSQL keeps whole, less what the names of its indexes add.
const LONGEST: usize = 63 - "_sweep_slot".len();

/// A table, perhaps in a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    schema: Option<Arc<str>>,
    name: Arc<str>,
}

impl Table {
    /// Reads `table` or `schema.table`.
    pub(crate) fn parse(text: &str) -> Result<Self, PostgresConfigError> {
        let (schema, name) = match text.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, text),
        };
        if !is_fit(name) || schema.is_some_and(|schema| !is_fit(schema)) {
            return Err(PostgresConfigError::UnfitTable(text.to_owned()));
        }
        Ok(Self { schema: schema.map(Arc::from), name: Arc::from(name) })
    }

    /// As errors and logs name it.
    pub(crate) fn name(&self) -> impl fmt::Display + fmt::Debug + use<> {
        self.to_string().replace('"', "")
    }

    /// An index of the table, quoted. It is in the schema of its table.
    pub(crate) fn index(&self, of: &str) -> String {
        format!("\"{}_{of}\"", self.name)
    }
}

/// Quoted, as statements need it.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "\"{schema}\".\"{}\"", self.name),
            None => write!(f, "\"{}\"", self.name),
        }
    }
}

/// Letters that need no quotation marks, so that people can write the name as it is.
fn is_fit(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    (1..=LONGEST).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_quoted_with_its_schema() {
        let shown = |text| Table::parse(text).map(|table| table.to_string());
        assert_eq!(shown("idempotency").unwrap(), "\"idempotency\"");
        assert_eq!(shown("orders.idempotency").unwrap(), "\"orders\".\"idempotency\"");
        assert_eq!(Table::parse("a.b").unwrap().name().to_string(), "a.b");
        assert_eq!(Table::parse("a.b").unwrap().index("sweep_slot"), "\"b_sweep_slot\"");
    }

    #[test]
    fn a_name_that_would_need_quotation_marks_is_refused() {
        for text in ["", "a.", ".a", "a.b.c", "Orders", "a b", "a\"b", "1a", &"x".repeat(53)] {
            let error = Table::parse(text).unwrap_err();
            assert!(error.to_string().contains("cannot be a table name"), "{error}");
        }
        assert!(Table::parse(&"x".repeat(52)).is_ok());
    }
}
