//! Pages of all records, or of those in which something is left, in the order of their keys; and the removal of those that
//! have expired, which PostgreSQL does not do by itself.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left, Page, PageBuilder},
    clock::{BoxFuture, Timestamp},
    key::Key,
    store::{Extent, Guard, RecordVersion, StoreError},
};
use tokio_postgres::{Row, types::Type};

use crate::{
    connection::Statement,
    error::{self, Failure},
    guard::guard_values,
    item::{Columns, decode, key, millis, number, text},
    limits::{Budget, budget},
    statements::{Change, MANY},
    store::PostgresStore,
};

impl PostgresStore {
    async fn page_after(
        &self,
        page: &str,
        after: Option<&Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> Result<Page, Failure> {
        let budget = budget(&self.config, call_deadline);
        // No key is empty, so all come after the empty one.
        let after = after.map_or("", Cursor::as_str).to_owned();
        let most = u64::try_from(limit.get()).unwrap_or(u64::MAX);
        let most_rows = number(i64::try_from(most).unwrap_or(i64::MAX));
        let parameters = vec![(Box::new(after) as _, Type::TEXT), most_rows];
        let statement = Statement::new(page, parameters);
        let rows = self.ask("list", statement, &budget).await?;
        let corrupt = |problem| error::corrupt(&self.config, problem);
        let mut page = PageBuilder::new(limit);
        for row in &rows {
            page.add(key(row).map_err(corrupt)?, decode(row).map(Some).map_err(corrupt))?;
        }
        // There may be others behind the limit, and those that had no room are.
        let of_limit = rows.first().map_or(0, |row| counted(row, row.len().saturating_sub(1)));
        let has_next = of_limit == most || u64::try_from(rows.len()).is_ok_and(|n| n < of_limit);
        Ok(page.until_last_key(has_next))
    }

    /// Removes the messages from these records, if they are unchanged.
    async fn mark_all(
        &self,
        records: &[&(Key, RecordVersion)],
        budget: &Budget<'_>,
    ) -> Result<(), Failure> {
        let mut columns = Columns::default();
        for (key, seen) in records {
            let guard = guard_values(&Guard::Unchanged(seen.clone()));
            let key = std::iter::once(text(Some(key.as_str())));
            columns.push(key.chain(guard.into_iter().flatten()));
        }
        let (parameters, are_arrays) = columns.parameters();
        let text = self.statements.change(Change::Update(Extent::Outbox), &are_arrays);
        self.ask_with("write to", MANY, Statement::new(text, parameters), budget).await?;
        Ok(())
    }

    async fn count_all(&self, call_deadline: Timestamp) -> Result<u64, Failure> {
        let budget = budget(&self.config, call_deadline);
        let statement = Statement::new(&*self.statements.count, vec![]);
        let rows = self.ask("count", statement, &budget).await?;
        Ok(rows.first().map_or(0, |row| counted(row, 0)))
    }
}

/// The number in this column.
pub(crate) fn counted(row: &Row, column: usize) -> u64 {
    row.try_get::<_, i64>(column).ok().and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}

/// The answer to the caller, with an error for a failure.
fn told<'a, T>(
    call: impl Future<Output = Result<T, Failure>> + Send + 'a,
) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(async move { call.await.map_err(|failure| failure.report(false)) })
}

impl Browse for PostgresStore {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        told(self.page_after(&self.statements.page, after, limit, call_deadline))
    }

    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        let [messages, work] = &self.statements.left;
        let statement = match left {
            Left::Messages => messages,
            Left::Work => work,
        };
        told(self.page_after(statement, after, limit, call_deadline))
    }

    fn mark_sent<'a>(
        &'a self,
        records: &'a [(Key, RecordVersion)],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), StoreError>>> {
        Box::pin(async move {
            let budget = budget(&self.config, call_deadline);
            // Rows are locked in the order of their keys.
            let mut sorted: Vec<_> = records.iter().collect();
            sorted.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            let marked = self.mark_all(&sorted, &budget).await;
            let marked = marked.map_err(|failure| failure.report(false));
            records.iter().map(|_| marked.clone()).collect()
        })
    }

    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        told(self.count_all(call_deadline))
    }
}

/// How long a record stays after its expiry: it still counts within the clock skew of workers.
const MARGIN: Duration = Duration::from_secs(3600);

impl PostgresStore {
    /// Deletes up to `most` records that expired more than an hour ago, by the server's clock and by the store's, so that
    /// neither of them deletes anything early, and returns how many it deleted: fewer than `most` if none are left. It takes the records of nine minutes after those of the nine
    /// minutes before, once all of them expired more than an hour ago.
    ///
    /// Expired records have no effect, so this only frees their space. Call it regularly, for instance from a
    /// function on a schedule, until it returns less than `most`; 1,000 at a time keep each transaction
    /// short. Calls at the same time delete different records, and rows that a worker has locked are left for
    /// the next call.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use lambda_idempotency_core::{clock::{Clock, SystemClock}, store::StoreError};
    /// # use lambda_idempotency_postgres::PostgresStore;
    /// # async fn sweep(store: PostgresStore) -> Result<(), StoreError> {
    /// let most = 1_000.try_into().expect("1,000 is not 0");
    /// let deadline = SystemClock.now().plus(Duration::from_secs(60));
    /// while store.sweep(most, deadline).await? == u64::from(most.get()) {}
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server did not answer until `call_deadline`, or refused.
    pub async fn sweep(
        &self,
        most: NonZeroU32,
        call_deadline: Timestamp,
    ) -> Result<u64, StoreError> {
        let budget = budget(&self.config, call_deadline);
        let margin = i64::try_from(MARGIN.as_millis()).unwrap_or(i64::MAX);
        let now = millis(self.config.timing.clock.now());
        let parameters = vec![number(margin), number(most.get().into()), number(now)];
        let statement = Statement::new(&*self.statements.sweep, parameters);
        let rows = self.ask("sweep", statement, &budget).await;
        let rows = rows.map_err(|failure| failure.report(true))?;
        Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX))
    }
}
