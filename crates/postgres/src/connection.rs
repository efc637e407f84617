//! One connection to the server. It does I/O only while a call waits for it: nothing is spawned.
//!
//! `tokio-postgres` splits a connection into a client, which makes requests, and a future that sends and
//! receives them. Usually a task polls that future. Here [`Connection::drive`] polls it beside the
//! requests, and nobody polls it between calls, when Lambda may freeze the process.
//!
//! A connection goes back into its pool only after the server has answered everything that was sent. One
//! whose call was dropped or timed out is closed, so no later call reads its answers.

use std::{
    borrow::Cow,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::{
    TryStreamExt,
    future::{BoxFuture, join_all},
};
use lambda_idempotency_core::{
    clock::Timestamp,
    request_slots::{RequestSlots, Slot},
    settings::{LoadPassword, NoPassword},
    store::StoreErrorKind,
    tls,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Client, Error, Row, SimpleQueryMessage, Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
    types::ToSql,
};

use crate::{
    config::Config,
    error::{Failure, Scope, Unconnected},
    item::Parameter,
    limits::Budget,
};

/// The rows of each statement.
pub(crate) type Rows = Vec<Vec<Row>>;

/// The future that sends and receives.
pub(crate) type Wire = BoxFuture<'static, Result<(), Error>>;

/// An open connection.
pub(crate) struct Connection {
    client: Client,
    /// `None` once it has ended.
    wire: Option<Wire>,
    /// How many statements of the last transaction were answered.
    answered: usize,
}

/// A statement with its parameters.
pub(crate) struct Statement<'s> {
    text: Cow<'s, str>,
    parameters: Vec<Parameter<'s>>,
    /// Whether its rows are wanted, or only how many there are.
    wants_rows: bool,
}

impl<'s> Statement<'s> {
    pub(crate) fn new(text: impl Into<Cow<'s, str>>, parameters: Vec<Parameter<'s>>) -> Self {
        Self { text: text.into(), parameters, wants_rows: true }
    }

    /// A statement of which only the number of rows is wanted. It may return values of any type. To read values of a type
    /// that it does not know, the driver prepares a statement by name. Behind PgBouncer that name stays on a connection
    /// which others use next (`42P05`).
    pub(crate) const fn counted(text: &'s str, parameters: Vec<Parameter<'s>>) -> Self {
        Self { text: Cow::Borrowed(text), parameters, wants_rows: false }
    }
}

/// The server's answers to a transaction.
pub(crate) struct Answers {
    pub(crate) begin: Result<Access, Error>,
    /// For each statement what it did, in order.
    pub(crate) statements: Vec<Result<Ran, Error>>,
    /// The answer to the end; `Ok` if none was sent.
    pub(crate) end: Result<(), Error>,
}

/// The access that the session has, as it said when the transaction began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    ReadWrite,
    /// A standby, or an administrator has set the session, its role or its database so.
    ReadOnly,
}

/// The effect of a statement.
pub(crate) struct Ran {
    pub(crate) rows: Vec<Row>,
    /// How many rows it changed or returned.
    pub(crate) changed: u64,
}

impl Connection {
    pub(crate) fn new(client: Client, wire: Wire) -> Self {
        Self { client, wire: Some(wire), answered: 0 }
    }

    /// Whether the server or the network has closed it, as far as this is known without waiting.
    pub(crate) fn is_closed(&mut self) -> bool {
        poll_wire(&mut self.wire, &mut Context::from_waker(Waker::noop()));
        self.wire.is_none()
    }

