//! The conformance suites of the testkit.

use std::{num::NonZeroUsize, time::Duration};

use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left, Page},
    capabilities::Capabilities,
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    store::{Store, StoreError, Verdict, Write},
};
use lambda_idempotency_redis::RedisStore;
use lambda_idempotency_testkit::{browse_conformance, conformance::SCENARIOS, store_conformance};

use crate::{cluster::Cluster, server::Server};

/// A store with the servers that it needs.
struct Running<S> {
    store: RedisStore,
    _servers: S,
}

impl<S: Send + Sync + 'static> Store for Running<S> {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        self.store.write(writes, call_deadline)
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.store.read(keys, call_deadline)
    }
}

impl<S: Send + Sync + 'static> Browse for Running<S> {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.store.page(after, limit, call_deadline)
    }

    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.store.left(left, after, limit, call_deadline)
    }

    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.store.count(call_deadline)
    }
}

/// One server.
mod standalone {
    use super::*;

    async fn store() -> Running<Server> {
        let server = Server::start(&[]).await;
        Running { store: server.store(), _servers: server }
    }

    store_conformance!(store, #[tokio::test] #[ignore = "needs redis-server: bash tests/run redis"]);
    browse_conformance!(store, #[tokio::test] #[ignore = "needs redis-server: bash tests/run redis"]);
}

/// All scenarios with one store, because a cluster and a replica take a second to start.
async fn every_scenario_passes(store: &impl Store) {
    for scenario in SCENARIOS {
        (scenario.run)(store).await;
    }
}

#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn every_scenario_passes_if_each_write_waits_for_a_replica() {
    let primary = Server::start(&["--repl-diskless-sync-delay", "0"]).await;
    let replica = Server::start(&["--replicaof", "127.0.0.1", &primary.port.to_string()]).await;
    primary.wait_until(&["WAIT", "1", "100"], |answer| *answer == redis::Value::Int(1)).await;
    let store = primary.builder().wait_for_replicas(1, Duration::from_secs(5)).build().unwrap();
    every_scenario_passes(&store).await;
    drop(replica);
}

/// In a cluster of three, in which the records of a call are with different servers.
mod clustered {
    use super::*;

    async fn store() -> Running<Cluster> {
        let cluster = Cluster::of_three().await;
        Running { store: cluster.store(), _servers: cluster }
    }

    browse_conformance!(store, #[tokio::test] #[ignore = "needs redis-server: bash tests/run redis"]);

    #[tokio::test]
    #[ignore = "needs redis-server: bash tests/run redis"]
    async fn every_scenario_passes_in_a_cluster() {
        every_scenario_passes(&store().await).await;
    }
}
