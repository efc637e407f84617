//! Sends statements in one transaction, and finds out what became of it.
//!
//! # A completion and the effects of its handler
//!
//! It takes two round trips. The first begins the transaction, writes the record under its guard, reads what was
//! found if the guard failed, and runs the effects. Then it is known whether all of it may be committed, and the
//! second one commits or rolls back. While `COMMIT` was not sent, nothing was applied, whatever fails.
//!
//! An effect that fails is the handler's failure. Where it may succeed without a change, it is run once more: if the
//! server gives the same answer, that counts. [`too_slow`](PostgresStore::too_slow) says what becomes of one that takes long.

use std::time::Duration;

use lambda_idempotency_core::{
    effects::{RefusalReason, RefusedEffect},
    request_slots::Slot,
    store::StoreErrorKind,
};
use tokio_postgres::{Error, error::SqlState};

use crate::{
    config::{Config, Isolation},
    connection::{Access, Answers, Connection, Lease, Ran, Rows, Statement},
    effects::PostgresEffects,
    error::{
        self, Cause, Doing, Failure, Scope, begin_failure, cause, commit_failure, connect_failure,
        ends_connection, failure, no_password, read_only, told,
    },
    limits::{Budget, SHORTEST},
    store::PostgresStore,
    write::{Done, GivenUp, Member, done},
};

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
            let limit = self.config.connecting_by(budget);
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
            let connecting = self.config.connecting_by(budget);
            let connecting = self.pool.loading().saturating_add(connecting);
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
        let begin = begin(&self.config, limit, planning);
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
///
/// A store that only reads asks nothing: it may be one of a standby.
fn begin(config: &Config, limit: Duration, planning: &str) -> String {
    let share = |eighths: u32| (limit.saturating_mul(eighths) / 8).as_millis().max(1);
    let (statement, lock) = (share(7), share(6));
    let begin = if config.reads_only {
        "BEGIN READ ONLY".to_owned()
    } else {
        let isolation = config.isolation.map_or("", Isolation::clause);
        format!("BEGIN{isolation}; SHOW transaction_read_only")
    };
    format!(
        "{begin}; \
         SET LOCAL statement_timeout = {statement}; SET LOCAL lock_timeout = {lock}; \
         SET LOCAL idle_in_transaction_session_timeout = {statement}{planning}"
    )
}

/// Whether a transaction that may write was begun. Where the server refused that, the statements may have been applied one by
/// one; where nothing is known of it, they may be if its end was sent with them.
fn has_begun(
    doing: Doing<'_>,
    begin: &Result<Access, Error>,
    statements: &[Result<Ran, Error>],
    with_end: bool,
) -> Result<(), Failure> {
    match begin {
        Ok(Access::ReadWrite) => Ok(()),
        Ok(Access::ReadOnly) => Err(read_only(doing)),
        Err(error) => {
            let may_be = with_end || error.as_db_error().is_some();
            let in_doubt = may_be && !nothing_was_written(statements);
            Err(begin_failure(doing, error).with_doubt(in_doubt))
        }
    }
}

/// The outcome of the transaction, which was rolled back if one of its statements failed.
fn judge(doing: Doing<'_>, answers: Answers) -> Result<Rows, Failure> {
    let Answers { begin, statements, end } = answers;
    has_begun(doing, &begin, &statements, true)?;
    let mut rows = Vec::with_capacity(statements.len());
    for answer in statements {
        rows.push(answer.map_err(|error| failure(doing, &error))?.rows);
    }
    end.map_err(|error| commit_failure(doing, &error))?;
    Ok(rows)
}

/// Whether the server refused every statement, or is read-only.
fn nothing_was_written(statements: &[Result<Ran, Error>]) -> bool {
    let is_refused = |answer: &Result<_, Error>| {
        answer.as_ref().is_err_and(|error| error.as_db_error().is_some())
    };
    let is_read_only = |answer: &Result<_, Error>| {
        let code = answer.as_ref().err().and_then(Error::code);
        code == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
    };
    statements.iter().all(is_refused) || statements.iter().any(is_read_only)
}

impl Answers {
    fn errors(&self) -> impl Iterator<Item = &Error> {
        let ends = [self.begin.as_ref().err(), self.end.as_ref().err()];
        let statements = self.statements.iter().filter_map(|answer| answer.as_ref().err());
        ends.into_iter().flatten().chain(statements)
    }
}

