//! Why the store that the environment names cannot be used.

use std::fmt;

#[cfg(feature = "dynamodb")]
use lambda_idempotency_dynamodb::DynamoDbConfigError;
#[cfg(feature = "postgres")]
use lambda_idempotency_postgres::PostgresConfigError;
#[cfg(feature = "redis")]
use lambda_idempotency_redis::RedisConfigError;

/// The error of [`Idempotency::from_env`](crate::Idempotency::from_env): no store is named, this function was built
/// without it, or it cannot be used. It never shows the value of `IDEMPOTENCY_STORE`, which may hold a password.
///
/// Its `Debug` is its message, because a `main` that returns an error prints its `Debug`.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreConfigError {
    /// The environment names no store.
    #[error(
        "no store is named: set the environment variable IDEMPOTENCY_STORE to dynamodb:TABLE, \
         postgres://USER@HOST/DATABASE or rediss://HOST, or IDEMPOTENCY_TABLE to the name of a DynamoDB table"
    )]
    NotNamed,
    /// An environment variable cannot be read.
    #[error(
        "the environment variable {0} is not valid UTF-8 text: write special characters of a URL percent-encoded"
    )]
    NotText(&'static str),
    /// The variable names no kind of store that this library knows.
    #[error(
        "the environment variable IDEMPOTENCY_STORE names no store: it has to begin with `dynamodb:`, `postgres://`, \
         `redis://` or, for Redis with TLS, `rediss://`"
    )]
    Unknown,
    /// The variables name two stores.
    #[error(
        "the environment variable IDEMPOTENCY_STORE names {store}, and IDEMPOTENCY_TABLE a DynamoDB table; remove the \
         one that is not meant"
    )]
    TwoStores {
        /// The store that `IDEMPOTENCY_STORE` names.
        store: &'static str,
    },
    /// The function was built without this store.
    #[error(
        "the environment variable IDEMPOTENCY_STORE names {store}, and this function was built without it: turn on the \
         feature `{feature}` of the crate `lambda-idempotency`"
    )]
    NotBuilt {
        /// The store.
        store: &'static str,
        /// The feature that has it.
        feature: &'static str,
    },
    /// The store in DynamoDB cannot be built.
    #[cfg(feature = "dynamodb")]
    #[error(transparent)]
    DynamoDb(#[from] DynamoDbConfigError),
    /// The store in PostgreSQL cannot be built, or its server not be used.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] PostgresConfigError),
    /// The store in Redis cannot be built, or its server not be used.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] RedisConfigError),
}

impl fmt::Debug for StoreConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Their `Debug` also says what the server answered.
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => error.fmt(f),
            #[cfg(feature = "redis")]
            Self::Redis(error) => error.fmt(f),
            other => fmt::Display::fmt(other, f),
        }
    }
}
