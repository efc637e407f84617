//! The check of the server when a store is built.

use std::time::Duration;

use lambda_idempotency_core::{clock::Timestamp, store::StoreError};

use crate::{
    browse::counted,
    config::PostgresConfigError,
    connection::Statement,
    error::{self, Failure},
    item::keys,
    limits::{Budget, budget},
    store::PostgresStore,
};

/// How long the server is tried to reach.
const START: Duration = Duration::from_secs(5);

/// The statements and the table need 12, which nobody maintains any more.
const OLDEST: i64 = 130_000;

/// The time in milliseconds since 1970.
const TIME: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

impl PostgresStore {
    /// Connects to the server and checks that it can keep idempotency records: it accepts the login, is PostgreSQL
    /// 13 or later, has a database with the encoding `UTF8`, and the table with all its columns, which the role may write and
    /// from which no row security hides anything, its primary key, and a session that may write, and does not forget what it has confirmed (`fsync` and `synchronous_commit` are on, and neither the table nor a partition
    /// of it is `UNLOGGED`). A failure that may pass is tried again for up to five seconds.
    ///
    /// Call it once, before the runtime starts: then a function that cannot work does not start. Without it the
    /// first calls report the same, except that the server may forget.
    ///
    /// # Errors
    /// [`PostgresConfigError::Server`]
    pub async fn check(&self) -> Result<(), PostgresConfigError> {
        let budget = budget(&self.config, self.config.timing.clock.now().plus(START));
        let checked = self.check_all(&budget).await;
        checked.map_err(|failure| PostgresConfigError::Server(failure.report(false)))
    }

    /// The time by the server's clock. A worker does not need it: stores decide by their own
    /// [`clock`](crate::PostgresStoreBuilder::clock). A tool on a machine whose clock may be wrong does.
    ///
    /// # Errors
    /// The server did not answer until `call_deadline`, or refused.
    pub async fn server_time(&self, call_deadline: Timestamp) -> Result<Timestamp, StoreError> {
        let budget = budget(&self.config, call_deadline);
        let asked = self.ask("ask", Statement::new(TIME, vec![]), &budget).await;
        let rows = asked.map_err(|failure| failure.report(false))?;
        let millis = rows.first().map_or(0, |row| counted(row, 0));
        Ok(Timestamp::from_millis(millis))
    }

    async fn check_all(&self, budget: &Budget<'_>) -> Result<(), Failure> {
        // Reading no key finds out whether the table has all columns.
        let parameters = vec![keys(std::iter::empty())];
        let read = Statement::new(&*self.statements.read, parameters);
        self.ask("read", read, budget).await?;
        let check = Statement::new(&*self.statements.check, vec![]);
        let rows = self.ask("read", check, budget).await?;
        let unfit = |why| Err(error::unfit(&self.config, why));
        let Some(row) = rows.first() else { return unfit("the server says nothing of itself") };
        let number = |column| row.try_get::<_, i64>(column).unwrap_or_default();
        let flag = |column| row.try_get::<_, bool>(column).unwrap_or_default();
        if number(0) < OLDEST {
            return unfit("the server is older than PostgreSQL 13; update it");
        }
        let needed = [
            "the server has `fsync` or `synchronous_commit` off, so it may forget that work was done; turn them on, the \
             latter also by ALTER ROLE ... SET synchronous_commit = on",
            "the role needs SELECT, INSERT, UPDATE and DELETE on the table; grant them",
            "the table, or a partition of it, is UNLOGGED or temporary, so the server empties it after a crash, and work \
             that was done runs again; turn it into a permanent one by ALTER TABLE ... SET LOGGED",
            "the table has no primary key, so that two workers could have one key; add it by ALTER TABLE ... ADD PRIMARY \
             KEY (key)",
            "row security may hide or refuse records of the role; disable it for the table, or let the role pass it by \
             ALTER ROLE ... BYPASSRLS",
        ];
        let missing = (1_usize..).zip(needed).find(|(column, _)| !flag(*column));
        missing.map_or(Ok(()), |(_, why)| unfit(why))
    }
}
