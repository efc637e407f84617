//! A store that is not awaited, or may have failed, and a client in place of a store.

use lambda_idempotency::{DynamoDbStore, Idempotency};

struct Client;

async fn function() {
    let _ = Idempotency::new(DynamoDbStore::from_env());
    let _ = Idempotency::new(DynamoDbStore::from_env().await);
    let _ = Idempotency::new(Client);
}
