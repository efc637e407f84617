//! Statements that the server keeps, on connections that are not shared, and on no others.

use lambda_idempotency_core::store::{Store as _, StoreErrorKind};
use lambda_idempotency_postgres::{PostgresStatement, PostgresStore};

use crate::{
    effects::{Counts, with},
    pgbouncer::PgBouncer,
    server::Postgres,
    table::{claim, complete, in_secs, new_table, one, stored, trigger, unknown, wrote},
};

/// The lines of the log about statements that write to this table, and whether each was kept.
fn writes(server: &Postgres, table: &str) -> Vec<bool> {
    let log = server.log();
    let writes = |line: &str| line.contains(": WITH written AS") || line.contains(": UPDATE ");
    let lines = log.lines().filter(|line| writes(line) && line.contains(table));
    let kept = lines.filter_map(|line| {
        let (_, name) = line.split_once("execute ")?;
        Some(!name.starts_with("<unnamed>"))
    });
    kept.collect()
}

/// A new table, its name, and a store in it that keeps statements, or does not.
async fn keeping(server: &Postgres, is_kept: bool) -> (Counts, String, PostgresStore) {
    let counts = Counts::new(&server.url()).await;
    let table = format!("p{}", counts.table);
    let builder = PostgresStore::builder(&server.url());
    let store = builder.table(&table).prepared_statements(is_kept).build().unwrap();
    store.migrate(in_secs(30)).await.unwrap();
    (counts, table, store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn single_writes_are_kept_after_their_first_use() {
    let server = Postgres::start_with(&["fsync=off", "log_statement=all"]);
    for is_kept in [false, true] {
        let (_counts, table, store) = keeping(&server, is_kept).await;
        for name in ["a", "b", "c"] {
            wrote(&store, claim(name, 1)).await;
            wrote(&store, complete(name, 1)).await;
        }
        let first_use_is_not = [false, false, is_kept, is_kept, is_kept, is_kept];
        assert_eq!(writes(&server, &table), first_use_is_not);
    }
}

/// The plan of a kept statement has to follow the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn a_kept_statement_survives_changes_of_the_table() {
    let server = Postgres::shared();
    let (counts, table, store) = keeping(server, true).await;
    for (round, change) in [
        String::new(),
        format!("ALTER TABLE {table} ADD COLUMN note text"),
        format!("ALTER TABLE {table} DROP COLUMN note"),
        // The rows of a kept statement would have another type: the server refuses it.
        format!("ALTER TABLE {table} ALTER COLUMN application TYPE varchar(200)"),
        format!("DROP TABLE {table}"),
    ]
    .iter()
    .enumerate()
    {
        counts.ask(change).await;
        if change.starts_with("DROP TABLE") {
            let error = unknown(one(&store, claim("missing", 1), in_secs(30)).await);
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
            store.migrate(in_secs(30)).await.unwrap();
        }
        // The server makes a plan for all values after five uses.
        for number in 0..8 {
            let name = format!("{round}-{number}");
            wrote(&store, claim(&name, 1)).await;
            wrote(&store, complete(&name, 1)).await;
            assert!(stored(&store, &name).await.is_some());
        }
    }
}

/// It is sent as text then, once. What the server says of a text is final: here a trigger of the user uses the same code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn a_kept_statement_that_the_server_has_lost_is_sent_as_text() {
    let server = Postgres::shared();
    let (counts, table, store) = keeping(server, true).await;
    for name in ["a", "b"] {
        wrote(&store, claim(name, 1)).await;
    }
    let lose = "DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$";
    let losing = with(complete("a", 1), [PostgresStatement::new(lose)]);
    wrote(&store, losing).await;
    for name in ["c", "d"] {
        wrote(&store, claim(name, 1)).await;
    }
    for code in ["0A000", "26000"] {
        let refuse = format!("RAISE EXCEPTION 'never' USING ERRCODE = '{code}';");
        let sequence = trigger(&counts.url, &table, "BEFORE INSERT", &refuse).await;
        let error = unknown(one(&store, claim("e", 1), in_secs(5)).await);
        let told = (error.kind(), error.may_have_applied());
        assert_eq!(told, (StoreErrorKind::Refused, false), "{code}: {error}");
        let refuses = sequence.trim_end_matches("_tries");
        counts.ask(&format!("DROP TRIGGER {refuses} ON {table}")).await;
        // So that they are kept again.
        for name in ["f", "g"] {
            wrote(&store, claim(&format!("{name}{code}"), 1)).await;
        }
    }
}

/// The second one passes what clients ask for to nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn behind_a_proxy_that_shares_connections_nothing_is_prepared() {
    let server = Postgres::shared();
    for setting in ["", "ignore_startup_parameters = options"] {
        let pooler = PgBouncer::start_with(server, setting);
        let store = new_table(&pooler.url()).await.prepared_statements(true).build().unwrap();
        let refused = store.check().await.unwrap_err();
        let why = std::error::Error::source(&refused).map(ToString::to_string).unwrap_or_default();
        assert!(why.contains("leave `prepared_statements` off"), "{refused}: {why}");
        let error = unknown(one(&store, claim("a", 1), in_secs(10)).await);
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        assert!(!error.may_have_applied(), "{error}");
        let verdicts = store.read(&[crate::table::key("a")], in_secs(10)).await;
        assert!(verdicts.iter().all(Result::is_err), "{verdicts:?}");
    }
}