/// Makes the connection what it was when it was opened, for what effects can leave on it: cursors, a role, settings (also
/// by `set_config`), channels, advisory locks, temporary tables. It is sent with `COMMIT` or `ROLLBACK`, so that a proxy sends both
/// to one connection. Statements are ended that SQL has prepared: others, which `DISCARD ALL` would end as well, are a
/// proxy's. That comes after a transaction of the rest, which it would undo if it failed: the database may have no
/// PL/pgSQL, or the role no right to it.
const CLEAN: &str = "BEGIN; CLOSE ALL; RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; UNLISTEN *; \
     SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES; COMMIT; \
     DO $$ DECLARE s record; BEGIN FOR s IN SELECT name FROM pg_prepared_statements WHERE from_sql LOOP \
     EXECUTE format('DEALLOCATE %I', s.name); END LOOP; END $$";

/// The end that a transaction is to have.
enum Prepared {
    /// Everything was done, and can be committed.
    Ready(Done),
    /// The guard failed.
    Lost(Done),
    Refused(RefusedEffect),
}

impl PostgresStore {
    /// Sends one write with its effects.
    pub(crate) async fn commit(
        &self,
        doing: Doing<'_>,
        member: &mut Member<'_>,
        effects: &PostgresEffects,
        budget: &Budget<'_>,
    ) -> Result<Done, Failure> {
        let mut lease = self.lease(doing, budget, || member.commit_limit(budget)).await?;
        match self.prepare(doing, member, effects, &mut lease, budget).await {
            Ok(Prepared::Ready(done)) => self.finish(doing, member, done, lease, budget).await,
            Ok(Prepared::Lost(done)) => {
                self.roll_back(lease, budget).await;
                Ok(done)
            }
            Ok(Prepared::Refused(refused)) => {
                self.roll_back(lease, budget).await;
                Ok(Done::refused(refused))
            }
            Err(failure) => {
                // Any other one closes the connection, by which the server rolls back.
                if failure.kind() == StoreErrorKind::Contended && failure.detail != Scope::Process {
                    self.roll_back(lease, budget).await;
                }
                if failure.detail == Scope::Server {
                    self.pool.close_idle(self.config.timing.clock.now());
                }
                Err(failure)
            }
        }
    }

    /// Does everything in a transaction that stays open.
    async fn prepare(
        &self,
        doing: Doing<'_>,
        member: &mut Member<'_>,
        effects: &PostgresEffects,
        lease: &mut Lease<'_>,
        budget: &Budget<'_>,
    ) -> Result<Prepared, Failure> {
        let mut statements = self.statements_of(std::slice::from_ref(&*member));
        let own = statements.len();
        let of_effects = effects.statements().iter();
        statements.extend(of_effects.map(|s| Statement::counted(s.text(), s.parameters())));
        let limit = member.commit_limit(budget);
        let began = self.config.timing.clock.now();
        let begin = begin(&self.config, limit, "");
        let running = budget.attempt(limit, lease.connection.run(&begin, &statements, None)).await;
        drop(statements);
        let Answers { begin, statements: mut answers, .. } = match running {
            Ok(answers) => {
                self.pool.slots.heard(answers.begin.is_ok());
                answers
            }
            // The server answers, and the record is written, so it works on an effect.
            Err(_) if lease.connection.answered() >= own => {
                let position = lease.connection.answered().saturating_sub(own);
                return self
                    .too_slow(doing, member, Some(position), limit, budget)
                    .map(Prepared::Refused);
            }
            Err(late) => {
                self.pool.close_idle(began);
                let failure = error::timed_out(doing, late).with_doubt(false);
                let limits = (late.0, self.config.timing.attempt_timeout);
                return Err(self.pool.unanswered(failure, lease.waited, limits));
            }
        };
        has_begun(doing, &begin, &answers, false)?;
        let of_effects = answers.split_off(own.min(answers.len()));
        let mut rows = Vec::with_capacity(own);
        for answer in answers {
            rows.push(answer.map_err(|error| failure(doing, &error).with_doubt(false))?.rows);
        }
        let done = done(&self.config, std::slice::from_ref(&*member), rows)?;
        // The claim is checked first: a worker that has lost its key is told so, even if an effect was refused, too.
        if !done.has_written(member.key()) {
            return Ok(Prepared::Lost(done));
        }
        for (position, (answer, statement)) in
            of_effects.into_iter().zip(effects.statements()).enumerate()
        {
            match answer {
                Ok(ran) if statement.expected_rows().is_none_or(|rows| rows == ran.changed) => {}
                Ok(_) => {
                    let refused = RefusedEffect::new(RefusalReason::ConditionFailed);
                    return Ok(Prepared::Refused(refused.at(position)));
                }
                Err(error) => {
                    let refused = self.failed(doing, member, Some(position), &error, limit, budget);
                    return refused.map(Prepared::Refused);
                }
            }
        }
        Ok(Prepared::Ready(done))
    }

