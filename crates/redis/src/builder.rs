//! Building a store: what can be set, its defaults, and the URL from the environment.

use std::{error::Error, fmt, future::Future, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Clock,
    retry::Timing,
    settings::{LoadPassword, NotText, variable},
    tls::Tls,
};

use crate::{
    config::{Config, RedisConfigError},
    script::Scripts,
    store::RedisStore,
    url::Url,
};

/// How long a connection may take, with TLS and login.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How much longer the server keeps a record than it counts.
const EXPIRY_MARGIN: Duration = Duration::from_secs(600);
/// The beginning of the names of records in the server.
const PREFIX: &str = "idempotency:";
/// The environment variable that holds the URL.
const VARIABLE: &str = "IDEMPOTENCY_STORE";

impl RedisStore {
    /// The store in the server of this URL, with every setting at its default. See [`builder`](Self::builder).
    ///
    /// # Errors
    /// As [`RedisStoreBuilder::build`].
    pub fn new(url: &str) -> Result<Self, RedisConfigError> {
        Self::builder(url).build()
    }

    /// As [`new`](Self::new), and [checks](Self::check) the servers. Call it once, before the runtime starts.
    ///
    /// # Errors
    /// As [`RedisStoreBuilder::build`] and [`check`](Self::check).
    pub async fn connect(url: &str) -> Result<Self, RedisConfigError> {
        let store = Self::new(url)?;
        store.check().await?;
        Ok(store)
    }

    /// A builder of the store in the server of this URL: `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `rediss://`
    /// for TLS, with special characters percent-encoded. All but the host can be left out. `valkey` and `valkeys` mean
    /// the same. The server may be one of a cluster, whose other servers it names.
    ///
    /// No connection is made: [`check`](Self::check) makes them, or else the first calls do.
    pub fn builder(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder::new(url)
    }

    /// The store whose URL is in `IDEMPOTENCY_STORE`, [checked](Self::check). Do not write a password into the
    /// environment of a function, where everybody sees it who can see the function: use
    /// [`builder_from_env`](Self::builder_from_env) and [`password`](RedisStoreBuilder::password).
    ///
    /// # Errors
    /// [`RedisConfigError::NoUrl`] if `IDEMPOTENCY_STORE` is not set or empty,
    /// [`RedisConfigError::NotText`] and [`RedisConfigError::UnfitVariable`] if it cannot be read, and those of
    /// [`RedisStoreBuilder::build`] and [`check`](Self::check).
    pub async fn from_env() -> Result<Self, RedisConfigError> {
        let store = Self::builder_from_env()?.build()?;
        store.check().await?;
        Ok(store)
    }

    /// As [`from_env`](Self::from_env), as a builder for further settings.
    ///
    /// # Errors
    /// [`RedisConfigError::NoUrl`] if `IDEMPOTENCY_STORE` is not set or empty,
    /// [`RedisConfigError::NotText`] and [`RedisConfigError::UnfitVariable`] if it cannot be read.
    pub fn builder_from_env() -> Result<RedisStoreBuilder, RedisConfigError> {
        let url = variable(VARIABLE).map_err(|NotText(name)| RedisConfigError::NotText(name))?;
        let url = url.ok_or(RedisConfigError::NoUrl(VARIABLE))?;
        Url::parse(&url).map_err(|error| match error {
            RedisConfigError::UnfitUrl => RedisConfigError::UnfitVariable(VARIABLE),
            other => other,
        })?;
        Ok(Self::builder(&url))
    }
}

/// Builds a [`RedisStore`] with other settings than the defaults; see [`RedisStore::builder`].
#[derive(Clone)]
#[must_use = "call `build`"]
pub struct RedisStoreBuilder {
    /// It may hold a password, so `Debug` does not show it.
    url: String,
    password: Option<LoadPassword>,
    root_certificates: Option<Vec<u8>>,
    prefix: String,
    timing: Timing,
    connect_timeout: Duration,
    expiry_margin: Duration,
    allow_eviction: bool,
}

impl RedisStoreBuilder {
    fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            password: None,
            root_certificates: None,
            prefix: PREFIX.to_owned(),
            timing: Timing::default(),
            connect_timeout: CONNECT_TIMEOUT,
            expiry_margin: EXPIRY_MARGIN,
            allow_eviction: false,
        }
    }

    /// The beginning of the names of records in the server. Default `idempotency:`. Stores with different prefixes
    /// share no records.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Loads the password of each new connection, in place of one in the URL: from AWS Secrets Manager, or a token of
    /// IAM authentication for ElastiCache and MemoryDB, which is valid for a quarter of an hour.
    ///
    /// It may take ten seconds, which do not count as connecting: a call that ends meanwhile leaves it to the next one. It is
    /// called once more if the server refuses the password, so let it not keep one that somebody may change. If it fails, no
    /// connection is made, and the call is repeated until its deadline. Its error is not logged, since it may hold the password.
    ///
    /// ```
    /// # use lambda_idempotency_redis::RedisStore;
    /// # async fn token() -> Result<String, std::io::Error> { Ok("token".into()) }
    /// let store = RedisStore::builder("redis://orders@cache.example.com")
    ///     .password(|| async { token().await })
    ///     .build()?;
    /// # Ok::<(), lambda_idempotency_redis::RedisConfigError>(())
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

    /// The root certificates to check the server's with, as PEM. Default: those of the machine, with which the
    /// servers of ElastiCache and MemoryDB can be checked.
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = Some(pem.into());
        self
    }

    /// How long one request may take before it is sent again, if the deadline of the call allows.
    /// Default 1 s: the server answers within a millisecond, so a slower response is most likely lost.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.timing.attempt_timeout = timeout;
        self
    }

    /// How long a new connection may take, with TLS and login, if the deadline of the call allows. It may take twice as long
    /// after it has taken too long, up to eight times. Default 1 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The pause after a failed attempt, and the most it doubles to. Default 25 ms and 400 ms; the
    /// second half of each pause is random.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        self.timing.backoff = (first, most);
        self
    }

    /// How much longer the server keeps a record than it counts, by the server's clock. Default 10 minutes. Each new
    /// connection compares the clocks, and refuses a server that is further ahead (and more than a second). Without permission for `INFO`, which
    /// [`allow_eviction`](Self::allow_eviction) accepts, they are not compared.
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

    /// The clock. Default: the machine's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.timing.clock = Arc::new(clock);
        self
    }

    /// Builds the store.
    ///
    /// # Errors
    /// [`RedisConfigError`] says which setting is wrong; never [`RedisConfigError::Server`], since no connection is
    /// made.
    pub fn build(self) -> Result<RedisStore, RedisConfigError> {
        let url = Url::parse(&self.url)?;
        let tls = if url.tls { Some(Tls::new(self.root_certificates.as_deref())?) } else { None };
        Ok(RedisStore::of(Config {
            address: url.address,
            login: url.login,
            load_password: self.password,
            tls,
            database: url.database,
            prefix: self.prefix,
            timing: self.timing,
            connect_timeout: self.connect_timeout,
            expiry_margin: self.expiry_margin,
            allow_eviction: self.allow_eviction,
            scripts: Scripts::new(),
        }))
    }
}

impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("prefix", &self.prefix)
            .field("attempt_timeout", &self.timing.attempt_timeout)
            .field("allow_eviction", &self.allow_eviction)
            .finish_non_exhaustive()
    }
}
