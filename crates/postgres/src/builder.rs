//! Building a store: what can be set, its defaults, and the URL from the environment.

use std::{error::Error, fmt, future::Future, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Clock,
    retry::Timing,
    settings::{LoadPassword, NotText, variable},
    tls,
};

use crate::{
    config::{Config, Isolation, PostgresConfigError, Table},
    connection::{Pool, Target, Tls},
    statements::Statements,
    store::PostgresStore,
    url::Url,
};

/// The table, if none is named.
const TABLE: &str = "idempotency";
/// How long a connection may take, with TLS and login.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Each execution environment has a pool of its own, and servers have few connections.
const MAX_CONNECTIONS: usize = 4;
/// Less than the idle timeouts of networks and proxies, of which none is below a minute.
const MAX_IDLE: Duration = Duration::from_secs(50);
/// The environment variable with the URL.
const VARIABLE: &str = "IDEMPOTENCY_STORE";

impl PostgresStore {
    /// The store in the database of this URL, with every setting at its default. See
    /// [`builder`](Self::builder).
    ///
    /// # Errors
    /// As [`PostgresStoreBuilder::build`].
    pub fn new(url: &str) -> Result<Self, PostgresConfigError> {
        Self::builder(url).build()
    }

    /// As [`new`](Self::new), and [checks](Self::check) the server. Call it once, before the runtime starts.
    ///
    /// # Errors
    /// As [`PostgresStoreBuilder::build`] and [`check`](Self::check).
    pub async fn connect(url: &str) -> Result<Self, PostgresConfigError> {
        let store = Self::new(url)?;
        store.check().await?;
        Ok(store)
    }

    /// A builder of the store in the database of this URL: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with
    /// special characters percent-encoded. Several hosts, separated by commas, are tried in turn until one takes the connection; with
    /// `?target_session_attrs=read-write` the one that takes writes is used. Connections are encrypted, unless the
    /// URL ends with `?sslmode=disable`; `?sslrootcert=FILE` names the certificates to trust.
    ///
    /// No connection is made: [`check`](Self::check) makes one, or else the first call does.
    pub fn builder(url: &str) -> PostgresStoreBuilder {
        PostgresStoreBuilder::new(url.to_owned())
    }

    /// The store whose URL is in `IDEMPOTENCY_STORE`, [checked](Self::check). Do not write a password into the
    /// environment of a function, where everybody sees it who can see the function: use
    /// [`builder_from_env`](Self::builder_from_env) and [`password`](PostgresStoreBuilder::password).
    ///
    /// # Errors
    /// [`PostgresConfigError::NoUrl`] if `IDEMPOTENCY_STORE` is not set or empty,
    /// [`PostgresConfigError::NotText`] and [`PostgresConfigError::UnfitVariable`] if it cannot be read, and those of
    /// [`PostgresStoreBuilder::build`] and [`check`](Self::check).
    pub async fn from_env() -> Result<Self, PostgresConfigError> {
        let store = Self::builder_from_env()?.build()?;
        store.check().await?;
        Ok(store)
    }

    /// As [`from_env`](Self::from_env), as a builder for further settings.
    ///
    /// # Errors
    /// [`PostgresConfigError::NoUrl`] if `IDEMPOTENCY_STORE` is not set or empty,
    /// [`PostgresConfigError::NotText`] and [`PostgresConfigError::UnfitVariable`] if it cannot be read.
    pub fn builder_from_env() -> Result<PostgresStoreBuilder, PostgresConfigError> {
        let url = variable(VARIABLE).map_err(|NotText(name)| PostgresConfigError::NotText(name))?;
        let url = url.ok_or(PostgresConfigError::NoUrl(VARIABLE))?;
        Url::parse(&url).map_err(|error| match error {
            PostgresConfigError::UnfitUrl => PostgresConfigError::UnfitVariable(VARIABLE),
            other => other,
        })?;
        Ok(Self::builder(&url))
    }
}

