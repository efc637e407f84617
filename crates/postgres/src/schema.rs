//! The table: its migrations, which the crate contains.

use std::time::Duration;

use lambda_idempotency_core::{clock::Timestamp, request_slots::Purpose, store::StoreError};

use crate::{
    config::{PostgresConfigError, Table},
    error::{self, Doing, Failure, failure},
    limits::budget,
    store::PostgresStore,
};

/// The migrations, in order. Each can be applied again, and is never changed once it was released.
const MIGRATIONS: [&str; 2] =
    [include_str!("migrations/0001_records.sql"), include_str!("migrations/0002_unfinished.sql")];

/// Creating an index on a large table takes longer than a request may.
const PATIENCE: Duration = Duration::from_secs(600);

impl PostgresStore {
    /// The statements that create a table of this name, for your own tool for migrations. They can be
    /// applied again, and to a table of an earlier version.
    ///
    /// ```
    /// use lambda_idempotency_postgres::PostgresStore;
    ///
    /// let schema = PostgresStore::schema("orders.idempotency")?;
    /// assert!(schema.contains("CREATE TABLE IF NOT EXISTS \"orders\".\"idempotency\""));
    /// # Ok::<(), lambda_idempotency_postgres::PostgresConfigError>(())
    /// ```
    ///
    /// # Errors
    /// [`PostgresConfigError::UnfitTable`]
    pub fn schema(table: &str) -> Result<String, PostgresConfigError> {
        Ok(text(&Table::parse(table)?))
    }

    /// Creates the table of this store, or brings it to this version. Does nothing if it is as it should
    /// be. Needs `CREATE` on the schema; the store itself does not.
    ///
    /// Run it when you deploy, not in the function: several at once wait for each other.
    ///
    /// An index that a large table of an earlier version does not have yet is built in this transaction, and **claims and
    /// completions wait for that**. To avoid it, first send the statement of the index in [`schema`](Self::schema)
    /// yourself, as `CREATE INDEX CONCURRENTLY IF NOT EXISTS`, outside a transaction.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use lambda_idempotency_core::clock::{Clock, SystemClock};
    /// # use lambda_idempotency_postgres::PostgresStore;
    /// # async fn migrate() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = PostgresStore::builder("postgres://owner@db.example.com/orders").build()?;
    /// store.migrate(SystemClock.now().plus(Duration::from_secs(60))).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server did not answer until `call_deadline`, or refused.
    pub async fn migrate(&self, call_deadline: Timestamp) -> Result<(), StoreError> {
        let migrated = self.migrate_once(call_deadline).await;
        migrated.map_err(|failure| failure.report(false))
    }

    async fn migrate_once(&self, call_deadline: Timestamp) -> Result<(), Failure> {
        let purpose = Purpose::Claim;
        let doing = Doing { config: &self.config, purpose, operation: "create or alter" };
        let budget = budget(&self.config, call_deadline);
        let limit = budget.left().min(PATIENCE);
        if limit.is_zero() {
            return Err(error::too_late(&self.config));
        }
        let slot = self.slot(doing, limit, &budget, || limit).await?;
        let connection = self.connection(doing, Duration::ZERO, &budget).await?;
        let mut lease = self.pool.lease(connection, slot, Duration::ZERO);
        // Two sessions that create the same table at once would fail.
        let text = format!(
            "BEGIN; SELECT pg_advisory_xact_lock({LOCK}); {} COMMIT",
            text(&self.config.table)
        );
        let answer = budget.attempt(limit, lease.connection.batch(&text)).await;
        answer
            .map_err(|late| error::timed_out(doing, late))?
            .map_err(|error| failure(doing, &error))?;
        lease.give_back(&self.config);
        Ok(())
    }
}

/// The lock of migrations: any number that nobody else uses.
const LOCK: i64 = 0x6964_656d_706f_7465;

fn text(table: &Table) -> String {
    let migrations = MIGRATIONS.map(|migration| {
        let of_table = migration.replace("{table}", &table.to_string());
        let with_index = of_table.replace("{index}", &table.index("sweep_slot"));
        with_index.replace("{unfinished}", &table.index("unfinished"))
    });
    migrations.concat()
}
