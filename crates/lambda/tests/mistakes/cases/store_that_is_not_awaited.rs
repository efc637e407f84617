//! A store that is not awaited, or may have failed.

use lambda_idempotency::{DynamoDbStore, Idempotency};

async fn function() {
    let _ = Idempotency::new(DynamoDbStore::from_env());
    let _ = Idempotency::new(DynamoDbStore::from_env().await);
}
