//! Building a store: what can be set, and its defaults.

use std::{error::Error, fmt, future::Future, sync::Arc, time::Duration};

use lambda_idempotency_core::clock::{Clock, SystemClock};

use crate::{
    address::Url,
    config::{Config, Replicas},
    config_error::RedisConfigError,
    credentials::{Provider, RedisCredentials, provider},
    retry::Budget,
    script::Scripts,
    store::RedisStore,
    tls::Tls,
};

/// How long one request may take before it is sent again.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a connection may take, with TLS and login.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a failed attempt, and the most it grows to.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(400));
/// How much longer the server keeps a record than it counts.
const EXPIRY_MARGIN: Duration = Duration::from_secs(600);
/// How long [`RedisStoreBuilder::build`] tries to reach the servers.
const START: Duration = Duration::from_secs(5);
/// What the names of records in the server begin with.
const PREFIX: &str = "idempotency:";

impl RedisStore {
    /// The store in the server of this URL, with every setting at its default. It connects to the server, and
    /// refuses one that cannot keep idempotency records.
    ///
    /// The URL is `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `rediss://` for TLS; all but the host can be left
    /// out. `valkey` and `valkeys` mean the same. The server may be one of a cluster, whose other servers it names.
    ///
    /// # Errors
    /// As [`RedisStoreBuilder::build`].
    pub async fn connect(url: &str) -> Result<Self, RedisConfigError> {
        Self::builder(url).build().await
    }

    /// A builder of the store in the server of this URL, with every setting at its default.
    pub fn builder(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder::new(url)
    }
}

/// Builds a [`RedisStore`] with other settings than the defaults; see [`RedisStore::builder`].
#[derive(Clone)]
#[must_use = "call `build`"]
pub struct RedisStoreBuilder {
    /// It may hold a password, so `Debug` does not show it.
    url: String,
    provider: Option<Provider>,
    certificates: Option<Vec<u8>>,
    prefix: String,
    attempt_timeout: Duration,
    connect_timeout: Duration,
    backoff: (Duration, Duration),
    expiry_margin: Duration,
    allow_eviction: bool,
    replicas: Option<Replicas>,
    clock: Arc<dyn Clock>,
}

impl RedisStoreBuilder {
    fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            provider: None,
            certificates: None,
            prefix: PREFIX.to_owned(),
            attempt_timeout: ATTEMPT_TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            backoff: BACKOFF,
            expiry_margin: EXPIRY_MARGIN,
            allow_eviction: false,
            replicas: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// Who logs in, asked anew for each connection: for tokens that expire, such as those of IAM for ElastiCache and
    /// MemoryDB, or for a password that is rotated. Default: user and password of the URL.
    ///
    /// An error of the function means that the store is unavailable; its text is not logged.
    ///
    /// ```
    /// use lambda_idempotency_redis::{RedisCredentials, RedisStore};
    ///
    /// # async fn iam_token() -> Result<String, std::io::Error> { Ok(String::new()) }
    /// let store = RedisStore::builder("rediss://orders.abc123.euw1.cache.amazonaws.com")
    ///     .credentials(|| async { Ok::<_, std::io::Error>(RedisCredentials::new("orders", iam_token().await?)) });
    /// # let _ = store;
    /// ```
    pub fn credentials<F, R, E>(mut self, function: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<RedisCredentials, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.provider = Some(provider(function));
        self
    }

    /// The certificates to trust, in PEM, instead of those of the system. For `rediss://` only.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.certificates = Some(pem.into());
        self
    }

    /// What the names of records in the server begin with. Default `idempotency:`. Stores with different prefixes
    /// share no records.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long one request may take before it is sent again, if the deadline of the call allows.
    /// Default 1 s: the server answers within a millisecond, so a slower response is most likely lost.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// How long a new connection may take, with TLS and login, if the deadline of the call allows. Default 1 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The pause after a failed attempt, and the most it doubles to. Default 25 ms and 400 ms; the
    /// second half of each pause is random.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        self.backoff = (first, most);
        self
    }

    /// How much longer the server keeps a record than it counts, by the server's clock. Default 10 minutes. It has to
    /// be more than the clocks of workers and servers differ.
    pub fn expiry_margin(mut self, margin: Duration) -> Self {
        self.expiry_margin = margin;
        self
    }

    /// Accepts a server whose `maxmemory-policy` evicts keys when memory runs out, and one that does not say which
    /// policy it has. Work whose record was evicted runs again. Default: such a server is refused.
    pub fn allow_eviction(mut self) -> Self {
        self.allow_eviction = true;
        self
    }

    /// Lets a write count only once so many replicas have it (`WAIT`), for which the server waits so long. Without
    /// them the write is repeated until the deadline of the call, and is then in doubt.
    ///
    /// It makes it less likely that a failover loses a write, not impossible: a replica that has not confirmed it may
    /// be promoted. Each write takes as long as the replication. Default: a write counts as soon as the primary has it.
    pub fn wait_for_replicas(mut self, least: u32, within: Duration) -> Self {
        self.replicas = Some(Replicas { least, within }).filter(|_| least > 0);
        self
    }

    /// The clock. Default: the machine's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Builds the store, connects to each primary, and checks it. Tries for up to five seconds.
    ///
    /// # Errors
    /// As [`build_unconnected`](Self::build_unconnected), and [`RedisConfigError::Server`] if a server does not answer,
    /// refuses the login, is older than version 7, or may evict records.
    pub async fn build(self) -> Result<RedisStore, RedisConfigError> {
        let store = self.build_unconnected()?;
        let budget = Budget::new(&store.config, store.config.clock.now().plus(START));
        store.check(&budget).await.map_err(|f| RedisConfigError::Server(f.report(false)))?;
        Ok(store)
    }

    /// Builds the store without connecting. Its first calls connect, and a server that cannot keep idempotency
    /// records is reported by them. For a function that has to start while the server is down.
    ///
    /// # Errors
    /// [`RedisConfigError::Url`], [`RedisConfigError::NoTls`] and [`RedisConfigError::Certificates`].
    pub fn build_unconnected(self) -> Result<RedisStore, RedisConfigError> {
        let url = Url::parse(&self.url)?;
        let tls = if url.tls { Some(Tls::new(self.certificates.as_deref())?) } else { None };
        Ok(RedisStore::new(Config {
            address: url.address,
            login: url.login,
            provider: self.provider,
            tls,
            database: url.database,
            prefix: self.prefix,
            attempt_timeout: self.attempt_timeout,
            connect_timeout: self.connect_timeout,
            backoff: self.backoff,
            expiry_margin: self.expiry_margin,
            allow_eviction: self.allow_eviction,
            replicas: self.replicas,
            scripts: Scripts::new(),
            clock: self.clock,
        }))
    }
}

impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("prefix", &self.prefix)
            .field("attempt_timeout", &self.attempt_timeout)
            .field("allow_eviction", &self.allow_eviction)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}
