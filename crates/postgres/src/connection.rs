//! One connection to the server. It does I/O only while a call waits for it: nothing is spawned.
//!
//! `tokio-postgres` splits a connection into a client, which makes requests, and a future that sends and
//! receives them. Usually a task polls that future. Here [`Connection::drive`] polls it beside the
//! requests, and nobody polls it between calls, when Lambda may freeze the process.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::BytesMut;
use futures_util::{
    TryStreamExt,
    future::{BoxFuture, join_all},
};
use lambda_idempotency_core::failure::BoxError;
use tokio_postgres::{
    Client, Error, Row, SimpleQueryMessage,
    types::{Format, IsNull, ToSql, Type},
};

use crate::parameters::Parameter;

/// The future that sends and receives.
pub(crate) type Wire = BoxFuture<'static, Result<(), Error>>;

/// An open connection.
pub(crate) struct Connection {
    client: Client,
    /// `None` once it has ended.
    wire: Option<Wire>,
    /// What the server has prepared, by text. `None` if nothing may be.
    prepared: Option<HashMap<String, tokio_postgres::Statement>>,
    /// How many statements of the last transaction were answered.
    answered: usize,
}

/// A statement with its parameters.
pub(crate) struct Statement<'s> {
    text: Cow<'s, str>,
    parameters: Vec<Parameter<'s>>,
    /// Whether its rows are wanted, or only how many there are.
    wants_rows: bool,
    /// Whether the server may keep it, if the connection is not shared.
    is_kept: bool,
}

impl<'s> Statement<'s> {
    pub(crate) fn new(text: impl Into<Cow<'s, str>>, parameters: Vec<Parameter<'s>>) -> Self {
        Self { text: text.into(), parameters, wants_rows: true, is_kept: false }
    }

    /// Whether the server may keep it: its text is sent again and again, and its plan is the same for all parameters.
    pub(crate) const fn kept(mut self, is_kept: bool) -> Self {
        self.is_kept = is_kept;
        self
    }

    /// A statement of which only the number of rows is wanted. It may return values of any type. To read values of a type
    /// that it does not know, the driver prepares a statement by name. Behind PgBouncer that name stays on a connection
    /// which others use next (`42P05`).
    pub(crate) const fn counted(text: &'s str, parameters: Vec<Parameter<'s>>) -> Self {
        Self { text: Cow::Borrowed(text), parameters, wants_rows: false, is_kept: false }
    }
}

/// What the server answered to a transaction.
pub(crate) struct Answers {
    pub(crate) begin: Result<(), Error>,
    /// For each statement what it did, in order.
    pub(crate) statements: Vec<Result<Ran, Error>>,
    /// For each statement whether it was one that the server had kept.
    pub(crate) were_kept: Vec<bool>,
    /// The answer to the end; `Ok` if none was sent.
    pub(crate) end: Result<(), Error>,
}

/// What a statement did.
pub(crate) struct Ran {
    pub(crate) rows: Vec<Row>,
    /// How many rows it changed or returned.
    pub(crate) changed: u64,
}

impl Connection {
    pub(crate) fn new(client: Client, wire: Wire) -> Self {
        Self { client, wire: Some(wire), prepared: None, answered: 0 }
    }

