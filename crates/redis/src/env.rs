//! A store from the environment.

use lambda_idempotency_core::settings::{NotText, variable};

use crate::{
    address::Url, builder::RedisStoreBuilder, config_error::RedisConfigError, store::RedisStore,
};

/// The environment variable that holds the URL.
const URL: &str = "IDEMPOTENCY_STORE";

impl RedisStore {
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
        let url = variable(URL).map_err(|NotText(name)| RedisConfigError::NotText(name))?;
        let url = url.ok_or(RedisConfigError::NoUrl(URL))?;
        Url::parse(&url).map_err(|error| match error {
            RedisConfigError::UnfitUrl => RedisConfigError::UnfitVariable(URL),
            other => other,
        })?;
        Ok(Self::builder(&url))
    }
}
