//! The store that the environment names: that of `IDEMPOTENCY_STORE`, or the table `IDEMPOTENCY_TABLE` in DynamoDB.

use lambda_idempotency::{DynamoDbStore, Idempotency};
use lambda_runtime::Error;

use super::clock::SkewedClock;

/// With this clock, if there is one; that is for the table in DynamoDB.
pub(super) async fn idempotency(clock: Option<SkewedClock>) -> Result<Idempotency, Error> {
    let Some(clock) = clock else { return Ok(Idempotency::from_env().await?) };
    let store = DynamoDbStore::builder_from_env().await?.clock(clock).build()?;
    Ok(Idempotency::new(store).with_clock(clock))
}
