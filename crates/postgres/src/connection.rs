//! One connection to the server. It does I/O only while a call waits for it: nothing is spawned.
//!
//! `tokio-postgres` splits a connection into a client, which makes requests, and a future that sends and
//! receives them. Usually a task polls that future. Here [`Connection::drive`] polls it beside the
//! requests, and nobody polls it between calls, when Lambda may freeze the process.

use std::{
    borrow::Cow,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use futures_util::{
    TryStreamExt,
    future::{BoxFuture, join_all},
};
use tokio_postgres::{Client, Error, Row, SimpleQueryMessage, types::ToSql};

use crate::parameters::Parameter;

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

/// What the server answered to a transaction.
pub(crate) struct Answers {
    pub(crate) begin: Result<Access, Error>,
    /// For each statement what it did, in order.
    pub(crate) statements: Vec<Result<Ran, Error>>,
    /// The answer to the end; `Ok` if none was sent.
    pub(crate) end: Result<(), Error>,
}

/// What the session may do, as it said when the transaction began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    ReadWrite,
    /// A standby, or an administrator has set the session, its role or its database so.
    ReadOnly,
}

/// What a statement did.
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

/// What became of the first of these statements, and of the others. The server does not say which of them has failed.
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
