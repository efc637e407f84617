//! A store that the environment names: [`Idempotency::from_env`].

use std::{error::Error, future::Future, sync::Arc};

use lambda_idempotency_core::{
    clock::BoxFuture,
    settings::{NotText, variable},
};

use crate::{
    error::{BoxError, StoreConfigError},
    idempotency::Idempotency,
};

/// Names the store.
const STORE: &str = "IDEMPOTENCY_STORE";
/// Names a table in DynamoDB, where no store is named.
const TABLE: &str = "IDEMPOTENCY_TABLE";

/// The user's function for the password.
type LoadPassword = Arc<dyn Fn() -> BoxFuture<'static, Result<String, BoxError>> + Send + Sync>;

impl Idempotency {
    /// Keeps idempotency records in the store that the environment variable `IDEMPOTENCY_STORE` names:
    ///
    /// | value | store | feature |
    /// |---|---|---|
    /// | `dynamodb:TABLE` | DynamoDB; `TABLE` is the name or ARN of a table | `dynamodb` (default) |
    /// | `postgres://USER@HOST:PORT/DATABASE` | PostgreSQL, with TLS; without it `?sslmode=disable` at the end | `postgres` |
    /// | `rediss://USER@HOST:PORT` | Redis or Valkey with TLS, a single server or a cluster | `redis` |
    /// | `redis://USER@HOST:PORT` | the same without TLS | `redis` |
    ///
    /// If it is not set, the DynamoDB table that `IDEMPOTENCY_TABLE` names. Servers of PostgreSQL and Redis are
    /// checked, so that a function that cannot work does not start. Settings of a store other than these need its own
    /// builder and [`Idempotency::new`].
    ///
    /// ```no_run
    /// use lambda_idempotency::Idempotency;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lambda_runtime::Error> {
    /// let idempotency = Idempotency::from_env().await?;
    /// # let _ = idempotency;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Everybody who can see the configuration of a function can read its environment: do not write a password into
    /// the URL, and use [`from_env_with_password`](Self::from_env_with_password).
    ///
    /// # Errors
    /// [`StoreConfigError`] says what is missing or wrong, and never shows the URL.
    pub async fn from_env() -> Result<Self, StoreConfigError> {
        open(None).await
    }

    /// As [`from_env`](Self::from_env), with a function that loads the password of each new connection: from AWS
    /// Secrets Manager, or a token of IAM authentication, which is valid for a quarter of an hour. Not called for
    /// DynamoDB, which uses the credentials of the function's role.
    ///
    /// ```no_run
    /// use lambda_idempotency::Idempotency;
    ///
    /// # async fn from_secrets_manager() -> Result<String, std::io::Error> { Ok(String::new()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lambda_runtime::Error> {
    /// let idempotency = Idempotency::from_env_with_password(from_secrets_manager).await?;
    /// # let _ = idempotency;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If it fails, the store is unavailable for that attempt. Its error is not logged, since it may hold the password.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub async fn from_env_with_password<F, L, E>(load: F) -> Result<Self, StoreConfigError>
    where
        F: AsyncFnOnce() -> Result<String, E> + FnOnce() -> L + Clone + Send + Sync + 'static,
        L: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let load: LoadPassword = Arc::new(move || {
            let loading = load.clone()();
            Box::pin(async move { loading.await.map_err(Into::into) })
        });
        open(Some(load)).await
    }
}

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreKind {
    DynamoDb,
    Postgres,
    Redis,
}

impl StoreKind {
    const fn name(self) -> &'static str {
        match self {
            Self::DynamoDb => "a DynamoDB table",
            Self::Postgres => "a PostgreSQL server",
            Self::Redis => "a Redis server",
        }
    }

    /// The kind that these values of the two variables name.
    fn of(store: Option<&str>, table: Option<&str>) -> Result<Self, StoreConfigError> {
        let Some(store) = store else {
            return table.map(|_| Self::DynamoDb).ok_or(StoreConfigError::NotNamed);
        };
        let kind = match store.split_once(':').map(|(scheme, _)| scheme) {
            Some("dynamodb") => Self::DynamoDb,
            Some("postgres" | "postgresql") => Self::Postgres,
            Some("redis" | "rediss" | "valkey" | "valkeys") => Self::Redis,
            _ => return Err(StoreConfigError::Unknown),
        };
        // The store in DynamoDB compares the tables itself.
        if table.is_some() && kind != Self::DynamoDb {
            return Err(StoreConfigError::TwoStores { store: kind.name() });
        }
        Ok(kind)
    }
}

