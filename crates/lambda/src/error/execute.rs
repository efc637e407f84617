//! Why a call cannot collect a statement.

use lambda_idempotency_core::effects::CollectError;
use lambda_idempotency_postgres::PostgresEffectError;

/// Why [`CallExt::execute`](crate::CallExt::execute) did not take a statement. Its text holds no data, and
/// says what to do.
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
