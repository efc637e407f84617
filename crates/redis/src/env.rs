//! A store from the environment.

use crate::{builder::RedisStoreBuilder, config_error::RedisConfigError, store::RedisStore};

/// The environment variable that holds the URL.
const STORE: &str = "IDEMPOTENCY_STORE";

impl RedisStore {
    /// The store whose URL is in `IDEMPOTENCY_STORE`. Call it once, before the runtime starts.
    ///
    /// # Errors
    /// [`RedisConfigError::NoUrl`] if the variable is not set or empty, and those of
    /// [`RedisStoreBuilder::build`](RedisStoreBuilder::build).
    pub async fn from_env() -> Result<Self, RedisConfigError> {
        Self::builder_from_env()?.build().await
    }

    /// As [`from_env`](Self::from_env), as a builder for further settings.
    ///
    /// # Errors
    /// [`RedisConfigError::NoUrl`] if the variable is not set or empty.
    pub fn builder_from_env() -> Result<RedisStoreBuilder, RedisConfigError> {
        let url = std::env::var(STORE).ok().filter(|url| !url.trim().is_empty());
        Ok(Self::builder(&url.ok_or(RedisConfigError::NoUrl(STORE))?))
    }
}
