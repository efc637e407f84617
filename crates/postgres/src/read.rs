//! Reads of keys, in one statement.

use std::collections::HashMap;

use lambda_idempotency_core::{
    clock::Timestamp, key::Key, record::IdempotencyRecord, request_slots::Purpose,
    store::StoreError,
};
use tokio_postgres::Row;

use crate::{
    config::Config,
    connection::Statement,
    error::{self, Doing, Failure},
    item::{decode, key, keys},
    limits::{Budget, backoff, budget, fit_key},
    statements::MANY,
    store::PostgresStore,
};

/// The most keys of a statement.
const MOST: usize = 1000;

type Answer = Result<Option<IdempotencyRecord>, Failure>;

/// Records by their keys, each of which may not be one.
pub(crate) type Records = HashMap<String, Result<IdempotencyRecord, Failure>>;

pub(crate) fn records<'r>(
    config: &Config,
    rows: impl Iterator<Item = &'r Row>,
) -> Result<Records, Failure> {
    let corrupt = |problem| error::corrupt(config, problem);
    let record = |row| {
        let key = key(row).map_err(corrupt)?;
        Ok((key.as_str().to_owned(), decode(row).map_err(corrupt)))
    };
    rows.map(record).collect()
}

impl PostgresStore {
    /// Reads each key. The answers are in the order of `wanted`.
    pub(crate) async fn read_all(
        &self,
        wanted: &[Key],
        call_deadline: Timestamp,
    ) -> Vec<Result<Option<IdempotencyRecord>, StoreError>> {
        let budget = budget(&self.config, call_deadline);
        let mut unique: Vec<&Key> = wanted.iter().collect();
        unique.sort_unstable();
        unique.dedup();
        let mut answers: HashMap<&Key, Answer> = HashMap::new();
        unique.retain(|key| match fit_key(&self.config, key) {
            Ok(()) => true,
            Err(failure) => answers.insert(key, Err(failure)).is_some(),
        });
        for chunk in unique.chunks(MOST) {
            match self.read_chunk(chunk, &budget).await {
                Ok(mut found) => {
                    let mut answer = |key: &Key| found.remove(key.as_str()).transpose();
                    answers.extend(chunk.iter().copied().zip(chunk.iter().map(|key| answer(key))));
                }
                Err(failure) => {
                    answers.extend(chunk.iter().map(|key| (*key, Err(failure.clone()))));
                }
            }
        }
        let missing = || Err(error::too_late(&self.config));
        let answer = |key| answers.get(key).cloned().unwrap_or_else(missing);
        wanted.iter().map(|key| answer(key).map_err(|failure| failure.report(false))).collect()
    }

    async fn read_chunk(&self, chunk: &[&Key], budget: &Budget<'_>) -> Result<Records, Failure> {
        let parameters = vec![keys(chunk.iter().map(|key| key.as_str()))];
        let statement = Statement::new(&*self.statements.read, parameters);
        let rows = self.ask_with("read", MANY, statement, budget).await?;
        records(&self.config, rows.iter())
    }

    /// Sends a statement until it is answered, or the budget ends.
    pub(crate) async fn ask(
        &self,
        operation: &'static str,
        statement: Statement<'_>,
        budget: &Budget<'_>,
    ) -> Result<Vec<Row>, Failure> {
        self.ask_with(operation, "", statement, budget).await
    }

    /// As [`ask`](Self::ask), with these settings for the planner.
    pub(crate) async fn ask_with(
        &self,
        operation: &'static str,
        planning: &str,
        statement: Statement<'_>,
        budget: &Budget<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let doing = Doing { config: &self.config, purpose: Purpose::Claim, operation };
        let mut backoff = backoff(&self.config);
        let statements = [statement];
        loop {
            if budget.left().is_zero() {
                return Err(error::too_late(&self.config));
            }
            match self.transaction(doing, planning, &statements, budget).await {
                Ok(rows) => return Ok(rows.into_iter().flatten().collect()),
                Err(failure) if failure.retry && backoff.pause(budget).await => {
                    tracing::debug!(table = %self.config.table.name(), kind = ?failure.kind(), "asking again");
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}
