//! The connections of a store: opened when needed, and kept for the next call.
//!
//! A connection goes back into the pool only after the server has answered everything that was sent. One
//! whose call was dropped or timed out is closed, so no later call reads its answers.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::Timestamp,
    request_slots::{RequestSlots, Slot},
    settings::LoadPassword,
    store::StoreErrorKind,
};

use crate::{
    config::Config,
    connection::Connection,
    error::{Failure, Scope},
    own_session::IS_OWN,
    retry::Budget,
    tls::Tls,
    unconnected::Unconnected,
};

/// Where to connect to, and how.
#[derive(Clone)]
pub(crate) struct Target {
    /// The hosts that are tried before the last one.
    pub(crate) before: Vec<tokio_postgres::Config>,
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

    /// An idle connection, or a new one.
    ///
    /// A connection that was idle for long may be dead without anybody having said so: a frozen process
    /// answers no keep-alives, and networks forget idle connections. It is closed.
    pub(crate) async fn take<'p>(
        &'p self,
        slot: Slot<'p>,
        config: &Config,
        budget: &Budget<'_>,
    ) -> Result<Lease<'p>, Unconnected> {
        while let Some(Idle { mut connection, since }) = self.pop() {
            if config.timing.clock.now().since(since) <= config.max_idle && !connection.is_closed()
            {
                return Ok(Lease { pool: self, connection, waited: Duration::ZERO, slot });
            }
        }
        let mut connection = self.target.connect(config, budget).await?;
        if config.prepared_statements {
            let is_own = connection.keep_statements_if(IS_OWN).await;
            if !is_own.map_err(Unconnected::Failed)? {
                return Err(Unconnected::Shared);
            }
        }
        Ok(Lease { pool: self, connection, waited: Duration::ZERO, slot })
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
    ) -> Result<Connection, Unconnected> {
        let password = match &self.password {
            Some(load) => Some(load.load().await.ok_or(Unconnected::NoPassword)?),
            None => None,
        };
        let mut said = None;
        for (hosts, server) in (2..=config.hosts).rev().zip(&self.before) {
            // One that does not answer, such as a machine without power, keeps no time of those behind it.
            let limit = config.connect_timeout.min(budget.left() / hosts);
            match budget.within(limit, self.open(server, password.as_deref())).await {
                Ok(Ok(open)) => return Ok(open),
                Ok(Err(why)) if why.is_of_server() => said = Some(why),
                _ => {}
            }
        }
        let last = self.open(&self.server, password.as_deref()).await;
        // The answer of one server says more than the silence of another.
        last.map_err(|why| if why.is_of_server() { why } else { said.unwrap_or(why) })
    }

    async fn open(
        &self,
        server: &tokio_postgres::Config,
        password: Option<&str>,
    ) -> Result<Connection, Unconnected> {
        let mut server = server.clone();
        if let Some(password) = password {
            server.password(password);
        }
        if let Some(tls) = &self.tls {
            let (client, wire) = server.connect(tls.clone()).await.map_err(Unconnected::Failed)?;
            check_encoding(wire.parameter(ENCODING))?;
            return Ok(Connection::new(client, Box::pin(wire)));
        }
        let plain = tokio_postgres::NoTls;
        let (client, wire) = server.connect(plain).await.map_err(Unconnected::Failed)?;
        check_encoding(wire.parameter(ENCODING))?;
        Ok(Connection::new(client, Box::pin(wire)))
    }
}

/// What the server says of the encoding of the database, on each new connection.
const ENCODING: &str = "server_encoding";

fn check_encoding(encoding: Option<&str>) -> Result<(), Unconnected> {
    match encoding {
        Some("UTF8") | None => Ok(()),
        Some(other) => Err(Unconnected::Encoding(other.to_owned())),
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}
