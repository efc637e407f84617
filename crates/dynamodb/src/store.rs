//! The store: a client and its settings. The other modules implement its calls.

use std::{fmt, sync::Arc};

use aws_sdk_dynamodb::Client;
use lambda_idempotency_core::request_slots::RequestSlots;

use crate::config::Config;

/// A [`Store`](lambda_idempotency_core::store::Store) in a DynamoDB table. Cheap to clone; clones
/// share the client.
#[derive(Clone)]
pub struct DynamoDbStore {
    pub(crate) client: Client,
    pub(crate) config: Arc<Config>,
    pub(crate) slots: Arc<RequestSlots>,
}

impl fmt::Debug for DynamoDbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}
