//! The settings of a store, as its requests need them, and why a store cannot be built.

use std::{fmt, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    key::Key,
    retry::{Timing, chain},
    settings::LoadPassword,
    store::StoreError,
    tls::{Tls, TlsError},
};

use crate::script::Scripts;

/// The settings of a store.
pub(crate) struct Config {
    /// The server that the URL names: the only one, or one of a cluster.
    pub(crate) address: Address,
    pub(crate) login: Login,
    pub(crate) load_password: Option<LoadPassword>,
    pub(crate) tls: Option<Tls>,
    pub(crate) database: i64,
    pub(crate) prefix: String,
    pub(crate) timing: Timing,
    pub(crate) connect_timeout: Duration,
    pub(crate) expiry_margin: Duration,
    pub(crate) allow_eviction: bool,
    pub(crate) scripts: Scripts,
}

impl Config {
    /// The name under which the server has the record of this key.
    pub(crate) fn name(&self, key: &Key) -> String {
        format!("{}{}", self.prefix, key.as_str())
    }

    /// The key of a record by its name, if it is one of this store.
    pub(crate) fn key(&self, name: &str) -> Option<Key> {
        name.strip_prefix(self.prefix.as_str()).map(Key::from_text)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", &self.address.to_string())
            .field("tls", &self.tls.is_some())
            .field("database", &self.database)
            .field("prefix", &self.prefix)
            .field("attempt_timeout", &self.timing.attempt_timeout)
            .field("allow_eviction", &self.allow_eviction)
            .finish_non_exhaustive()
    }
}

/// A server's host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
}

impl Address {
    /// Reads `HOST:PORT`, as a redirection has it. Without a host it is `same_host`.
    pub(crate) fn parse(text: &str, same_host: &Arc<str>) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = if host.is_empty() { Arc::clone(same_host) } else { host.into() };
        Some(Self { host, port: port.parse().ok()? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The user and the password. It has no `Debug`, because it holds a password.
#[derive(Clone, Default)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirection_may_leave_out_the_host() {
        let host: Arc<str> = "10.0.0.1".into();
        let read = |text| Address::parse(text, &host).map(|address| address.to_string());
        assert_eq!(read("10.0.0.2:6381").as_deref(), Some("10.0.0.2:6381"));
        assert_eq!(read(":6381").as_deref(), Some("10.0.0.1:6381"));
        assert_eq!(read("2001:db8::1:6381").as_deref(), Some("2001:db8::1:6381"));
        assert_eq!((read("nonsense"), read("a:b")), (None, None));
    }
}
