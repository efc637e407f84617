//! A completion and the effects of its handler, in one transaction.
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
    store::StoreErrorKind,
};
use tokio_postgres::Error;

use crate::{
    connection::{Access, Answers, Statement},
    effects::PostgresEffects,
    error::{
        self, Cause, Doing, Failure, Scope, begin_failure, cause, commit_failure, failure,
        read_only, told,
    },
    member::{GivenUp, Member},
    pool::Lease,
    retry::Budget,
    store::PostgresStore,
    transaction::{begin, nothing_was_written},
    write::{Done, done},
};

/// Makes the connection what it was when it was opened, for what effects can leave on it: cursors, a role, settings (also
/// by `set_config`), channels, advisory locks, temporary tables. It is sent with `COMMIT` or `ROLLBACK`, so that a proxy sends both
/// to one connection. Statements are ended that SQL has prepared: others, which `DISCARD ALL` would end as well, are a
/// proxy's. That comes after a transaction of the rest, which it would undo if it failed: the database may have no
/// PL/pgSQL, or the role no right to it.
const CLEAN: &str = "BEGIN; CLOSE ALL; RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; UNLISTEN *; \
     SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES; COMMIT; \
     DO $$ DECLARE s record; BEGIN FOR s IN SELECT name FROM pg_prepared_statements WHERE from_sql LOOP \
     EXECUTE format('DEALLOCATE %I', s.name); END LOOP; END $$";

/// What is to become of the transaction.
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
        let begin = begin(self.config.isolation, limit, "");
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
        match &begin {
            Ok(Access::ReadWrite) => {}
            Ok(Access::ReadOnly) => return Err(read_only(doing)),
            Err(error) => {
                // Without a transaction, the statements may have been applied one by one.
                let in_doubt = error.as_db_error().is_some() && !nothing_was_written(&answers);
                return Err(begin_failure(doing, error).with_doubt(in_doubt));
            }
        }
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
                if cleaned.is_ok() {
                    lease.give_back(&self.config);
                }
                Ok(done)
            }
            Err(error) => {
                let failure = commit_failure(doing, &error);
                if failure.in_doubt {
                    return Err(failure);
                }
                // A constraint or a trigger that is checked at the end.
                let refused = self.failed(doing, member, None, &error, limit, budget)?;
                self.roll_back(lease, budget).await;
                Ok(Done::refused(refused))
            }
        }
    }

    async fn roll_back(&self, mut lease: Lease<'_>, budget: &Budget<'_>) {
        let roll_back = format!("ROLLBACK; {CLEAN}");
        let rolled_back = budget.attempt(budget.limit(), lease.connection.batch(&roll_back)).await;
        if matches!(rolled_back, Ok(Ok(()))) {
            lease.give_back(&self.config);
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