async fn open(password: Option<LoadPassword>) -> Result<Idempotency, StoreConfigError> {
    let value = |name| variable(name).map_err(|NotText(name)| StoreConfigError::NotText(name));
    match StoreKind::of(value(STORE)?.as_deref(), value(TABLE)?.as_deref())? {
        StoreKind::DynamoDb => dynamodb().await,
        StoreKind::Postgres => postgres(password).await,
        StoreKind::Redis => redis(password).await,
    }
}

#[cfg(feature = "dynamodb")]
async fn dynamodb() -> Result<Idempotency, StoreConfigError> {
    Ok(Idempotency::new(lambda_idempotency_dynamodb::DynamoDbStore::from_env().await?))
}

#[cfg(feature = "postgres")]
async fn postgres(password: Option<LoadPassword>) -> Result<Idempotency, StoreConfigError> {
    let mut builder = lambda_idempotency_postgres::PostgresStore::builder_from_env()?;
    if let Some(load) = password {
        builder = builder.password(move || load());
    }
    let store = builder.build()?;
    store.check().await?;
    Ok(Idempotency::new(store))
}

#[cfg(feature = "redis")]
async fn redis(password: Option<LoadPassword>) -> Result<Idempotency, StoreConfigError> {
    let mut builder = lambda_idempotency_redis::RedisStore::builder_from_env()?;
    if let Some(load) = password {
        builder = builder.password(move || load());
    }
    let store = builder.build()?;
    store.check().await?;
    Ok(Idempotency::new(store))
}

#[cfg(not(feature = "dynamodb"))]
async fn dynamodb() -> Result<Idempotency, StoreConfigError> {
    Err(StoreConfigError::NotBuilt { store: StoreKind::DynamoDb.name(), feature: "dynamodb" })
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_: Option<LoadPassword>) -> Result<Idempotency, StoreConfigError> {
    Err(StoreConfigError::NotBuilt { store: StoreKind::Postgres.name(), feature: "postgres" })
}

#[cfg(not(feature = "redis"))]
async fn redis(_: Option<LoadPassword>) -> Result<Idempotency, StoreConfigError> {
    Err(StoreConfigError::NotBuilt { store: StoreKind::Redis.name(), feature: "redis" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_the_variable_decides() {
        for (store, kind) in [
            ("dynamodb:orders", StoreKind::DynamoDb),
            ("postgres://orders@db/orders", StoreKind::Postgres),
            ("postgresql://db/orders", StoreKind::Postgres),
            ("redis://cache", StoreKind::Redis),
            ("rediss://cache", StoreKind::Redis),
            ("valkeys://cache", StoreKind::Redis),
        ] {
            assert_eq!(StoreKind::of(Some(store), None).unwrap(), kind, "{store}");
        }
        assert_eq!(StoreKind::of(None, Some("orders")).unwrap(), StoreKind::DynamoDb);
    }

    #[test]
    fn what_names_no_store_is_refused_and_not_repeated() {
        let none = StoreKind::of(None, None).unwrap_err();
        assert!(matches!(none, StoreConfigError::NotNamed), "{none}");
        for store in ["s3cr3t", "mysql://orders:s3cr3t@db", "s3cr3t@db:5432/orders", ":s3cr3t"] {
            let error = StoreKind::of(Some(store), None).unwrap_err();
            assert!(matches!(error, StoreConfigError::Unknown), "{store}");
            assert!(!format!("{error} {error:?}").contains("s3cr3t"));
        }
    }

    #[test]
    fn a_table_beside_another_store_is_refused() {
        let error = StoreKind::of(Some("redis://cache"), Some("orders")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("a Redis server") && text.contains("IDEMPOTENCY_TABLE"), "{text}");
        assert_eq!(
            StoreKind::of(Some("dynamodb:orders"), Some("orders")).unwrap(),
            StoreKind::DynamoDb
        );
    }
}
