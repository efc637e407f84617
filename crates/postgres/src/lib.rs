//! Keeps idempotency records in PostgreSQL.
//!
//! ```no_run
//! use lambda_idempotency_postgres::PostgresStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = PostgresStore::builder("postgres://orders@orders.abc123.eu-west-1.rds.amazonaws.com/orders")
//!     .password(|| async { Ok::<_, std::io::Error>(String::from("from AWS Secrets Manager")) })
//!     .build()?;
//! store.check().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What it can do
//!
//! | | |
//! |---|---|
//! | [Effects](lambda_idempotency_core::effects), committed with the completion | yes: [`PostgresEffects`], SQL statements |
//! | Messages of an [outbox](lambda_idempotency_core::outbox), stored with the completion | yes, in the record |
//! | The server removes expired records | no: call [`PostgresStore::sweep`] regularly |
//! | [Listing records](lambda_idempotency_core::browse::Browse) | yes, in the order of their keys |
//! | Writes of a call | one transaction of up to 1,000 writes in one round trip |
//! | A guard is compared | by the server, in the statement that writes |
//! | Reads see the latest write | yes |
//! | The largest record | 16 MiB |
//! | The time that decides | the worker's, by its [`clock`](PostgresStoreBuilder::clock); for sweeping the earlier one of the sweeper's and the server's |
//! | A write that was confirmed survives the loss of a server | yes, if a replica is synchronous; on RDS Multi-AZ and Aurora it is |
//! | A failover means | calls are repeated until their deadline; to an asynchronous replica, the last writes are lost |
//!
//! # The server
//!
//! PostgreSQL 13 or later: RDS, Aurora or your own, directly or through PgBouncer in transaction mode. The suite runs
//! on PostgreSQL 15 and PgBouncer 1.18 of Debian, and was run by hand on PostgreSQL 13, 14, 16, 17 and 18, and with PgBouncer
//! 1.21, 1.24 and 1.26. The encoding of the database has to be `UTF8`, which each new connection checks. `fsync` and `synchronous_commit` have to be on, or the
//! server forgets in a crash what it has confirmed; [`PostgresStore::check`] refuses it otherwise.
//!
//! **Settings of a pooler**, by `connect_query` of PgBouncer or the initialization query of RDS Proxy, do not survive an operation
//! with effects: the `RESET ALL` after its transaction removes them from a connection that others share. Set them by
//! `ALTER ROLE .. SET` or `ALTER DATABASE .. SET`, and name the table `SCHEMA.TABLE`.
//!
//! **What an administrator has set counts.** A session that is read-only, on a standby or by `default_transaction_read_only`, is
//! refused for reads as well: nothing is written into a database that moves to another server. Transactions are as isolated
//! as `default_transaction_isolation` says, effects included. Above `READ COMMITTED` the server gives up one of two that
//! meet, and the store repeats it; [`PostgresStoreBuilder::isolation`] chooses a level for this store.
//!
//! **A synchronous standby that is gone** stops each `COMMIT`, and it goes on waiting when its client has given up: the
//! connections of the server fill up. `client_connection_check_interval` ends that wait once the client has closed its connection,
//! which a store does when a request runs into its limit; the transaction is committed then, and was in doubt.
//!
//! With **asynchronous replication**, a failover may lose the last writes: a claim that is lost leaves its key free
//! while its handler runs, and a completion that is lost lets the next delivery run the handler again.
//!
//! ## RDS Proxy
//!
//! It has not been tested. It gives a connection of the server to another client after each transaction, unless it has
//! *pinned* it to a client. [AWS says][pinning] that these pin connections of PostgreSQL:
//!
//! | it pins | this store |
//! |---|---|
//! | `SET` of a setting of the session | sends none; each transaction has up to six `SET LOCAL` |
//! | `RESET`, `DISCARD` | sends them after each transaction with effects, so an operation that is transactional pins, and loses what the initialization query has set |
//! | `PREPARE`, `DEALLOCATE`, `EXECUTE` | sends none, and prepares nothing by name in the protocol |
//! | cursors, temporary tables, `LISTEN`, libraries, sequences | uses none |
//! | advisory locks of the session | uses none; `migrate` has one of its transaction |
//! | a statement of more than 16 KB | has none; values are parameters |
//!
//! A test asks the connections behind a PgBouncer: no setting, statement, lock or cursor stays on them. `SET LOCAL` pins
//! [for the time of its transaction][local], in which the connection is not shared anyway. The metric
//! `DatabaseConnectionsCurrentlySessionPinned` shows what is pinned: such a connection works, and saves none.
//!
//! [pinning]: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-proxy-pinning.html
//! [local]: https://github.com/aws/agent-toolkit-for-aws/blob/main/skills/specialized-skills/database-skills/rds-oss/references/proxy-pinning-postgresql.md
//!
//! ## Aurora DSQL
//!
//! It is not supported, and [`build`](PostgresStoreBuilder::build) refuses its endpoints. The first column
//! has what this store sends, the second what AWS documents:
//!
//! | this store | Aurora DSQL |
//! |---|---|
//! | a level of isolation, if [you ask for one](PostgresStoreBuilder::isolation) | [`BEGIN` takes only `READ ONLY` or `READ WRITE`][sql]; a transaction sees [one snapshot][occ], so what was found where a guard failed may be old |
//! | `SET LOCAL lock_timeout`, `FOR UPDATE` | [no locks][occ]: who commits second gets `40001`. The store repeats a transaction that ends so, also at its `COMMIT` |
//! | `CREATE TABLE` with `COLLATE "C"` | [refuses `COLLATE`][unsupported]; C is the only collation |
//! | `CREATE INDEX`, in one transaction with the table and an advisory lock | [only `CREATE INDEX ASYNC`][unsupported] |
//! | keys of 2 KiB, records of 16 MiB | [keys of 1 KiB, columns of 1 MiB, rows of 2 MiB, transactions of 10 MiB][limits] |
//! | `xmin`, to pass over what the transaction has written | not documented |
//!
//! [sql]: https://docs.aws.amazon.com/aurora-dsql/latest/userguide/working-with-postgresql-compatibility-supported-sql-features.html
//! [occ]: https://docs.aws.amazon.com/aurora-dsql/latest/userguide/working-with-concurrency-control.html
//! [unsupported]: https://docs.aws.amazon.com/aurora-dsql/latest/userguide/working-with-postgresql-compatibility-unsupported-features.html
//! [limits]: https://docs.aws.amazon.com/aurora-dsql/latest/userguide/CHAP_quotas.html
//!
//! # The table
//!
//! [`PostgresStore::migrate`] creates it, and [`PostgresStore::schema`] has its text for your own tool for migrations.
//! A record is a row;
//! instants are milliseconds since 1970, which `to_timestamp(expires_at / 1000.0)` makes readable.
//!
//! Expired records have no effect, and stay until somebody removes them: [`PostgresStore::sweep`], in batches, by an
//! index of the nine minutes in which they expire. Without it the table grows.
//!
//! # Permissions
//!
//! The role of the function needs `SELECT`, `INSERT`, `UPDATE` and `DELETE` on the table, and nothing else. To
//! [look](PostgresStoreBuilder::read_only) at records, `SELECT` is enough.
//!
//! # How it writes
//!
//! * **All writes of a call** are one transaction of a statement with arrays for each kind of write, up to 1,000 writes in
//!   it, and all its messages are sent at once: one round trip. It answers with the records of the keys that were to be new and
//!   are not. Where another guard fails, the records are read in a second one. A value that is the same in all rows is sent once.
//! * **The planner is told** to find each key by the index (`SET LOCAL enable_seqscan = off`, and for batches
//!   `enable_hashjoin` and `enable_mergejoin`). It would read all of a table that is new or small for each batch.
//! * **A completion changes no index**, if it expires in the same nine minutes as its claim: the index that sweeping reads has
//!   those, and pages have room for the new row (`fillfactor`).
//! * **A write with [effects](PostgresEffects)** is a transaction of its own, in two round trips: the record and the
//!   statements, and then `COMMIT` or `ROLLBACK`, which also remove what effects can leave on a connection: settings, a role,
//!   advisory locks, cursors, temporary tables.
//! * **No write waits for another** longer than a statement takes, and none in a circle: rows are locked in the order
//!   of their keys. A row that another transaction holds is waited for (`lock_timeout`), and then each write of the
//!   call is sent again in a transaction of its own.
//! * **The server ends** what this process began, should it be frozen or killed: each transaction sets
//!   `statement_timeout`, `lock_timeout` and `idle_in_transaction_session_timeout`.
//! * **Nothing stays on the server** between transactions: no prepared statement, no setting of the session, no
//!   advisory lock. So a proxy may give each transaction another connection.
//! * **A lost response** (a timeout, a broken connection): the write is sent again on a new connection. If it then
//!   finds the record that it was to write, with its own token, the first request was applied.
//! * **A server that cannot serve now** (it starts, ends, is read-only since a failover, has no connection left): the
//!   request is sent again, with pauses that double from 25 ms to 400 ms, until the deadline of the call.
//! * **Connections** are opened when they are needed, at most four, of which
//!   [one is kept for completions](PostgresStoreBuilder::max_connections). Nothing reads them between calls. A connection that was idle
//!   for 50 seconds is replaced, since a frozen process does not learn that it was closed.
//!
//! # Connections
//!
//! Each execution environment has its own. With [`max_connections`](PostgresStoreBuilder::max_connections) of 4, a
//! function of 200 environments may open 800, and a server of 8 GB has about 900. Put PgBouncer before it, or limit the
//! concurrency of the function.
//!
//! Connections are encrypted, and the server's certificate and name are checked. The certificates of Amazon RDS are not
//! among those of the system: give its bundle to [`root_certificates`](PostgresStoreBuilder::root_certificates).
//!
//! # What is logged
//!
//! The store logs no keys and no content of records, at any level. Errors have the SQLSTATE of the server, and its
//! message where it is not about values. The URL, the user and the password are never shown.
//!
//! # Features
//!
//! * `tls` (default): by rustls, with the cryptography of the AWS SDK. Without it only `?sslmode=disable` connects.

mod browse;
mod builder;
mod check;
mod config;
mod connection;
mod effects;
mod error;
mod guard;
mod item;
mod limits;
mod read;
mod schema;
mod statements;
mod store;
mod transaction;
mod url;
mod write;

pub use crate::{
    builder::PostgresStoreBuilder,
    config::{Isolation, PostgresConfigError},
    effects::{PostgresEffectError, PostgresEffects, PostgresStatement, PostgresValue},
    store::PostgresStore,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
