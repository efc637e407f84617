//! A store in a server of PostgreSQL or Redis, behind a proxy that injects faults.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lambda_idempotency_core::{
    browse::Browse,
    clock::{Clock as _, SystemClock, Timestamp},
    store::StoreError,
};
use lambda_idempotency_local::{ServerKind, StoreServer};
use lambda_idempotency_postgres::PostgresStore;
use lambda_idempotency_redis::RedisStore;
use lambda_idempotency_testkit::tcp::{TcpFaultId, TcpFaults, TcpProxy};
use tokio::{sync::Mutex as Lock, task::JoinSet, time::sleep};

use super::{Database, PATIENCE, Row, unusable};
use crate::{Error, store_faults::StoreFault};

/// How many records the rig reads at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(500).unwrap();

/// A server that keeps the records.
pub(crate) struct Server {
    kind: ServerKind,
    proxy: TcpProxy,
    /// The records of the store, read past the faults.
    browse: Box<dyn Browse>,
    /// Where effects are committed.
    database: Option<Database>,
    server: Arc<Lock<StoreServer>>,
    kills: AtomicU64,
    /// Each starts the server again some time after it was killed.
    restarts: Mutex<JoinSet<Result<(), Error>>>,
}

impl Server {
    pub(super) async fn start(
        kind: ServerKind,
        settings: &[(String, String)],
    ) -> Result<Self, Error> {
        let server = StoreServer::start(kind, settings).await?;
        let (url, attempt) = (server.url(), PATIENCE / 6);
        let (browse, database): (Box<dyn Browse>, _) = match kind {
            ServerKind::Redis => {
                let store = RedisStore::builder(&url).attempt_timeout(attempt).build();
                let store = store.map_err(unusable)?;
                store.check().await.map_err(unusable)?;
                (Box::new(store), None)
            }
            ServerKind::Postgres => {
                let store = PostgresStore::builder(&url).attempt_timeout(attempt).build();
                let store = store.map_err(unusable)?;
                store.migrate(soon()).await.map_err(unusable)?;
                store.check().await.map_err(unusable)?;
                (Box::new(store), Some(Database::create(&url).await?))
            }
        };
        let proxy = TcpProxy::start(server.address()).await.map_err(unusable)?;
        let (server, kills) = (Arc::new(Lock::new(server)), AtomicU64::new(0));
        Ok(Self { kind, proxy, browse, database, server, kills, restarts: Mutex::default() })
    }

    /// Where the function finds it.
    pub(super) fn url(&self) -> String {
        self.kind.url(self.proxy.address())
    }

    pub(super) fn database(&self) -> Option<&Database> {
        self.database.as_ref()
    }

    pub(super) fn faults(&self) -> &TcpFaults {
        self.proxy.faults()
    }

    pub(super) fn requests(&self) -> u64 {
        self.proxy.requests()
    }

    pub(super) fn kills(&self) -> u64 {
        self.kills.load(Ordering::Relaxed)
    }

    pub(super) fn inject(&self, fault: &StoreFault) -> (Option<TcpFaultId>, Option<Duration>) {
        if let Some(downtime) = fault.downtime() {
            self.kill(downtime);
            return (None, None);
        }
        let (fault, lasting) = fault.tcp_fault();
        (fault.map(|fault| self.faults().add(fault)), lasting)
    }

    /// Kills the server, and starts it again after this time.
    fn kill(&self, downtime: Duration) {
        self.kills.fetch_add(1, Ordering::Relaxed);
        let server = Arc::clone(&self.server);
        self.restarts().spawn(async move {
            let mut server = server.lock().await;
            server.kill();
            sleep(downtime).await;
            Ok(server.run().await?)
        });
    }

    pub(super) fn is_up(&self) -> Result<bool, Error> {
        let mut restarts = self.restarts();
        while let Some(ended) = restarts.try_join_next() {
            ended.map_err(|error| Error::Store(error.to_string()))??;
        }
        Ok(restarts.is_empty())
    }

    fn restarts(&self) -> MutexGuard<'_, JoinSet<Result<(), Error>>> {
        self.restarts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn rows(&self) -> Result<Vec<Row>, Error> {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = self.browse.page(after.as_ref(), PAGE, soon()).await;
            let page = page.map_err(|error: StoreError| unusable(error))?;
            let items = page.items.iter();
            rows.extend(
                items.map(|(key, record)| Row::of_record(key.as_str(), record.as_ref().ok())),
            );
            after = page.next;
            if after.is_none() {
                return Ok(rows);
            }
        }
    }
}

fn soon() -> Timestamp {
    SystemClock.now().plus(PATIENCE)
}