    /// Lets the server keep statements, if this text returns a row: the connection is not shared with others.
    pub(crate) async fn keep_statements_if(&mut self, text: &str) -> Result<bool, Error> {
        let Self { client, wire, prepared, .. } = self;
        let mut request = Request::new(client.query_typed(text, &[]));
        drive(wire, |cx| request.is_ready(cx)).await;
        let is_own = !request.answer().await?.is_empty();
        *prepared = is_own.then(HashMap::new);
        Ok(is_own)
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
    /// give each transaction another server. On a connection that is not shared, those that may be kept are prepared after
    /// their first use in the same round trip.
    pub(crate) async fn run(
        &mut self,
        begin: &str,
        statements: &[Statement<'_>],
        end: Option<&str>,
    ) -> Answers {
        let Self { client, wire, prepared, answered } = self;
        let client = &*client;
        let keeps = |statement: &&Statement<'_>| end.is_some() && statement.is_kept;
        let known = |statement| prepared.as_ref()?.get(&*Some(statement).filter(keeps)?.text);
        let mut begin = Request::new(client.batch_execute(begin));
        let were_kept = statements.iter().map(|s| known(s).is_some()).collect();
        let running = statements.iter().map(|s| Request::new(one(client, s, known(s).cloned())));
        let mut running: Vec<_> = running.collect();
        let mut ended = end.map(|end| Request::new(client.batch_execute(end)));
        let new =
            statements.iter().filter(keeps).filter(|s| prepared.is_some() && known(s).is_none());
        let mut preparing: Vec<_> = new.map(|s| (s, Request::new(prepare(client, s)))).collect();
        // A request is sent when it is first polled, so they are polled in order.
        drive(wire, |cx| {
            let mut are_ready = begin.is_ready(cx);
            *answered = 0;
            for request in &mut running {
                let is_ready = request.is_ready(cx);
                *answered = answered.saturating_add(usize::from(is_ready));
                are_ready &= is_ready;
            }
            are_ready &= ended.as_mut().is_none_or(|end| end.is_ready(cx));
            for (_, request) in &mut preparing {
                are_ready &= request.is_ready(cx);
            }
            are_ready
        })
        .await;
        let answers: Vec<_> = join_all(running.into_iter().map(Request::answer)).await;
        for (statement, request) in preparing {
            // If that failed, it is sent as before, and its own error says why.
            if let (Some(prepared), Ok(kept)) = (prepared.as_mut(), request.answer().await) {
                prepared.insert(statement.text.clone().into_owned(), kept);
            }
        }
        if let Some(prepared) = prepared
            && answers.iter().any(Result::is_err)
        {
            // Perhaps the table has changed.
            prepared.clear();
        }
        Answers {
            begin: begin.answer().await,
            statements: answers,
            were_kept,
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

async fn prepare(
    client: &Client,
    statement: &Statement<'_>,
) -> Result<tokio_postgres::Statement, Error> {
    let types: Vec<_> = statement.parameters.iter().map(|(_, sql_type)| sql_type.clone()).collect();
    client.prepare_typed(&statement.text, &types).await
}

async fn one(
    client: &Client,
    statement: &Statement<'_>,
    kept: Option<tokio_postgres::Statement>,
) -> Result<Ran, Error> {
    let parameters = statement.parameters.iter();
    let parameters =
        parameters.map(|(value, sql_type)| (&**value as &(dyn ToSql + Sync), sql_type.clone()));
    if !statement.wants_rows {
        let parameters: Vec<_> = parameters.collect();
        let changed = client.execute_typed(&statement.text, &parameters).await?;
        return Ok(Ran { rows: Vec::new(), changed });
    }
    let answer = match kept {
        Some(kept) => client.query_raw(&kept, parameters.map(|(value, _)| Hidden(value))).await?,
        None => client.query_typed_raw(&statement.text, parameters).await?,
    };
    let mut answer = pin!(answer);
    let mut rows = Vec::new();
    while let Some(row) = answer.try_next().await? {
        rows.push(row);
    }
    let changed = answer.rows_affected().unwrap_or(0);
    Ok(Ran { rows, changed })
}

/// A value that is not shown: the driver logs those of prepared statements.
struct Hidden<'v>(&'v (dyn ToSql + Sync));

impl fmt::Debug for Hidden<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl ToSql for Hidden<'_> {
    fn to_sql(&self, sql_type: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        self.0.to_sql_checked(sql_type, out)
    }

    fn accepts(_: &Type) -> bool {
        true // the value itself is asked
    }

    fn to_sql_checked(&self, sql_type: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        self.0.to_sql_checked(sql_type, out)
    }

    fn encode_format(&self, sql_type: &Type) -> Format {
        self.0.encode_format(sql_type)
    }
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