    async fn finish(
        &self,
        doing: Doing<'_>,
        member: &mut Member<'_>,
        done: Done,
        mut lease: Lease<'_>,
        budget: &Budget<'_>,
    ) -> Result<Done, Failure> {
        let limit = member.commit_limit(budget);
        let commit = format!("COMMIT; {CLEAN}");
        let began = self.config.timing.clock.now();
        let committed = budget.attempt(limit, lease.connection.first_of(&commit)).await;
        let committed = committed.map_err(|late| {
            self.pool.close_idle(began);
            error::timed_out(doing, late)
        });
        match committed? {
            Ok(cleaned) => {
                // Whatever became of the rest, it is committed.
                self.keep(lease, cleaned);
                Ok(done)
            }
            Err(error) => {
                let failure = commit_failure(doing, &error);
                if failure.in_doubt {
                    return Err(failure);
                }
                // A constraint or a trigger that is checked at the end, or a conflict with another transaction.
                let refused = self.failed(doing, member, None, &error, limit, budget);
                self.roll_back(lease, budget).await;
                refused.map(Done::refused)
            }
        }
    }

    async fn roll_back(&self, mut lease: Lease<'_>, budget: &Budget<'_>) {
        let roll_back = format!("ROLLBACK; {CLEAN}");
        let rolled_back = budget.attempt(budget.limit(), lease.connection.batch(&roll_back)).await;
        if let Ok(cleaned) = rolled_back {
            self.keep(lease, cleaned);
        }
    }

    /// Keeps a connection of which the server says that nothing of effects is left on it, and closes any other.
    fn keep(&self, lease: Lease<'_>, cleaned: Result<(), Error>) {
        match cleaned {
            Ok(()) => lease.give_back(&self.config),
            Err(error) => {
                if let Some(said) = error.as_db_error().filter(|_| self.pool.is_first_unclean()) {
                    let (table, why) = (self.config.table.name(), told(said));
                    tracing::warn!(
                        %table, why,
                        "each operation with effects opens a connection: what effects leave on one cannot be removed; \
                         the database needs PL/pgSQL, and the role EXECUTE on pg_advisory_unlock_all()"
                    );
                }
            }
        }
    }

    /// The transaction was rolled back because of an effect, or of all of them at `COMMIT`. Either that is a refusal, or it
    /// may be sent again.
    fn failed(
        &self,
        doing: Doing<'_>,
        member: &mut Member<'_>,
        position: Option<usize>,
        error: &Error,
        limit: Duration,
        budget: &Budget<'_>,
    ) -> Result<RefusedEffect, Failure> {
        let failure = failure(doing, error).with_doubt(false);
        let Some(said) = error.as_db_error() else { return Err(failure) };
        match cause(said) {
            Cause::TimeLimit => self.too_slow(doing, member, position, limit, budget),
            Cause::Others => Err(failure),
            Cause::Statement => {
                let given_up = GivenUp { position, code: said.code().code().to_owned() };
                if failure.retry && member.given_up.as_ref() != Some(&given_up) {
                    member.given_up = Some(given_up);
                    return Err(failure);
                }
                Ok(at(refusal(error), position))
            }
        }
    }

    /// An effect did not end within this limit. Where the call has more time, it is run once more with all of that: the server
    /// answers, so nothing is gained by asking it sooner. Otherwise it is refused, and a longer call may succeed.
    fn too_slow(
        &self,
        doing: Doing<'_>,
        member: &mut Member<'_>,
        position: Option<usize>,
        limit: Duration,
        budget: &Budget<'_>,
    ) -> Result<RefusedEffect, Failure> {
        if budget.left() > limit {
            member.is_slow = true;
            return Err(error::slow_effect(doing, limit));
        }
        let refused = RefusedEffect::new(RefusalReason::TooSlow).with_detail(format!(
            "it was stopped after {} ms, all that this call of the store had; `attempt_timeout`, {} ms, is the time for the \
             first try",
            limit.as_millis(),
            self.config.timing.attempt_timeout.as_millis()
        ));
        Ok(at(refused, position))
    }
}

const fn at(refused: RefusedEffect, position: Option<usize>) -> RefusedEffect {
    match position {
        Some(position) => refused.at(position),
        None => refused,
    }
}

/// Why the server refused an effect.
fn refusal(error: &Error) -> RefusedEffect {
    let Some(said) = error.as_db_error() else { return RefusedEffect::new(RefusalReason::Invalid) };
    let code = said.code().code();
    let reason = match (code, code.get(..2)) {
        // A constraint, or an exception that a function of the user raised.
        _ if error::is_raised(said) => RefusalReason::ConditionFailed,
        (_, Some("23" | "40" | "P0")) => RefusalReason::ConditionFailed,
        ("42501", _) => RefusalReason::Denied,
        (_, Some("54")) => RefusalReason::TooLarge,
        _ => RefusalReason::Invalid,
    };
    RefusedEffect::new(reason).with_detail(told(said))
}
