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

use crate::retry::Budget;
pub use crate::{builder::RedisStoreBuilder, config_error::RedisConfigError, store::RedisStore};

/// The commands that a user of the server needs, as rules of its access control list: `ACL SETUSER orders on
/// >PASSWORD ~idempotency:*`, and then these. `INFO` is not needed with
/// [`allow_eviction`](RedisStoreBuilder::allow_eviction), `WAIT` only with
/// [`wait_for_replicas`](RedisStoreBuilder::wait_for_replicas), `CLUSTER SLOTS` and `ASKING` only in a cluster, and
/// `SCAN` only to list records.
pub const COMMANDS: [&str; 17] = [
    "+evalsha",
    "+script|load",
    "+exists",
    "+hmget",
    "+hgetall",
    "+hkeys",
    "+hset",
    "+hdel",
    "+del",
    "+pexpireat",
    "+info",
    "+ping",
    "+select",
    "+wait",
    "+cluster|slots",
    "+asking",
    "+scan",
];

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
