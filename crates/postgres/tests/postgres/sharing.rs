//! Nothing stays on a connection of the server: PgBouncer gives it to another client after each transaction.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use lambda_idempotency_core::store::{Store as _, Verdict};
use lambda_idempotency_postgres::PostgresStatement;
use tracing::span::{Attributes, Id, Record};

use crate::{
    effects::{Counts, with},
    servers::Server,
    table::new_table,
    writes::{claim, complete, in_secs, key, one, wrote},
};

/// Clients share two connections. Their effects return values of a type that the driver does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_share_connections_do_not_meet_each_other_s_statements() {
    let server = Server::postgres(&["fsync=off"]);
    let pooler = Server::pgbouncer(&server, "", "");
    let counts = Counts::new(&server.url()).await;
    let table = &counts.table;
    counts
        .ask(&format!(
            "CREATE TYPE {table}_mood AS ENUM ('glad'); CREATE TABLE {table}_moods (mood {table}_mood)"
        ))
        .await;
    let feel = || {
        let text = format!("INSERT INTO {table}_moods VALUES ('glad') RETURNING mood");
        PostgresStatement::new(text).expect_rows(1)
    };
    let builder = new_table(&pooler.url()).await.attempt_timeout(Duration::from_secs(5));
    let stores: Vec<_> = (0..8).map(|_| builder.clone().build().unwrap()).collect();
    for round in 0..3u128 {
        let work = stores.iter().enumerate().map(async |(client, store)| {
            let name = format!("{round}-{client}");
            wrote(store, claim(&name, 1)).await;
            wrote(store, with(complete(&name, 1), [feel(), feel()])).await;
            assert!(store.read(&[key(&name)], in_secs(30)).await[0].as_ref().unwrap().is_some());
        });
        futures_util::future::join_all(work).await;
        // The server ends all connections of PgBouncer, which opens others.
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let ended = counts.ask(end).await;
        assert!(ended.is_some_and(|ended| ended > 0), "round {round}: {ended:?}");
    }
    let felt = counts.ask(&format!("SELECT count(*) FROM {table}_moods")).await;
    assert_eq!(felt, Some(48));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_setting_statement_or_lock_stays_on_a_connection() {
    let server = Server::postgres(&["fsync=off"]);
    let pooler = Server::pgbouncer(&server, "", "");
    let counts = Counts::new(&server.url()).await;
    // This sends all that a store sends: migrations, writes, effects, reads.
    let store = new_table(&pooler.url()).await.build().unwrap();
    wrote(&store, claim("a", 1)).await;
    wrote(&store, counts.counted("a", 1)).await;
    store.read(&[key("a")], in_secs(30)).await[0].as_ref().unwrap();
    store.sweep(10.try_into().unwrap(), in_secs(30)).await.unwrap();
    // Through PgBouncer, so on the connections that the store used.
    let shared = Counts::new(&pooler.url()).await;
    for (question, answer) in [
        ("SELECT count(*) FROM pg_prepared_statements", 0),
        ("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", 0),
        ("SELECT count(*) FROM pg_settings WHERE source = 'session' AND name LIKE '%timeout'", 0),
        ("SELECT count(*) FROM pg_listening_channels()", 0),
        ("SELECT count(*) FROM pg_cursors", 0),
    ] {
        for _ in 0..4 {
            assert_eq!(shared.ask(question).await, Some(answer), "{question}");
        }
    }
}

/// Then the statements cannot be ended that SQL has prepared. All else is removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_setting_or_role_stays_on_a_connection_of_a_database_without_plpgsql() {
    let server = Server::postgres(&["fsync=off"]);
    let direct = Counts::new(&server.url()).await;
    direct.ask("DROP EXTENSION plpgsql; CREATE ROLE tenant").await;
    let pooler = Server::pgbouncer(&server, "", "default_pool_size = 1");
    let shared = Counts::new(&pooler.url()).await;
    let store = new_table(&pooler.url()).await.build().unwrap();
    let warnings = Warnings::default();
    // With one subscriber alone, `tracing` leaves a line out for all that a thread without one reaches first.
    let _another = tracing::Dispatch::new(Warnings::default());
    let _heard = tracing::subscriber::set_default(warnings.clone());
    let leaves = || {
        let texts = ["SET orders.tenant = 'a'", "SET ROLE tenant", "LISTEN something"];
        texts.map(PostgresStatement::new)
    };
    let fails = || PostgresStatement::new("SELECT 1").expect_rows(0);
    for (name, last) in [("committed", None), ("rolled-back", Some(fails()))] {
        wrote(&store, claim(name, 1)).await;
        let write = with(complete(name, 1), leaves().into_iter().chain(last));
        let verdict = one(&store, write, in_secs(30)).await;
        assert_eq!(matches!(verdict, Verdict::Written), name == "committed", "{verdict:?}");
        let left = "SELECT count(*) WHERE current_setting('orders.tenant', true) <> '' \
                    OR current_user <> session_user OR EXISTS (SELECT FROM pg_listening_channels())";
        assert_eq!(shared.ask(left).await, Some(0), "{name}");
        assert_eq!(
            warnings.0.load(Ordering::Relaxed),
            1,
            "each opens a connection, which is said once"
        );
    }
}

/// Counts warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, event: &tracing::Metadata<'_>) -> bool {
        *event.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The calls of the stream are not polled while the body of the loop waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_over_more_calls_than_connections_can_make_others() {
    let server = Server::shared_postgres();
    // A call that is not polled loses its connection after this.
    let table = new_table(&server.url()).await.attempt_timeout(Duration::from_secs(1));
    let store = &table.build().unwrap();
    let run = |n: u32| async move {
        let name = format!("stream-{n}");
        wrote(store, claim(&name, 1)).await;
        wrote(store, complete(&name, 1)).await;
    };
    let mut calls = stream::iter(0..20).map(run).buffer_unordered(10);
    let mut n = 0;
    while let Some(()) = calls.next().await {
        n += 1;
        let verdict = one(store, claim(format!("body-{n}"), 1), in_secs(60)).await;
        assert!(matches!(verdict, Verdict::Written), "{n}: {verdict:?}");
    }
}
