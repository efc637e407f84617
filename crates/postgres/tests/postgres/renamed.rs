//! Statements that the server keeps behind a PgBouncer that gives them names of its own. Debian 12 has an older one.

use std::{error::Error as _, sync::Arc};

use lambda_idempotency_core::store::StoreErrorKind;

use crate::{
    conformance::conforms_in,
    effects::Counts,
    pgbouncer::{PgBouncer, version},
    server::Postgres,
    table::{claim, complete, completed, in_secs, new_table, one, stored, unknown, written},
};

/// A PgBouncer that keeps the statements of its clients apart.
fn renaming(server: &Postgres, more: &str) -> PgBouncer {
    let version = version();
    assert!(version >= (1, 21), "this test needs PgBouncer 1.21 or later, and this is {version:?}");
    PgBouncer::start_with(server, &format!("max_prepared_statements = 20\n{more}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PgBouncer 1.21: `bash tests/run postgres` runs this where it is installed"]
async fn renamed_statements_conform() {
    let pooler = renaming(Postgres::shared(), "");
    let store = new_table(&pooler.url()).await.prepared_statements_through_pgbouncer();
    conforms_in(Arc::new(store.build().unwrap())).await;
}

/// Clients that share two connections, each with a table of its own, prepare statements under the same names. The server
/// ends these connections, or PgBouncer resets them after each transaction, or keeps fewer statements than there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PgBouncer 1.21: `bash tests/run postgres` runs this where it is installed"]
async fn renamed_statements_of_clients_do_not_meet() {
    for more in ["", "server_reset_query_always = 1", "max_prepared_statements = 1"] {
        let server = Postgres::start_with(&["fsync=off", "log_statement=all"]);
        let pooler = renaming(&server, more);
        let counts = Counts::new(&server.url()).await;
        let mut stores = Vec::new();
        for _ in 0..6 {
            let table = new_table(&pooler.url()).await;
            stores.push(table.prepared_statements_through_pgbouncer().build().unwrap());
        }
        for round in 0..6u128 {
            let work = stores.iter().enumerate().map(async |(client, store)| {
                let by = u128::try_from(client).unwrap() + 1;
                let name = round.to_string();
                written(&one(store, claim(&name, by), in_secs(30)).await);
                written(&one(store, complete(&name, by), in_secs(30)).await);
                let stored = stored(store, &name).await.unwrap();
                assert_eq!(stored.owner, completed(by).owner, "it is in its own table");
            });
            futures_util::future::join_all(work).await;
            if round == 3 {
                let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                           WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
                assert!(counts.ask(end).await > Some(0));
            }
        }
        let log = server.log();
        let kept = |name: &str| log.matches(&format!("execute {name}")).count();
        // Twelve statements for each client: the first of each text is sent as text, also after an error.
        // PgBouncer 1.21 does not see that it has emptied a connection: statements are refused, and sent again as text.
        let is_lost = more.starts_with("server_reset") && version() < (1, 22);
        let least = if is_lost { 1 } else { 6 * 6 };
        assert!(kept("PGBOUNCER_") >= least, "{more}: {} statements", kept("PGBOUNCER_"));
        assert_eq!(kept("s"), 0, "{more}: statements under the names that clients gave them");
    }
}

/// The server's connections outlive those of clients, and with them the statements.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PgBouncer 1.21: `bash tests/run postgres` runs this where it is installed"]
async fn renamed_statements_survive_changes_of_the_table() {
    let server = Postgres::shared();
    let pooler = renaming(server, "");
    let counts = Counts::new(&server.url()).await;
    let table = format!("p{}", counts.table);
    let builder = lambda_idempotency_postgres::PostgresStore::builder(&pooler.url()).table(&table);
    let store = builder.prepared_statements_through_pgbouncer().build().unwrap();
    store.migrate(in_secs(30)).await.unwrap();
    for change in [
        String::new(),
        format!("ALTER TABLE {table} ADD COLUMN note text"),
        format!("ALTER TABLE {table} ALTER COLUMN application TYPE varchar(200)"),
        format!("DROP TABLE {table}"),
    ] {
        counts.ask(&change).await;
        if change.starts_with("DROP TABLE") {
            let error = unknown(one(&store, claim("missing", 1), in_secs(30)).await);
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
            store.migrate(in_secs(30)).await.unwrap();
        }
        for number in 0..8 {
            let name = format!("{}-{number}", change.len());
            written(&one(&store, claim(&name, 1), in_secs(30)).await);
            written(&one(&store, complete(&name, 1), in_secs(30)).await);
        }
    }
}

/// The server itself, and PgBouncer where it passes statements on as they are. Nothing stays on a shared connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn without_a_pgbouncer_that_renames_statements_nothing_is_prepared() {
    let server = Postgres::shared();
    let passing = if version() < (1, 21) { "" } else { "max_prepared_statements = 0" };
    let pooler = PgBouncer::start_with(server, passing);
    for url in [server.url(), pooler.url()] {
        let table = new_table(&url).await.prepared_statements_through_pgbouncer();
        // Twice: what the first left behind would have the name that the second uses.
        for _ in 0..2 {
            let store = table.clone().build().unwrap();
            let refused = store.check().await.unwrap_err();
            let why = refused.source().map(ToString::to_string).unwrap_or_default();
            assert!(why.contains("PgBouncer 1.21 or later"), "{refused}: {why}");
            let error = unknown(one(&store, claim("a", 1), in_secs(10)).await);
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
            assert!(!error.may_have_applied(), "{error}");
        }
    }
    let shared = Counts::new(&pooler.url()).await;
    for _ in 0..4 {
        let left = shared.ask("SELECT count(*) FROM pg_prepared_statements").await;
        assert_eq!(left, Some(0));
    }
}
