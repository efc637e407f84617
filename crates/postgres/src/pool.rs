//! The connections of a store: opened when needed, and kept for the next call.
//!
//! A connection goes back into the pool only after the server has answered everything that was sent. One
//! whose call was dropped or timed out is closed, so no later call reads its answers.

use std::{
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::Timestamp,
    request_slots::{RequestSlots, Slot},
    settings::{LoadPassword, NoPassword},
    store::StoreErrorKind,
};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{Client, Error, Socket};

use crate::{
    config::Config,
    connection::{Connection, Wire},
    error::{Failure, Scope},
    retry::Budget,
    tls::Tls,
    unconnected::Unconnected,
};

/// Where to connect to, and how.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) server: tokio_postgres::Config,
    pub(crate) password: Option<LoadPassword>,
    pub(crate) tls: Option<Tls>,
}

/// The connections of a store.
pub(crate) struct Pool {
    target: Target,
    idle: Mutex<Vec<Idle>>,
    /// A connection is for a request that has one of these.
    pub(crate) slots: RequestSlots,
}

struct Idle {
    connection: Connection,
    since: Timestamp,
}

/// A connection that is in use.
pub(crate) struct Lease<'p> {
    pool: &'p Pool,
    pub(crate) connection: Connection,
    /// How long its call has waited for a slot.
    pub(crate) waited: Duration,
    slot: Slot<'p>,
}

impl Pool {
    pub(crate) fn new(target: Target, config: &Config) -> Self {
        let slots = RequestSlots::new(config.max_connections, Arc::clone(&config.timing.clock));
        Self { target, idle: Mutex::default(), slots }
    }

    /// An idle connection.
    ///
    /// One that was idle for long may be dead without anybody having said so: a frozen process answers no keep-alives, and
    /// networks forget idle connections. It is closed.
    pub(crate) fn idle(&self, config: &Config) -> Option<Connection> {
        while let Some(Idle { mut connection, since }) = self.pop() {
            if config.timing.clock.now().since(since) <= config.max_idle && !connection.is_closed()
            {
                return Some(connection);
            }
        }
        None
    }

    /// A connection in use, of a call that has waited for its slot.
    pub(crate) const fn lease<'p>(
        &'p self,
        connection: Connection,
        slot: Slot<'p>,
        waited: Duration,
    ) -> Lease<'p> {
        Lease { pool: self, connection, waited, slot }
    }

    /// How long loading a password may take.
    pub(crate) fn loading(&self) -> Duration {
        self.target.password.as_ref().map_or(Duration::ZERO, |_| LoadPassword::LIMIT)
    }

    /// The password that the user's function loads; `None` without one.
    pub(crate) async fn password(&self, budget: &Budget<'_>) -> Result<Option<String>, NoPassword> {
        match &self.target.password {
            Some(password) => password.load(budget).await.map(Some),
            None => Ok(None),
        }
    }

    /// A new connection, with this password in place of one in the URL.
    pub(crate) async fn connect(
        &self,
        config: &Config,
        budget: &Budget<'_>,
        password: Option<&str>,
    ) -> Result<Connection, Unconnected> {
        self.target.connect(config, budget, password).await
    }

    /// The failure of a request that had no answer within a limit, which has a usual value, after its call had waited for a slot.
    pub(crate) fn unanswered(
        &self,
        failure: Failure,
        waited: Duration,
        limits: (Duration, Duration),
    ) -> Failure {
        let kind = self.slots.unanswered(waited, limits);
        blamed(failure, kind)
    }

    /// The failure of a call that got no slot.
    pub(crate) fn crowded(&self, failure: Failure) -> Failure {
        blamed(failure, self.slots.blame())
    }

    /// Notes what became of a request.
    pub(crate) fn heard<T>(&self, answer: &Result<T, Failure>) {
        let is_outage = |failure: &Failure| failure.kind() == StoreErrorKind::Unavailable;
        self.slots.heard(!answer.as_ref().is_err_and(is_outage));
    }

    /// Closes the connections that were idle at this time already, because the server has become a standby or does not answer.
    /// Connections that came back later had an answer.
    pub(crate) fn close_idle(&self, then: Timestamp) {
        self.lock().retain(|idle| idle.since > then);
    }

    // The last one that was used comes first, so that those that are not needed become old.
    fn pop(&self) -> Option<Idle> {
        self.lock().pop()
    }

    // A panic cannot leave the list half-changed, so a poisoned lock is still sound.
    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the others of this process are to blame, the failure is no outage.
fn blamed(failure: Failure, kind: StoreErrorKind) -> Failure {
    match kind {
        StoreErrorKind::Contended => failure.with_kind(kind).with_detail(Scope::Process),
        _ => failure,
    }
}

impl Lease<'_> {
    /// Gives the connection back. Without this it is closed, and so is one whose slot another call has.
    pub(crate) fn give_back(self, config: &Config) {
        let Self { pool, connection, slot, .. } = self;
        if slot.is_held() {
            pool.lock().push(Idle { connection, since: config.timing.clock.now() });
        }
    }
}

impl Target {
    async fn connect(
        &self,
        config: &Config,
        budget: &Budget<'_>,
        password: Option<&str>,
    ) -> Result<Connection, Unconnected> {
        let mut server = self.server.clone();
        if let Some(password) = password {
            server.password(password);
        }
        // A machine without power keeps no time of those behind it.
        if config.hosts > 1 {
            server.connect_timeout(config.connecting().min(budget.left()) / config.hosts);
        }
        let (client, wire, encoding) = match &self.tls {
            Some(tls) => opened(server.connect(tls.clone()).await),
            None => opened(server.connect(tokio_postgres::NoTls).await),
        }?;
        match encoding.as_deref() {
            Some("UTF8") | None => Ok(Connection::new(client, wire)),
            Some(other) => Err(Unconnected::Encoding(other.to_owned())),
        }
    }
}

/// What the server says of the encoding of the database, on each new connection.
const ENCODING: &str = "server_encoding";

type Opened<S> = Result<(Client, tokio_postgres::Connection<Socket, S>), Error>;

/// A connection, and the encoding of its database.
fn opened<S>(opened: Opened<S>) -> Result<(Client, Wire, Option<String>), Unconnected>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (client, wire) = opened.map_err(Unconnected::Failed)?;
    let encoding = wire.parameter(ENCODING).map(str::to_owned);
    Ok((client, Box::pin(quiet(wire)), encoding))
}

/// Sends and receives. The driver by itself would log notices, which are texts of the database's functions.
async fn quiet<S>(mut wire: tokio_postgres::Connection<Socket, S>) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|cx| wire.poll_message(cx)).await {
        message?;
    }
    Ok(())
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}
