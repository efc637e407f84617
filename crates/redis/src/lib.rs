//! Keeps idempotency records in Redis or Valkey.

mod address;
mod batch;
mod browse;
mod builder;
mod check;
mod cluster;
mod config;
mod config_error;
mod connection;
mod credentials;
mod env;
mod error;
mod guard;
mod handshake;
mod item;
mod limits;
mod member;
mod node;
mod provenance;
mod read;
mod retry;
mod script;
mod servers;
mod store;
mod tls;
mod write;

use lambda_idempotency_core::{
    capabilities::Capabilities,
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    store::{Store, StoreError, Verdict, Write},
};

pub use crate::{
    builder::RedisStoreBuilder, config_error::RedisConfigError, credentials::RedisCredentials,
    store::RedisStore,
};
use crate::retry::Budget;

impl Store for RedisStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE.with_native_expiry()
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
        Box::pin(async move {
            let budget = Budget::new(&self.config, call_deadline);
            let answers = self.read_all(keys, &budget).await;
            answers.into_iter().map(|answer| answer.map_err(|f| f.report(false))).collect()
        })
    }
}