    /// Runs statements in a transaction, which stays open without an `end`. All messages are sent at once, so
    /// this takes one round trip; if a statement fails, the server skips those after it, and `COMMIT` rolls back.
    ///
    /// The statements are not prepared by name, and nothing stays behind on the server: a proxy may
    /// give each transaction another server.
    pub(crate) async fn run(
        &mut self,
        begin: &str,
        statements: &[Statement<'_>],
        end: Option<&str>,
    ) -> Answers {
        let Self { client, wire, answered } = self;
        let client = &*client;
        let mut begin = Request::new(begun(client, begin));
        let running = statements.iter().map(|statement| Request::new(one(client, statement)));
        let mut running: Vec<_> = running.collect();
        let mut ended = end.map(|end| Request::new(client.batch_execute(end)));
        // A request is sent when it is first polled, so they are polled in order.
        drive(wire, |cx| {
            let mut are_ready = begin.is_ready(cx);
            *answered = 0;
            for request in &mut running {
                let is_ready = request.is_ready(cx);
                *answered = answered.saturating_add(usize::from(is_ready));
                are_ready &= is_ready;
            }
            are_ready & ended.as_mut().is_none_or(|end| end.is_ready(cx))
        })
        .await;
        Answers {
            begin: begin.answer().await,
            statements: join_all(running.into_iter().map(Request::answer)).await,
            end: match ended {
                Some(end) => end.answer().await,
                None => Ok(()),
            },
        }
    }

    /// How many statements of the last transaction the server has answered.
    pub(crate) const fn answered(&self) -> usize {
        self.answered
    }

    /// Runs statements that take no parameters, and tells what became of the first of them from what became of the others.
    pub(crate) async fn first_of(&mut self, text: &str) -> Result<Result<(), Error>, Error> {
        let Self { client, wire, .. } = self;
        let mut request = Request::new(first_of(client, text));
        drive(wire, |cx| request.is_ready(cx)).await;
        request.answer().await
    }

    /// Runs statements that take no parameters, and ignores their rows.
    pub(crate) async fn batch(&mut self, text: &str) -> Result<(), Error> {
        let Self { client, wire, .. } = self;
        let mut request = Request::new(client.batch_execute(text));
        drive(wire, |cx| request.is_ready(cx)).await;
        request.answer().await
    }
}

/// Begins a transaction, and reads what `SHOW transaction_read_only` says, the only statement of these with a row.
async fn begun(client: &Client, begin: &str) -> Result<Access, Error> {
    let answers = client.simple_query(begin).await?;
    let is_on = |answer: &SimpleQueryMessage| match answer {
        SimpleQueryMessage::Row(row) => matches!(row.try_get(0), Ok(Some("on"))),
        _ => false,
    };
    Ok(if answers.iter().any(is_on) { Access::ReadOnly } else { Access::ReadWrite })
}

/// The outcome of the first of these statements, and that of the others. The server does not say which of them has failed.
async fn first_of(client: &Client, text: &str) -> Result<Result<(), Error>, Error> {
    let answers = client.simple_query_raw(text).await?;
    let mut answers = pin!(answers);
    let mut is_done = false;
    loop {
        match answers.try_next().await {
            Ok(Some(answer)) => {
                is_done |= matches!(answer, SimpleQueryMessage::CommandComplete(_));
            }
            Ok(None) => return Ok(Ok(())),
            Err(error) if is_done => return Ok(Err(error)),
            Err(error) => return Err(error),
        }
    }
}

async fn one(client: &Client, statement: &Statement<'_>) -> Result<Ran, Error> {
    let parameters = statement.parameters.iter();
    let parameters =
        parameters.map(|(value, sql_type)| (&**value as &(dyn ToSql + Sync), sql_type.clone()));
    if !statement.wants_rows {
        let parameters: Vec<_> = parameters.collect();
        let changed = client.execute_typed(&statement.text, &parameters).await?;
        return Ok(Ran { rows: Vec::new(), changed });
    }
    let mut answer = pin!(client.query_typed_raw(&statement.text, parameters).await?);
    let mut rows = Vec::new();
    while let Some(row) = answer.try_next().await? {
        rows.push(row);
    }
    let changed = answer.rows_affected().unwrap_or(0);
    Ok(Ran { rows, changed })
}

/// Polls the wire and the requests until these are ready.
async fn drive(wire: &mut Option<Wire>, mut is_ready: impl FnMut(&mut Context<'_>) -> bool) {
    poll_fn(|cx| {
        if is_ready(cx) {
            return Poll::Ready(());
        }
        if poll_wire(wire, cx) && is_ready(cx) {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
}

/// Sends and receives; returns whether the wire has ended. It is dropped then, which ends all requests.
fn poll_wire(wire: &mut Option<Wire>, cx: &mut Context<'_>) -> bool {
    if let Some(running) = wire
        && running.as_mut().poll(cx).is_ready()
    {
        *wire = None;
    }
    wire.is_none()
}

/// A request, and its answer when there is one.
enum Request<'r, T> {
    Running(Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'r>>),
    Answered(Result<T, Error>),
}

impl<'r, T> Request<'r, T> {
    fn new(request: impl Future<Output = Result<T, Error>> + Send + 'r) -> Self {
        Self::Running(Box::pin(request))
    }

    fn is_ready(&mut self, cx: &mut Context<'_>) -> bool {
        if let Self::Running(request) = self {
            let Poll::Ready(answer) = request.as_mut().poll(cx) else { return false };
            *self = Self::Answered(answer);
        }
        true
    }

    /// The answer, which is there once [`drive`] has ended.
    async fn answer(self) -> Result<T, Error> {
        match self {
            Self::Answered(answer) => answer,
            Self::Running(request) => request.await,
        }
    }
}

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
    /// A connection could not be cleaned, and that was logged.
    is_unclean: AtomicBool,
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
        Self { target, idle: Mutex::default(), is_unclean: AtomicBool::new(false), slots }
    }

    /// An idle connection.
    ///
    /// A connection that was idle for long may be dead without anybody having said so: a frozen process answers no keep-alives, and
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

    /// Whether no connection was left unclean before.
    pub(crate) fn is_first_unclean(&self) -> bool {
        !self.is_unclean.swap(true, Ordering::Relaxed)
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
            server.connect_timeout(config.connecting_by(budget) / config.hosts);
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

/// The name by which the server tells the encoding of the database, on each new connection.
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

/// Makes TLS connections. The server's certificate and its name are always checked.
#[derive(Clone)]
pub(crate) struct Tls(pub(crate) tls::Tls);

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, io::Error> {
        Ok(Handshake { tls: self.0.clone(), host: host.to_owned() })
    }
}

/// A handshake with this host.
pub(crate) struct Handshake {
    tls: tls::Tls,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Encrypted, io::Error>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(
            async move { Ok(Encrypted(Box::new(self.tls.connect(&self.host, socket).await?))) },
        )
    }
}

/// The abilities of an encrypted connection.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An encrypted connection.
pub(crate) struct Encrypted(Box<dyn Stream>);

impl TlsStream for Encrypted {
    // It would bind the password's proof to the server's certificate, which is checked already.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
