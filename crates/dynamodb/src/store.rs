//! The store: a client and its settings. The other modules implement its calls.

use std::{fmt, sync::Arc};

use aws_sdk_dynamodb::Client;
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    request_slots::RequestSlots,
    store::{Capabilities, Store, StoreError, Verdict, Write},
};

use crate::{config::Config, effects::DynamoDbEffects};

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

impl Store for DynamoDbStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE.with_effects::<DynamoDbEffects>().with_native_expiry()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(self.write_all(writes, call_deadline))
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        Box::pin(self.read_each(keys, call_deadline))
    }
}
