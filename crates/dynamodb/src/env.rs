//! A store from the environment.

use std::time::Duration;

use aws_config::{BehaviorVersion, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_dynamodb::Client;

use crate::{
    builder::DynamoDbStoreBuilder, config_error::DynamoDbConfigError, store::DynamoDbStore,
};

/// The environment variable that names the table.
const TABLE: &str = "IDEMPOTENCY_TABLE";
/// Within a region a connection takes milliseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

impl DynamoDbStore {
    /// The store whose table `IDEMPOTENCY_TABLE` names, with credentials and region as the SDK
    /// finds them (in Lambda: those of the function's role).
    ///
    /// Call it once, before the runtime starts: it loads the configuration, and requests of one
    /// client share their connections.
    ///
    /// The SDK's default settings do not suit Lambda and are replaced. The SDK retries silently, so
    /// a claim whose response was lost would find its own record and seem to be taken; its first
    /// pause is a second; and only the connection has a time limit (3.1 s).
    ///
    /// # Errors
    /// [`DynamoDbConfigError::NoTable`] if `IDEMPOTENCY_TABLE` is not set or empty;
    /// [`DynamoDbConfigError::NoRegion`] if no region is configured.
    pub async fn from_env() -> Result<Self, DynamoDbConfigError> {
        Ok(Self::builder_from_env().await?.build_unchecked())
    }

    /// As [`from_env`](Self::from_env), as a builder for further settings.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub async fn builder_from_env() -> Result<DynamoDbStoreBuilder, DynamoDbConfigError> {
        let table = table(std::env::var(TABLE).ok())?;
        // A fixed version, because `latest` would change these settings with an update of the SDK.
        let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).build())
            .load()
            .await;
        if config.region().is_none() {
            return Err(DynamoDbConfigError::NoRegion);
        }
        Ok(Self::builder(Client::new(&config), table))
    }
}

fn table(variable: Option<String>) -> Result<String, DynamoDbConfigError> {
    variable.filter(|name| !name.trim().is_empty()).ok_or(DynamoDbConfigError::NoTable(TABLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_must_be_named() {
        for unset in [None, Some(String::new()), Some(" ".into())] {
            let error = table(unset).unwrap_err();
            assert!(error.to_string().contains("IDEMPOTENCY_TABLE"), "{error}");
        }
        assert_eq!(table(Some("orders".into())).as_deref(), Ok("orders"));
    }
}
