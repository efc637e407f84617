//! The errors of this crate, with the types of their details.

mod config;
mod run;

pub use config::{ConfigError, StoreConfigError};
#[cfg(any(feature = "dynamodb", feature = "postgres"))]
use lambda_idempotency_core::effects::CollectError;
pub use lambda_idempotency_core::failure::BoxError;
#[cfg(feature = "dynamodb")]
use lambda_idempotency_dynamodb::DynamoDbEffectError;
pub use lambda_idempotency_engine::steps::StepError;
#[doc(no_inline)]
pub use lambda_idempotency_keys::{
    DocumentError, ExpressionError, SecretError, SelectionError,
    producer::{ExpressionUse, KeySpecError},
};
#[cfg(feature = "postgres")]
use lambda_idempotency_postgres::PostgresEffectError;
pub use run::{InvocationError, NotJson, ResultLost, RunError};

#[doc(no_inline)]
pub use crate::rejection::Rejection;

/// Why [`CallExt::transact`](crate::CallExt::transact) did not take an effect. Its text holds no data, and
/// says what to do.
#[cfg(feature = "dynamodb")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransactError {
    /// The call commits no effects of DynamoDB.
    #[error(transparent)]
    NotCollected(#[from] CollectError),
    /// The effect does not fit into the transaction.
    #[error(transparent)]
    Unfit(#[from] DynamoDbEffectError),
}

/// Why [`CallExt::execute`](crate::CallExt::execute) did not take a statement. Its text holds no data, and
/// says what to do.
#[cfg(feature = "postgres")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// The call commits no effects of PostgreSQL.
    #[error(transparent)]
    NotCollected(#[from] CollectError),
    /// The statement cannot be an effect.
    #[error(transparent)]
    Unfit(#[from] PostgresEffectError),
}
