//! A store from the environment.

use lambda_idempotency_core::settings::{NotText, variable};

use crate::{
    builder::PostgresStoreBuilder, config_error::PostgresConfigError, store::PostgresStore,
    url::Url,
};

/// The environment variable with the URL.
const URL: &str = "IDEMPOTENCY_STORE";

impl PostgresStore {
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
        let url = variable(URL).map_err(|NotText(name)| PostgresConfigError::NotText(name))?;
        let url = url.ok_or(PostgresConfigError::NoUrl(URL))?;
        Url::parse(&url).map_err(|error| match error {
            PostgresConfigError::UnfitUrl => PostgresConfigError::UnfitVariable(URL),
            other => other,
        })?;
        Ok(Self::builder(&url))
    }
}
