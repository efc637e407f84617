//! A store in a server of PostgreSQL or Redis, behind a proxy that injects faults.

use std::{
    net::SocketAddr,
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
use tokio::{
    net::{TcpStream, lookup_host},
    sync::Mutex as Lock,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{Database, PATIENCE, Place, Row, unusable};
use crate::{Error, Settings, TestedStore, store_faults::StoreFault};

/// Which hosts a proxy can stand for.
const NO_HOST: &str =
    "the proxy that injects faults stands before one server: name one host in the URL";
/// How long a connection to an address of the host may take.
const CONNECTED: Duration = Duration::from_secs(2);
/// How many records the rig reads at a time.
const PAGE: NonZeroUsize = NonZeroUsize::new(500).unwrap();

/// A server that keeps the records.
pub(crate) struct Server {
    proxy: TcpProxy,
    /// The URL of the proxy.
    url: String,
    prefix: Option<String>,
    /// The records of the store, read past the faults.
    browse: Box<dyn Browse>,
    /// Where effects are committed.
    database: Option<Database>,
    /// The server itself, if the rig has started it.
    own: Option<Arc<Lock<StoreServer>>>,
    kills: AtomicU64,
    /// Each starts the server again some time after it was killed.
    restarts: Mutex<JoinSet<Result<(), Error>>>,
}

impl Server {
    pub(super) async fn start(settings: &Settings, place: &Place) -> Result<Self, Error> {
        let extra = &settings.server_settings;
        let (own, url) = match (&settings.store, place.url()) {
            (_, Some(url)) => {
                divided(&url).ok_or_else(|| Error::Store(NO_HOST.to_owned()))?;
                place.make().await?;
                (None, url)
            }
            (TestedStore::Postgres(_), None) => started(ServerKind::Postgres, extra).await?,
            (TestedStore::Redis(_), None) => started(ServerKind::Redis, extra).await?,
            (TestedStore::DynamoDb, None) => {
                return Err(Error::Store("it is not a server".to_owned()));
            }
        };
        let (browse, database): (Box<dyn Browse>, _) = match &settings.store {
            TestedStore::Redis(_) => {
                let store = RedisStore::builder(&url).attempt_timeout(PATIENCE / 6);
                let store = match place.prefix() {
                    Some(prefix) => store.prefix(prefix),
                    None => store,
                };
                let store = store.build().map_err(unusable)?;
                store.check().await.map_err(unusable)?;
                (Box::new(store), None)
            }
            _ => {
                let store = PostgresStore::builder(&url).attempt_timeout(PATIENCE / 6).build();
                let store = store.map_err(unusable)?;
                store.migrate(soon()).await.map_err(unusable)?;
                store.check().await.map_err(unusable)?;
                (Box::new(store), Some(Database::create(&url).await?))
            }
        };
        let default = if database.is_some() { 5432 } else { 6379 };
        let (before, host, after) =
            divided(&url).ok_or_else(|| Error::Store(NO_HOST.to_owned()))?;
        let host = if has_port(host) { host.to_owned() } else { format!("{host}:{default}") };
        let address = reachable(&host).await?;
        let proxy = TcpProxy::start(address).await.map_err(unusable)?;
        Ok(Self {
            url: format!("{before}{}{after}", proxy.address()),
            prefix: place.prefix(),
            proxy,
            browse,
            database,
            own: own.map(|own| Arc::new(Lock::new(own))),
            kills: AtomicU64::new(0),
            restarts: Mutex::default(),
        })
    }

    /// Where the function finds it.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// What the names of the function's records begin with, if it is not the usual prefix.
    pub(super) fn prefix(&self) -> Option<&str> {
        self.prefix.as_deref()
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

async fn started(
    kind: ServerKind,
    settings: &[(String, String)],
) -> Result<(Option<StoreServer>, String), Error> {
    let server = StoreServer::start(kind, settings).await?;
    let url = server.url();
    Ok((Some(server), url))
}

fn soon() -> Timestamp {
    SystemClock.now().plus(PATIENCE)
}

/// The first address of this host and port at which somebody listens: a name may have several, as `localhost` has.
async fn reachable(host: &str) -> Result<SocketAddr, Error> {
    for address in lookup_host(host).await.into_iter().flatten() {
        if let Ok(Ok(_)) = timeout(CONNECTED, TcpStream::connect(address)).await {
            return Ok(address);
        }
    }
    Err(Error::Store("the host of the URL has no address at which a server listens".to_owned()))
}

/// A URL before its host, its host with the port, and what follows; `None` if it does not have just one host.
fn divided(url: &str) -> Option<(&str, &str, &str)> {
    let scheme = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(scheme..).and_then(|rest| rest.find(['/', '?'])).map(|at| scheme + at);
    let end = end.unwrap_or(url.len());
    let user = url.get(scheme..end).and_then(|rest| rest.rfind('@')).map(|at| scheme + at + 1);
    let host = user.unwrap_or(scheme);
    let part = |range: std::ops::Range<usize>| url.get(range).unwrap_or_default();
    let query = part(end..url.len()).split_once('?').map_or("", |(_, query)| query);
    let is_elsewhere = query.split('&').any(|parameter| parameter.starts_with("host"));
    let is_one = host < end && !part(host..end).contains(',') && !is_elsewhere;
    is_one.then(|| (part(0..host), part(host..end), part(end..url.len())))
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
        assert_eq!(full, Some(("postgres://u:p%40@", "db:5433", "/orders?sslmode=disable")));
        assert_eq!(divided("redis://cache"), Some(("redis://", "cache", "")));
        assert_eq!(divided("redis://cache?x=1"), Some(("redis://", "cache", "?x=1")));
        for url in
            ["postgres:///orders?host=/run", "postgres://a,b/orders", "postgres://a/d?host=b"]
        {
            assert_eq!(divided(url), None, "{url}");
        }
        assert_eq!(["db:1", "db", "[::1]", "[::1]:2"].map(has_port), [true, false, false, true]);
    }
}
