//! Sends statements in one transaction, and finds out what became of it.

use std::time::Duration;

use lambda_idempotency_core::{request_slots::Slot, store::StoreErrorKind};
use tokio_postgres::{Row, error::SqlState};

use crate::{
    connection::{Access, Answers, Connection, Ran, Statement},
    error::{
        self, Doing, Failure, Scope, begin_failure, commit_failure, connect_failure,
        ends_connection, failure, no_password, read_only,
    },
    isolation::Isolation,
    pool::Lease,
    retry::{Budget, SHORTEST},
    store::PostgresStore,
};

/// The rows of each statement.
pub(crate) type Rows = Vec<Vec<Row>>;

impl PostgresStore {
    /// A connection for requests that may take as long as `request` says, if there is one in time. While all are in use, it is waited for as long as a request has time after that:
    /// who gives up and comes again is the last of those that wait.
    pub(crate) async fn lease(
        &self,
        doing: Doing<'_>,
        budget: &Budget<'_>,
        request: impl Fn() -> Duration + Send,
    ) -> Result<Lease<'_>, Failure> {
        let all = budget.left();
        let slot = self.slot(doing, all.saturating_sub(SHORTEST), budget, request).await?;
        let waited = all.saturating_sub(budget.left());
        let connection = self.connection(doing, waited, budget).await?;
        Ok(self.pool.lease(connection, slot, waited))
    }

    /// An idle connection, or a new one.
    pub(crate) async fn connection(
        &self,
        doing: Doing<'_>,
        waited: Duration,
        budget: &Budget<'_>,
    ) -> Result<Connection, Failure> {
        if let Some(idle) = self.pool.idle(&self.config) {
            return Ok(idle);
        }
        let mut was_refused = false;
        loop {
            let password = self.pool.password(budget).await;
            let password = password.map_err(|why| no_password(doing, why))?;
            let limit = self.config.connecting().min(budget.left());
            let connecting = self.pool.connect(&self.config, budget, password.as_deref());
            let connected = budget.attempt(limit, connecting).await.map_err(|late| {
                let limits = (late.0, self.config.connecting());
                self.pool.unanswered(error::not_connected(doing, late), waited, limits)
            })?;
            match connected {
                // Somebody may have changed it since: it is loaded once more.
                Err(why) if why.is_of_password() && password.is_some() && !was_refused => {
                    was_refused = true;
                }
                connected => {
                    let connection = connected.map_err(|why| connect_failure(doing, why));
                    if connection.is_err() {
                        self.pool.heard(&connection);
                    }
                    return connection;
                }
            }
        }
    }

    /// A slot, if there is one within `limit`, for requests that may take as long as `request` says.
    pub(crate) async fn slot(
        &self,
        doing: Doing<'_>,
        limit: Duration,
        budget: &Budget<'_>,
        request: impl Fn() -> Duration + Send,
    ) -> Result<Slot<'_>, Failure> {
        // For connecting, for the statements, and for `COMMIT`.
        let time = move || {
            let requests = request().saturating_mul(2);
            let connecting = self.pool.loading().saturating_add(self.config.connecting());
            connecting.saturating_add(requests).min(budget.left())
        };
        let slot = budget.within(limit, self.pool.slots.enter(doing.purpose, time)).await;
        slot.map_err(|late| self.pool.crowded(error::all_in_use(doing, late)))
    }

    /// Runs the statements once, in a transaction of their own with these settings for the planner, in one round trip.
    pub(crate) async fn transaction(
        &self,
        doing: Doing<'_>,
        planning: &str,
        statements: &[Statement<'_>],
        budget: &Budget<'_>,
    ) -> Result<Rows, Failure> {
        let mut lease = self.lease(doing, budget, || budget.limit()).await?;
        let limit = budget.limit();
        if limit.is_zero() {
            lease.give_back(&self.config);
            return Err(error::too_late(&self.config));
        }
        let began = self.config.timing.clock.now();
        let begin = begin(self.config.isolation, limit, planning);
        let answered = lease.connection.run(&begin, statements, Some("COMMIT"));
        let answers = budget.attempt(limit, answered).await.map_err(|late| {
            self.pool.close_idle(began);
            let limits = (late.0, self.config.timing.attempt_timeout);
            self.pool.unanswered(error::timed_out(doing, late), lease.waited, limits)
        })?;
        let is_usable = answers.errors().all(|error| !ends_connection(error));
        let judged = judge(doing, answers);
        self.pool.heard(&judged);
        if judged.as_ref().is_err_and(|failure| failure.detail == Scope::Server) {
            self.pool.close_idle(self.config.timing.clock.now());
        } else if is_usable {
            lease.give_back(&self.config);
        }
        if judged.as_ref().is_err_and(|failure| failure.kind() == StoreErrorKind::Unavailable) {
            // Perhaps the server stopped it because of the limit.
            budget.be_more_patient();
        }
        judged
    }
}

/// Begins a transaction that the server ends by itself, should this process be frozen or killed in it: a
/// killed process says nothing to the server.
///
/// The server stops a statement a little earlier than we stop waiting, so that we learn of it, and stops
/// waiting for a lock earlier than that.
///
/// Whether it may write, and how isolated it is, is what the session says, unless the store was told to [isolate](Isolation) it
/// otherwise. Whether it may write is asked first: a session that only reads may be one of a server that another has replaced.
pub(crate) fn begin(isolation: Option<Isolation>, limit: Duration, planning: &str) -> String {
    let share = |eighths: u32| (limit.saturating_mul(eighths) / 8).as_millis().max(1);
    let (statement, lock) = (share(7), share(6));
    let isolation = isolation.map_or("", Isolation::clause);
    format!(
        "BEGIN{isolation}; SHOW transaction_read_only; \
         SET LOCAL statement_timeout = {statement}; SET LOCAL lock_timeout = {lock}; \
         SET LOCAL idle_in_transaction_session_timeout = {statement}{planning}"
    )
}

/// What became of the transaction. It was rolled back if one of its statements failed.
fn judge(doing: Doing<'_>, answers: Answers) -> Result<Rows, Failure> {
    let Answers { begin, statements, end } = answers;
    match &begin {
        Ok(Access::ReadWrite) => {}
        Ok(Access::ReadOnly) => return Err(read_only(doing)),
        Err(error) => {
            // Without a transaction, the statements may have been applied one by one.
            return Err(begin_failure(doing, error).with_doubt(!nothing_was_written(&statements)));
        }
    }
    let mut rows = Vec::with_capacity(statements.len());
    for answer in statements {
        rows.push(answer.map_err(|error| failure(doing, &error))?.rows);
    }
    end.map_err(|error| commit_failure(doing, &error))?;
    Ok(rows)
}

/// Whether the server refused every statement, or is read-only.
pub(crate) fn nothing_was_written(statements: &[Result<Ran, tokio_postgres::Error>]) -> bool {
    let is_refused = |answer: &Result<_, tokio_postgres::Error>| {
        answer.as_ref().is_err_and(|error| error.as_db_error().is_some())
    };
    let is_read_only = |answer: &Result<_, tokio_postgres::Error>| {
        let code = answer.as_ref().err().and_then(tokio_postgres::Error::code);
        code == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
    };
    statements.iter().all(is_refused) || statements.iter().any(is_read_only)
}

impl Answers {
    fn errors(&self) -> impl Iterator<Item = &tokio_postgres::Error> {
        let ends = [self.begin.as_ref().err(), self.end.as_ref().err()];
        let statements = self.statements.iter().filter_map(|answer| answer.as_ref().err());
        ends.into_iter().flatten().chain(statements)
    }
}
