//! Why a call cannot collect an effect.

use lambda_idempotency_core::effects::CollectError;
use lambda_idempotency_dynamodb::DynamoDbEffectError;

/// Why [`CallExt::transact`](crate::CallExt::transact) did not take an effect. Its text holds no data, and
/// says what to do.
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
