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
use lambda_idempotency_local::{FaultId, PostgresServer, RedisServer, TcpFaults, TcpProxy};
use lambda_idempotency_postgres::PostgresStore;
use lambda_idempotency_redis::RedisStore;
use tokio::{net::lookup_host, sync::Mutex as Lock, task::JoinSet, time::sleep};

use super::{Database, PATIENCE, Row, unusable};
use crate::{Error, Settings, TestedStore, store_faults::StoreFault};

/// How many records the rig reads at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(500).unwrap();

/// A server that keeps the records.
#[derive(Debug)]
pub(crate) struct Server {
    proxy: TcpProxy,
    /// The URL of the proxy.
    url: String,
    browse: Records,
    /// Where effects are committed.
    database: Option<Database>,
    /// The server itself, if the rig has started it.
    own: Option<Arc<Lock<Own>>>,
    kills: AtomicU64,
    /// Each starts the server again some time after it was killed.
    restarts: Mutex<JoinSet<Result<(), Error>>>,
}

/// A server that the rig has started.
#[derive(Debug)]
enum Own {
    Postgres(PostgresServer),
    Redis(RedisServer),
}

impl Own {
    fn kill(&mut self) {
        match self {
            Self::Postgres(server) => server.kill(),
            Self::Redis(server) => server.kill(),
        }
    }

    async fn run(&mut self) -> Result<(), lambda_idempotency_local::Error> {
        match self {
            Self::Postgres(server) => server.run().await,
            Self::Redis(server) => server.run().await,
        }
    }
}

/// The records of the store, read past the faults.
struct Records(Box<dyn Browse>);

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Records")
    }
}

impl Server {
    pub(super) async fn start(settings: &Settings) -> Result<Self, Error> {
        let extra = &settings.server_settings;
        let (own, url) = match &settings.store {
            TestedStore::Postgres(None) => {
                let server = PostgresServer::start(extra).await?;
                let url = PostgresServer::url(server.address());
                (Some(Own::Postgres(server)), url)
            }
            TestedStore::Redis(None) => {
                let server = RedisServer::start(extra).await?;
                let url = RedisServer::url(server.address());
                (Some(Own::Redis(server)), url)
            }
            TestedStore::Postgres(Some(url)) | TestedStore::Redis(Some(url)) => (None, url.clone()),
            TestedStore::DynamoDb => return Err(Error::Store("it is not a server".to_owned())),
        };
        let (browse, database): (Box<dyn Browse>, _) = match &settings.store {
            TestedStore::Redis(_) => {
                let store = RedisStore::builder(&url).attempt_timeout(PATIENCE / 6).build();
                (Box::new(store.map_err(unusable)?), None)
            }
            _ => {
                let store = PostgresStore::builder(&url).attempt_timeout(PATIENCE / 6).build();
                let store = store.map_err(unusable)?;
                store.migrate(soon()).await.map_err(unusable)?;
                (Box::new(store), Some(Database::create(&url).await?))
            }
        };
        let default = if database.is_some() { 5432 } else { 6379 };
        let (before, host, after) = divided(&url);
        let host = if has_port(host) { host.to_owned() } else { format!("{host}:{default}") };
        let address = lookup_host(&host).await.ok().and_then(|mut found| found.next());
        let address =
            address.ok_or_else(|| Error::Store("the host of the URL has no address".to_owned()))?;
        let proxy = TcpProxy::start(address).await?;
        let server = Self {
            url: format!("{before}{}{after}", proxy.address()),
            proxy,
            browse: Records(browse),
            database,
            own: own.map(|own| Arc::new(Lock::new(own))),
            kills: AtomicU64::new(0),
            restarts: Mutex::default(),
        };
        let is_used = !server.rows().await?.is_empty()
            || match &server.database {
                Some(database) => !database.items().await?.is_empty(),
                None => false,
            };
        if is_used {
            let what = "it has records of something else, which would be taken for those of this run: use an empty one";
            return Err(Error::Store(what.to_owned()));
        }
        Ok(server)
    }

    /// Where the function finds it.
    pub(super) fn url(&self) -> &str {
        &self.url
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

    pub(super) fn inject(&self, fault: &StoreFault) -> (Option<FaultId>, Option<Duration>) {
        if let Some(downtime) = fault.downtime() {
            self.kill(downtime);
            return (None, None);
        }
        let (fault, lasting) = fault.tcp_fault();
        (fault.map(|fault| self.faults().add(fault)), lasting)
    }

    /// Kills the server, and starts it again after this time.
    fn kill(&self, downtime: Duration) {
        let Some(own) = &self.own else { return };
        self.kills.fetch_add(1, Ordering::Relaxed);
        let own = Arc::clone(own);
        self.restarts().spawn(async move {
            let mut own = own.lock().await;
            own.kill();
            sleep(downtime).await;
            Ok(own.run().await?)
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
            let page = self.browse.0.page(after.as_ref(), PAGE, soon()).await;
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

/// A URL before its host, its host with the port, and what follows.
fn divided(url: &str) -> (&str, &str, &str) {
    let scheme = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(scheme..).and_then(|rest| rest.find(['/', '?'])).map(|at| scheme + at);
    let end = end.unwrap_or(url.len());
    let user = url.get(scheme..end).and_then(|rest| rest.rfind('@')).map(|at| scheme + at + 1);
    let host = user.unwrap_or(scheme);
    let part = |range: std::ops::Range<usize>| url.get(range).unwrap_or_default();
    (part(0..host), part(host..end), part(end..url.len()))
}

/// Whether this host, which may be an address of IPv6 in brackets, has a port.
fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_is_found() {
        let full = divided("postgres://u:p%40@db:5433/orders?sslmode=disable");
        assert_eq!(full, ("postgres://u:p%40@", "db:5433", "/orders?sslmode=disable"));
        assert_eq!(divided("redis://cache"), ("redis://", "cache", ""));
        assert_eq!(divided("redis://cache?x=1"), ("redis://", "cache", "?x=1"));
        assert_eq!(["db:1", "db", "[::1]", "[::1]:2"].map(has_port), [true, false, false, true]);
    }
}