/// Builds a [`PostgresStore`] with other settings than the defaults; see [`PostgresStore::builder`].
#[derive(Clone)]
#[must_use = "call `build`"]
pub struct PostgresStoreBuilder {
    url: String,
    table: String,
    password: Option<LoadPassword>,
    root_certificates: Option<Vec<u8>>,
    timing: Timing,
    connect_timeout: Option<Duration>,
    max_connections: usize,
    max_idle: Duration,
    isolation: Option<Isolation>,
    reads_only: bool,
}

impl PostgresStoreBuilder {
    fn new(url: String) -> Self {
        Self {
            url,
            table: TABLE.to_owned(),
            password: None,
            root_certificates: None,
            timing: Timing::default(),
            connect_timeout: None,
            max_connections: MAX_CONNECTIONS,
            max_idle: MAX_IDLE,
            isolation: None,
            reads_only: false,
        }
    }

    /// The table: `TABLE` or `SCHEMA.TABLE`, in lower-case letters, digits and `_`. Default: `idempotency`,
    /// in the first schema of the role's search path.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = table.into();
        self
    }

    /// Loads the password of each new connection, in place of one in the URL: from AWS Secrets Manager, or a
    /// token of RDS IAM authentication, which is valid for a quarter of an hour.
    ///
    /// It may take ten seconds, which do not count as connecting: a call that ends meanwhile leaves it to the next one. It is
    /// called once more if the server refuses the password, so let it not keep one that somebody may change. If it fails, no
    /// connection is made, and the call is repeated until its deadline. Its error is not logged, since it may hold the password.
    ///
    /// ```
    /// use lambda_idempotency_postgres::PostgresStore;
    ///
    /// # async fn iam_token() -> Result<String, std::io::Error> { Ok(String::new()) }
    /// let store = PostgresStore::builder("postgres://orders@orders.abc123.eu-west-1.rds.amazonaws.com/orders")
    ///     .password(|| async { iam_token().await });
    /// # let _ = store;
    /// ```
    pub fn password<F, L, E>(mut self, load: F) -> Self
    where
        F: AsyncFnOnce() -> Result<String, E> + FnOnce() -> L + Clone + Send + Sync + 'static,
        L: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.password = Some(LoadPassword::new(load));
        self
    }

    /// The certificates to trust, in PEM, instead of those of the system, which do not contain the certificates
    /// of [Amazon RDS][rds]; of its proxies they do.
    ///
    /// [rds]: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.SSL.html
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = Some(pem.into());
        self
    }

    /// How long one request may take before it is sent again, if the deadline of the call allows.
    /// Default 1 s. The server stops a statement a little earlier (`statement_timeout`), and stops waiting
    /// for a locked row earlier than that (`lock_timeout`). An effect that takes longer than its first request gets all the time
    /// that the call has left in the next one.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.timing.attempt_timeout = timeout;
        self
    }

    /// How long a new connection may take, with TLS and login, if the deadline of the call allows. It may take twice as long
    /// at the next try of the call, up to eight times. Default: the `connect_timeout` of the URL, in seconds, or else 1 s.
    /// Each of several hosts may take so long to answer, or its share of what the call has left. Waiting while [all connections](Self::max_connections) are in use does not count.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// The pause after a failed attempt, and the most it doubles to. Default 25 ms and 400 ms; the
    /// second half of each pause is random.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        self.timing.backoff = (first, most);
        self
    }

    /// The most connections of this store; further calls wait, until their deadlines. Default 4. An execution environment
    /// of Lambda uses one for most of the time, and more while handlers run beside each other. The server needs as
    /// many as all execution environments use together, unless a proxy is before it.
    ///
    /// One in six of them is kept for completions and renewals, and at least one of two to six: claims, reads and completions
    /// with effects take 3 of 4, and 10 of 12. A completion that waits goes before them, so it waits only for other
    /// completions and renewals, which take a round trip each. One connection cannot be reserved: there it also waits for
    /// the call that has the connection. A completion with effects goes before claims and reads, but waits for others with
    /// effects, which may wait for locked rows: give the store more connections if many do.
    ///
    /// A call that its program does not poll any more, such as one of a stream while the body of a loop over it waits, loses its
    /// connection when its requests would have run into their time limits. Another call opens a new one then.
    pub fn max_connections(mut self, most: usize) -> Self {
        self.max_connections = most;
        self
    }

    /// For how long a connection may be idle and still be used. Default 50 s: networks and proxies
    /// forget idle connections without saying so, and a frozen process does not learn of it.
    pub fn max_idle(mut self, idle: Duration) -> Self {
        self.max_idle = idle;
        self
    }

    /// How isolated the transactions of this store are, effects included. Default: as the server, the database, the role or
    /// the URL says (`default_transaction_isolation`), which is `READ COMMITTED` unless somebody changed it. The records are
    /// right at each level.
    ///
    /// ```
    /// use lambda_idempotency_postgres::{Isolation, PostgresStore};
    ///
    /// // Two orders that look for a free seat never take the same one.
    /// let store = PostgresStore::builder("postgres://orders@db.example.com/orders")
    ///     .isolation(Isolation::Serializable);
    /// # let _ = store;
    /// ```
    pub fn isolation(mut self, level: Isolation) -> Self {
        self.isolation = Some(level);
        self
    }

    /// A store for tools that look at records: its transactions are read-only, so that the role needs `SELECT` only, and the
    /// server may be a standby, whose records may be old. Writes are refused. Default: a function's store, which is refused
    /// where it may not write.
    pub fn read_only(mut self) -> Self {
        self.reads_only = true;
        self
    }

    /// The clock. Default: the machine's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.timing.clock = Arc::new(clock);
        self
    }

    /// Builds the store.
    ///
    /// # Errors
    /// [`PostgresConfigError`] says which setting is wrong; never [`PostgresConfigError::Server`], since no
    /// connection is made.
    pub fn build(self) -> Result<PostgresStore, PostgresConfigError> {
        let table = Table::parse(&self.table)?;
        let Url { mut server, tls, root_certificates } = Url::parse(&self.url)?;
        if self.max_connections == 0 {
            return Err(PostgresConfigError::NoConnections);
        }
        if server.get_application_name().is_none() {
            server.application_name("lambda-idempotency");
        }
        let pem = match (self.root_certificates, root_certificates) {
            (Some(given), _) => Some(given),
            (None, Some(path)) if tls => {
                Some(std::fs::read(path).map_err(|_| PostgresConfigError::UnfitCertificates)?)
            }
            (None, _) => None,
        };
        let tls = if tls { Some(Tls(tls::Tls::new(pem.as_deref())?)) } else { None };
        let hosts = server.get_hosts().len().max(server.get_hostaddrs().len());
        let hosts = u32::try_from(hosts).unwrap_or(u32::MAX);
        // That of the URL counts unless the program says otherwise.
        let of_url = server.get_connect_timeout().copied();
        let connect_timeout = self.connect_timeout.or(of_url).unwrap_or(CONNECT_TIMEOUT);
        let target = Target { server, password: self.password, tls };
        let statements = Arc::new(Statements::of(&table));
        let config = Config {
            table,
            timing: self.timing,
            connect_timeout,
            hosts,
            max_connections: self.max_connections,
            max_idle: self.max_idle,
            isolation: self.isolation,
            reads_only: self.reads_only,
        };
        let pool = Arc::new(Pool::new(target, &config));
        Ok(PostgresStore { pool, config: Arc::new(config), statements })
    }
}

impl fmt::Debug for PostgresStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStoreBuilder").field("table", &self.table).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_connection_and_its_timeout_is_that_of_the_program_or_of_the_url_or_a_second() {
        let of = |url: &str, own: Option<u64>| {
            let mut builder = PostgresStore::builder(url);
            if let Some(seconds) = own {
                builder = builder.connect_timeout(Duration::from_secs(seconds));
            }
            builder.build().unwrap().config.connecting().as_secs()
        };
        let url = "postgres://db/orders?sslmode=disable";
        assert_eq!(of(url, None), 1);
        assert_eq!(of(&format!("{url}&connect_timeout=3"), None), 3);
        assert_eq!(of(&format!("{url}&connect_timeout=3"), Some(2)), 2);
        assert_eq!(of("postgres://a,b/orders?sslmode=disable&connect_timeout=3", None), 6);
        let none = PostgresStore::builder(url).max_connections(0).build();
        assert!(matches!(none, Err(PostgresConfigError::NoConnections)));
    }
}
