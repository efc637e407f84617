//! A completion and the effects of its handler, in one transaction.
//!
//! It takes two round trips. The first begins the transaction, writes the record under its guard, reads what was
//! found if the guard failed, and runs the effects. Then it is known whether all of it may be committed, and the
//! second one commits or rolls back. While `COMMIT` was not sent, nothing was applied, whatever fails.

use lambda_idempotency_core::{
    effects::{RefusalReason, RefusedEffect},
    store::StoreErrorKind,
};
use tokio_postgres::Error;

use crate::{
    connection::{Answers, Statement},
    effects::PostgresEffects,
    error::{self, Doing, Failure, Scope, begin_failure, commit_failure, failure, told},
    member::Member,
    pool::Lease,
    retry::Budget,
    store::PostgresStore,
    transaction::{begin, nothing_was_written},
    write::{Done, done},
};

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
        member: &Member<'_>,
        effects: &PostgresEffects,
        budget: &Budget<'_>,
    ) -> Result<Done, Failure> {
        let mut lease = self.lease(doing, budget).await?;
        match self.prepare(doing, member, effects, &mut lease, budget).await {
            Ok(Prepared::Ready(done)) => self.finish(doing, done, lease, budget).await,
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
                if failure.kind() == StoreErrorKind::Contended {
                    self.roll_back(lease, budget).await;
                }
                if failure.detail == Scope::Server {
                    self.pool.close_idle();
                }
                Err(failure)
            }
        }
    }

    /// Does everything in a transaction that stays open.
    async fn prepare(
        &self,
        doing: Doing<'_>,
        member: &Member<'_>,
        effects: &PostgresEffects,
        lease: &mut Lease<'_>,
        budget: &Budget<'_>,
    ) -> Result<Prepared, Failure> {
        let mut statements = self.statements_of(std::slice::from_ref(member));
        let own = statements.len();
        let of_effects = effects.statements().iter();
        statements.extend(of_effects.map(|s| Statement::counted(s.text(), s.parameters())));
        let limit = budget.limit();
        let begin = begin(limit, "");
        let running = budget.attempt(limit, lease.connection.run(&begin, &statements, None));
        let Answers { begin, statements: mut answers, .. } =
            running.await.map_err(|late| error::timed_out(doing, late).with_doubt(false))?;
        if let Err(error) = &begin {
            // Without a transaction, the statements may have been applied one by one.
            let in_doubt = error.as_db_error().is_some() && !nothing_was_written(&answers);
            return Err(begin_failure(doing, error).with_doubt(in_doubt));
        }
        let of_effects = answers.split_off(own.min(answers.len()));
        let mut rows = Vec::with_capacity(own);
        for answer in answers {
            rows.push(answer.map_err(|error| failure(doing, &error).with_doubt(false))?.rows);
        }
        let done = done(&self.config, std::slice::from_ref(member), rows)?;
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
                    let failure = failure(doing, &error);
                    if failure.retry || error.as_db_error().is_none() {
                        return Err(failure.with_doubt(false));
                    }
                    return Ok(Prepared::Refused(refusal(&error).at(position)));
                }
            }
        }
        Ok(Prepared::Ready(done))
    }

    async fn finish(
        &self,
        doing: Doing<'_>,
        done: Done,
        mut lease: Lease<'_>,
        budget: &Budget<'_>,
    ) -> Result<Done, Failure> {
        let limit = budget.limit();
        let committed = budget.attempt(limit, lease.connection.batch("COMMIT")).await;
        match committed.map_err(|late| error::timed_out(doing, late))? {
            Ok(()) => {
                lease.give_back(&self.config);
                Ok(done)
            }
            Err(error) => {
                let failure = commit_failure(doing, &error);
                if failure.in_doubt || failure.retry {
                    return Err(failure);
                }
                // A constraint that is checked at the end.
                lease.give_back(&self.config);
                Ok(Done::refused(refusal(&error)))
            }
        }
    }

    async fn roll_back(&self, mut lease: Lease<'_>, budget: &Budget<'_>) {
        let rolled_back = budget.attempt(budget.limit(), lease.connection.batch("ROLLBACK")).await;
        if matches!(rolled_back, Ok(Ok(()))) {
            lease.give_back(&self.config);
        }
    }
}

/// Why the server refused an effect.
fn refusal(error: &Error) -> RefusedEffect {
    let Some(said) = error.as_db_error() else { return RefusedEffect::new(RefusalReason::Invalid) };
    let code = said.code().code();
    let reason = match (code, code.get(..2)) {
        ("42501", _) => RefusalReason::Denied,
        // A constraint, or an exception that a function of the user raised.
        (_, Some("23" | "P0")) => RefusalReason::ConditionFailed,
        (_, Some("54")) => RefusalReason::TooLarge,
        _ => RefusalReason::Invalid,
    };
    RefusedEffect::new(reason).with_detail(told(said))
}
