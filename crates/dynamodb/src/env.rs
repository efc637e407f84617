//! A store from the environment.

use std::time::Duration;

use aws_config::{BehaviorVersion, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_dynamodb::Client;
use lambda_idempotency_core::settings::{NotText, variable};

use crate::{
    builder::DynamoDbStoreBuilder, config_error::DynamoDbConfigError, store::DynamoDbStore,
};

/// The environment variable that names the table.
const TABLE: &str = "IDEMPOTENCY_TABLE";
/// The environment variable that names a store of any kind.
const STORE: &str = "IDEMPOTENCY_STORE";
/// What it begins with if the store is in DynamoDB.
const SCHEME: &str = "dynamodb:";
/// Within a region a connection takes milliseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

impl DynamoDbStore {
    /// The store whose table `IDEMPOTENCY_TABLE` names, or `IDEMPOTENCY_STORE` as `dynamodb:TABLE`, with
    /// credentials and region as the SDK finds them (in Lambda: those of the function's role).
    ///
    /// Call it once, before the runtime starts: it loads the configuration, and requests of one
    /// client share their connections.
    ///
    /// The SDK's default settings do not suit Lambda and are replaced. The SDK retries silently, so
    /// a claim whose response was lost would find its own record and seem to be taken; its first
    /// pause is a second; and only the connection has a time limit (3.1 s).
    ///
    /// # Errors
    /// [`DynamoDbConfigError::NoTable`] if no variable names a table, [`DynamoDbConfigError::TwoTables`] if they name
    /// two, [`DynamoDbConfigError::UnfitTable`] and [`DynamoDbConfigError::NotText`] if one cannot be read;
    /// [`DynamoDbConfigError::NoRegion`] if no region is configured.
    pub async fn from_env() -> Result<Self, DynamoDbConfigError> {
        Ok(Self::builder_from_env().await?.build_unchecked())
    }

    /// As [`from_env`](Self::from_env), as a builder for further settings.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub async fn builder_from_env() -> Result<DynamoDbStoreBuilder, DynamoDbConfigError> {
        let read =
            |name| variable(name).map_err(|NotText(name)| DynamoDbConfigError::NotText(name));
        let table = table(read(STORE)?, read(TABLE)?)?;
        // A fixed version, because `latest` would change these settings with an update of the SDK.
        let loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).build());
        let config = loader.load().await;
        if config.region().is_none() {
            return Err(DynamoDbConfigError::NoRegion);
        }
        Ok(Self::builder(Client::new(&config), table))
    }
}

/// The table, by the values of the two variables.
fn table(store: Option<String>, table: Option<String>) -> Result<String, DynamoDbConfigError> {
    // Another kind of store is not this one's concern: a function may have two.
    let Some(named) = store.as_deref().and_then(|store| store.strip_prefix(SCHEME)) else {
        return table.ok_or(DynamoDbConfigError::NoTable(TABLE));
    };
    // A name, or an ARN.
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':' | b'/');
    if named.is_empty() || named.starts_with('/') || !named.bytes().all(fits) {
        return Err(DynamoDbConfigError::UnfitTable(STORE));
    }
    match table {
        Some(other) if other != named => Err(DynamoDbConfigError::TwoTables([STORE, TABLE])),
        _ => Ok(named.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(store: Option<&str>, name: Option<&str>) -> Result<String, DynamoDbConfigError> {
        table(store.map(str::to_owned), name.map(str::to_owned))
    }

    #[test]
    fn a_table_must_be_named() {
        let error = read(None, None).unwrap_err();
        assert!(error.to_string().contains("IDEMPOTENCY_TABLE"), "{error}");
        assert_eq!(read(None, Some("orders")).as_deref(), Ok("orders"));
    }

    #[test]
    fn either_variable_names_the_table_and_both_only_the_same() {
        let arn = "arn:aws:dynamodb:eu-west-1:111122223333:table/orders";
        assert_eq!(read(Some("dynamodb:orders"), None).as_deref(), Ok("orders"));
        assert_eq!(read(Some(&format!("dynamodb:{arn}")), None).as_deref(), Ok(arn));
        assert_eq!(read(Some("dynamodb:orders"), Some("orders")).as_deref(), Ok("orders"));
        let error = read(Some("dynamodb:orders"), Some("others")).unwrap_err();
        assert!(matches!(error, DynamoDbConfigError::TwoTables(_)), "{error}");
        assert_eq!(read(Some("redis://cache"), Some("orders")).as_deref(), Ok("orders"));
    }

    #[test]
    fn a_table_that_cannot_be_read_is_refused() {
        for store in ["dynamodb:", "dynamodb://orders", "dynamodb:or ders", "dynamodb:orders?a=b"] {
            let error = read(Some(store), None).unwrap_err();
            assert!(error.to_string().contains("dynamodb:TABLE"), "{store}: {error}");
        }
    }
}
