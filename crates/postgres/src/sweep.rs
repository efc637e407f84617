//! Removes expired records, which PostgreSQL does not do by itself.

use std::{num::NonZeroU32, time::Duration};

use lambda_idempotency_core::{clock::Timestamp, store::StoreError};

use crate::{
    connection::Statement, parameters::number, retry::budget, row::millis, store::PostgresStore,
};

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
