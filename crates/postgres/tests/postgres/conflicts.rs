//! Transactions that the server gives up because of others (`40P01`, `40001`) are sent again, and never applied twice.

use std::time::Duration;

use lambda_idempotency_core::{
    effects::RefusalReason,
    record::Status,
    store::{Store as _, Verdict},
};
use lambda_idempotency_postgres::{Isolation, PostgresStatement};
use lambda_idempotency_testkit::tcp::TcpProxy;

use crate::{
    crowded::Lock,
    effects::{Counts, with},
    servers::{Server, postgres_url},
    table::{AT_COMMIT, name_of, new_store, new_table, tries, trigger},
    writes::{claim, complete, in_secs, one, stored, written, wrote},
};

/// Makes the server refuse the first so many transactions that insert into the table, by this error: at the statement,
/// or at `COMMIT`. Returns the sequence that counts how many there were.
async fn refuse_the_first(url: &str, table: &str, most: u32, code: &str, when: &str) -> String {
    let body = format!(
        "IF nextval('{{tries}}') <= {most} THEN RAISE EXCEPTION 's3cr3t' USING ERRCODE = '{code}'; END IF;"
    );
    trigger(url, table, when, &body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_of_a_transaction_that_the_server_gave_up_are_committed_once() {
    let server = Server::shared_postgres();
    let store = new_store(&server.url()).await;
    let ways = ["AFTER INSERT", AT_COMMIT];
    for (code, when) in ways.iter().flat_map(|when| ["40001", "40P01"].map(|code| (code, *when))) {
        let counts = Counts::new(&server.url()).await;
        let attempts = refuse_the_first(&counts.url, &counts.table, 1, code, when).await;
        let name = format!("{code}-{when}");
        wrote(&*store, claim(&name, 1)).await;
        wrote(&*store, counts.counted(&name, 1)).await;
        assert_eq!(counts.of(&name).await, 1, "{name}");
        assert_eq!(stored(&*store, &name).await.unwrap().status, Status::Completed, "{name}");
        let tried = tries(&counts.url, &attempts).await;
        assert_eq!(tried, Some(2), "{name}: one was refused, and one was not");
    }
}

/// As Aurora DSQL does, which knows of a conflict only then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_whose_commit_was_refused_are_written_again() {
    let server = Server::shared_postgres();
    let table = new_table(&server.url()).await;
    let attempts = refuse_the_first(&server.url(), &name_of(&table), 3, "40001", AT_COMMIT).await;
    let store = table.build().unwrap();
    let verdicts = store.write(&[claim("a", 1), claim("b", 2)], in_secs(20)).await;
    verdicts.iter().for_each(written);
    let tried = tries(&server.url(), &attempts).await;
    assert!(tried.is_some_and(|tried| tried >= 4), "{tried:?}");
    for name in ["a", "b"] {
        assert_eq!(stored(&store, name).await.unwrap().status, Status::InProgress);
    }
}

/// Two handlers change the same two rows in opposite orders, at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_that_wait_for_each_other_in_a_circle_are_both_committed_once() {
    let server = Server::postgres(&["fsync=off", "deadlock_timeout=50ms"]);
    let counts = Counts::new(&server.url()).await;
    counts.ask(&format!("INSERT INTO {} VALUES ('x', 0), ('y', 0)", counts.table)).await;
    let table = new_table(&server.url()).await.attempt_timeout(Duration::from_secs(4));
    let store = table.build().unwrap();
    for round in 0..5u128 {
        let names = ["x", "y"].map(|name| format!("{round}-{name}"));
        for (by, name) in (1..).zip(&names) {
            wrote(&store, claim(name, by)).await;
        }
        let pause = || PostgresStatement::new("SELECT pg_sleep(0.1)");
        let (x, y) = (|| counts.adding_one("x"), || counts.adding_one("y"));
        let first = with(complete(&names[0], 1), [x(), pause(), y()]);
        let second = with(complete(&names[1], 2), [y(), pause(), x()]);
        let (first, second) =
            tokio::join!(one(&store, first, in_secs(20)), one(&store, second, in_secs(20)));
        written(&first);
        written(&second);
    }
    assert_eq!((counts.of("x").await, counts.of("y").await), (10, 10));
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let met = counts.ask(deadlocks).await;
    assert!(met.is_some_and(|met| met > 0), "the test met no deadlock: {met:?}");
}

/// Two sessions see that both of two may go, and each lets another one go. The second learns of the conflict at its
/// `COMMIT`; it decides anew, on the same connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_that_the_server_gives_up_at_their_commit_are_decided_anew_on_the_same_connection()
{
    let server = Server::shared_postgres();
    let counts = Counts::new(&server.url()).await;
    let table = &counts.table;
    counts.ask(&format!("INSERT INTO {table} VALUES ('a', 1), ('b', 1)")).await;
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let store = new_table(&postgres_url(proxy.address())).await.isolation(Isolation::Serializable);
    let store = store.build().unwrap();
    wrote(&store, claim("a", 1)).await;
    let (lock, before) = (Lock::hold(&server.url()).await, proxy.connections());
    let goes = |name: &str| {
        let both = format!("(SELECT sum(n) FROM {table}) = 2");
        format!("UPDATE {table} SET n = 0 WHERE name = '{name}' AND {both}")
    };
    let effects = [PostgresStatement::new(goes("a")).expect_rows(1), lock.effect()];
    let other = async {
        lock.is_waited_for().await;
        let goes = format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {}; COMMIT", goes("b"));
        counts.ask(&goes).await;
        drop(lock);
    };
    let write = one(&store, with(complete("a", 1), effects), in_secs(60));
    match tokio::join!(write, other).0 {
        Verdict::EffectRefused(refused) => {
            let told = (refused.reason(), refused.position());
            assert_eq!(told, (RefusalReason::ConditionFailed, Some(0)), "{refused}");
        }
        other => panic!("it has seen what the other did: {other:?}"),
    }
    assert_eq!((counts.of("a").await, counts.of("b").await), (1, 0));
    assert_eq!(proxy.connections(), before, "the connection is as good as before");
}
