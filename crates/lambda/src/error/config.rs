//! Mistakes in how a function is configured, and why the store that the environment names cannot be used.

use std::fmt;

#[cfg(feature = "dynamodb")]
use lambda_idempotency_dynamodb::DynamoDbConfigError;
use lambda_idempotency_keys::producer::KeySpecError;
#[cfg(feature = "postgres")]
use lambda_idempotency_postgres::PostgresConfigError;
#[cfg(feature = "redis")]
use lambda_idempotency_redis::RedisConfigError;

/// A mistake in how a function is configured, found when it starts. The text names the operation, says what is wrong, and
/// what to do.
///
/// Its `Debug` is its message, because a `main` that returns an error prints its `Debug`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The name of an operation or of an application is not valid, or a name is used for two different things, which would
    /// share keys.
    #[error("{0}")]
    Name(Box<str>),
    /// An expression of a key or a fingerprint has a mistake, or does not tell records apart; or settings of keys exclude
    /// each other.
    #[error("{0}")]
    Key(Box<str>),
    /// A source has a filter, an envelope or a setting with which it could not work, is never reached, or does not fit
    /// another source of the same operation; or the function has none.
    #[error("{0}")]
    Source(Box<str>),
    /// The mode of an operation does not fit its other settings, the store or the entry point.
    #[error("{0}")]
    Mode(Box<str>),
    /// A setting has a value that cannot work, or no effect beside another one.
    #[error("{0}")]
    Setting(Box<str>),
    /// An environment variable has a value that cannot be used.
    #[error("{0}")]
    Environment(Box<str>),
}

macro_rules! made_of_texts {
    ($($make:ident $Kind:ident)*) => {
        impl ConfigError {$(
            pub(crate) fn $make(problem: impl Into<Box<str>>) -> Self {
                Self::$Kind(problem.into())
            }
        )*}
    };
}

made_of_texts! { name Name key Key source Source mode Mode setting Setting environment Environment }

impl From<KeySpecError> for ConfigError {
    fn from(error: KeySpecError) -> Self {
        match error {
            KeySpecError::Name(problem) => Self::Name(problem),
            KeySpecError::Key(problem) => Self::Key(problem),
            other => Self::key(other.to_string()),
        }
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

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
