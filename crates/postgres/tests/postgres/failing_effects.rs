//! Effects that take long, that fail for ever, and that leave something on their connection.

use std::time::Duration;

use lambda_idempotency_core::{
    effects::{RefusalReason, RefusedEffect},
    record::{Owner, Status},
    store::{StoreErrorKind, Verdict},
};
use lambda_idempotency_postgres::PostgresStatement;
use lambda_idempotency_testkit::tcp::{TcpFault, TcpProxy};

use crate::{
    effects::{Counts, with},
    servers::{Server, USER, postgres_url},
    table::{AT_COMMIT, ask, is_contended, name_of, new_table, tries, trigger, while_held},
    writes::{claim, complete, error_of, in_secs, one, stored, unknown, wrote},
};

fn sleeping(seconds: f64) -> PostgresStatement {
    PostgresStatement::new(format!("SELECT pg_sleep({seconds})"))
}

#[track_caller]
fn refused(verdict: Verdict) -> RefusedEffect {
    match verdict {
        Verdict::EffectRefused(refused) => refused,
        other => panic!("a refused effect was expected: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_that_take_longer_than_a_request_are_committed() {
    let server = Server::shared_postgres();
    let table = new_table(&server.url()).await.attempt_timeout(Duration::from_millis(300));
    let store = table.build().unwrap();
    let counts = Counts::new(&server.url()).await;
    let late = Counts::new(&server.url()).await;
    trigger(&late.url, &late.table, AT_COMMIT, "PERFORM pg_sleep(0.9);").await;
    for (name, effects) in [
        ("one", vec![sleeping(0.9), counts.adding_one("one")]),
        // Each takes less than a request, and all of them more.
        (
            "many",
            std::iter::once(counts.adding_one("many"))
                .chain((0..6).map(|_| sleeping(0.2)))
                .collect(),
        ),
        ("commit", vec![counts.adding_one("commit"), late.adding_one("commit")]),
    ] {
        wrote(&store, claim(name, 1)).await;
        wrote(&store, with(complete(name, 1), effects)).await;
        assert_eq!(counts.of(name).await, 1, "{name}");
        assert_eq!(stored(&store, name).await.unwrap().status, Status::Completed, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_for_which_the_call_has_no_time_is_refused_and_a_lost_answer_is_not() {
    let server = Server::shared_postgres();
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let table = new_table(&postgres_url(proxy.address())).await;
    let store = table.attempt_timeout(Duration::from_millis(300)).build().unwrap();
    let counts = Counts::new(&server.url()).await;
    wrote(&store, claim("a", 1)).await;
    let endless = || with(complete("a", 1), [counts.adding_one("a"), sleeping(60.0)]);
    let refused = refused(one(&store, endless(), in_secs(3)).await);
    assert_eq!(refused.position(), Some(1), "{refused}");
    let text = refused.to_string();
    for said in ["effect 2 takes longer", "`attempt_timeout`, 300 ms"] {
        assert!(text.contains(said), "{text}");
    }
    let many: Vec<_> = (0..60).map(|_| sleeping(0.2)).collect();
    let text =
        self::refused(one(&store, with(complete("a", 1), many), in_secs(3)).await).to_string();
    assert!(text.contains("takes longer"), "{text}");
    assert_eq!(counts.of("a").await, 0);
    assert_eq!(stored(&store, "a").await.unwrap().status, Status::InProgress);
    proxy.faults().add(TcpFault::swallow_answers());
    let lost = error_of(one(&store, counts.counted("a", 1), in_secs(3)).await);
    assert_eq!(lost.kind(), StoreErrorKind::Unavailable);
    assert!(!lost.to_string().contains("effect"), "{lost}");
    proxy.faults().clear();
    wrote(&store, counts.counted("a", 1)).await;
}

/// It would be the same answer until the deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_answers_twice_is_a_failure_of_the_handler() {
    let server = Server::shared_postgres();
    let store = new_table(&server.url()).await.build().unwrap();
    for (code, attempts) in [
        ("ZZ001", 1),
        ("XX001", 1),
        ("40001", 2),
        ("40003", 1),
        ("40P01", 2),
        ("55P03", 2),
        ("57014", 2),
        ("57P01", 2),
        ("08006", 2),
        ("53100", 2),
        ("25006", 2),
    ] {
        for at_commit in [false, true] {
            let counts = Counts::new(&server.url()).await;
            let raise = format!(
                "PERFORM nextval('{{tries}}'); RAISE EXCEPTION 's3cr3t' USING ERRCODE = '{code}';"
            );
            let when = if at_commit { AT_COMMIT } else { "AFTER INSERT" };
            let sequence = trigger(&counts.url, &counts.table, when, &raise).await;
            let name = format!("{code}-{at_commit}");
            wrote(&store, claim(&name, 1)).await;
            let effects = [PostgresStatement::new("SELECT 1"), counts.adding_one(&name)];
            let refused = refused(one(&store, with(complete(&name, 1), effects), in_secs(5)).await);
            let told = (refused.reason(), refused.position());
            let position = (!at_commit).then_some(1);
            assert_eq!(told, (RefusalReason::ConditionFailed, position), "{name}: {refused}");
            let text = refused.to_string();
            assert!(text.contains(code) && !text.contains("s3cr3t"), "{name}: {text}");
            assert_eq!(tries(&counts.url, &sequence).await, Some(attempts), "{name}");
            assert_eq!(counts.of(&name).await, 0, "{name}");
            assert_eq!(stored(&store, &name).await.unwrap().status, Status::InProgress, "{name}");
        }
    }
}

/// As an administrator does, or a server that ends: it says nothing of the effect, however often it happens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_ended_again_and_again_is_an_outage_and_no_failure_of_the_handler() {
    let store = new_table(&Server::shared_postgres().url()).await.build().unwrap();
    wrote(&store, claim("a", 1)).await;
    let ends = PostgresStatement::new("SELECT pg_terminate_backend(pg_backend_pid())");
    unknown(
        one(&store, with(complete("a", 1), [ends]), in_secs(3)).await,
        StoreErrorKind::Unavailable,
        false,
    );
    wrote(&store, complete("a", 1)).await;
}

/// The server runs out of room for locks, and not because a function says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_resources_for_an_effect_is_an_outage() {
    let small = ["fsync=off", "max_locks_per_transaction=10", "max_connections=20"];
    let server = Server::postgres(&small);
    let store = new_table(&server.url()).await.build().unwrap();
    let counts = Counts::new(&server.url()).await;
    counts.ask("CREATE SEQUENCE tries").await;
    wrote(&store, claim("a", 1)).await;
    let locks = "SELECT count(pg_advisory_xact_lock(n)) FROM generate_series(1, 100000) n";
    let effects = ["SELECT nextval('tries')", locks].map(PostgresStatement::new);
    let error = error_of(one(&store, with(complete("a", 1), effects), in_secs(12)).await);
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    // The server may still be busy with the last of them.
    wrote(&store, counts.counted("a", 1)).await;
    assert!(counts.ask("SELECT last_value FROM tries").await > Some(2));
}

/// The role may not do all that cleans the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_after_the_commit_does_not_make_it_a_refusal() {
    let server = Server::postgres(&["fsync=off"]);
    let grants = "CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain; \
         REVOKE EXECUTE ON FUNCTION pg_advisory_unlock_all() FROM PUBLIC";
    ask(&server.url(), grants).await;
    let plain = server.url().replace(USER, "plain");
    let store = new_table(&plain).await.build().unwrap();
    // The connection is closed, with the setting that was left on it.
    let leaves = PostgresStatement::new("SELECT set_config('orders.left', 'here', false)");
    let finds = "SELECT 1 WHERE current_setting('orders.left', true) = 'here'";
    let finds_nothing = PostgresStatement::new(finds).expect_rows(0);
    for (name, effect) in [("b", leaves), ("c", finds_nothing)] {
        wrote(&store, claim(name, 1)).await;
        wrote(&store, with(complete(name, 1), [effect])).await;
    }
}

/// Each of them may pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_differ_are_no_failure_of_the_handler() {
    let server = Server::shared_postgres();
    let store = new_table(&server.url()).await.build().unwrap();
    let counts = Counts::new(&server.url()).await;
    let raise = "CASE nextval('{tries}') WHEN 1 THEN RAISE EXCEPTION 'one' USING ERRCODE = '40001'; \
                 WHEN 2 THEN RAISE EXCEPTION 'two' USING ERRCODE = '53100'; ELSE NULL; END CASE;";
    trigger(&counts.url, &counts.table, "AFTER INSERT", raise).await;
    wrote(&store, claim("a", 1)).await;
    wrote(&store, counts.counted("a", 1)).await;
    assert_eq!(counts.of("a").await, 1);
}

/// Where it waits, and where it does not (`NOWAIT`), another routine of the server says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_meets_a_lock_is_contended_and_not_the_handler_s_failure() {
    let server = Server::shared_postgres();
    let table = new_table(&server.url()).await.attempt_timeout(Duration::from_millis(300));
    let store = table.build().unwrap();
    let counts = Counts::new(&server.url()).await;
    let table = &counts.table;
    counts.ask(&format!("INSERT INTO {table} VALUES ('a', 0)")).await;
    wrote(&store, claim("a", 1)).await;
    let texts = [
        "SELECT 1".to_owned(),
        format!("SELECT n FROM {table} WHERE name = 'a' FOR UPDATE NOWAIT"),
        format!("LOCK TABLE {table} IN SHARE MODE NOWAIT"),
    ];
    for text in texts {
        let write = || {
            let takes = PostgresStatement::new(text.as_str());
            with(complete("a", 1), [takes, counts.adding_one("a")])
        };
        let hold = format!("UPDATE {table} SET n = 0");
        while_held(&counts.url, &hold, is_contended(&store, write)).await;
    }
    wrote(&store, counts.counted("a", 1)).await;
    assert_eq!(counts.of("a").await, 1);
}

/// The records after it would be written elsewhere, as somebody else, or be forgotten in a crash.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_an_effect_stays_on_its_connection() {
    let server = Server::postgres(&["fsync=off"]);
    let pooler = Server::pgbouncer(&server, "", "pool_mode = session");
    let shared = Server::pgbouncer(&server, "", "");
    let counts = Counts::new(&server.url()).await;
    counts.ask(&format!("CREATE ROLE {}_other", counts.table)).await;
    for url in [server.url(), pooler.url(), shared.url()] {
        let table = new_table(&url).await;
        let name = name_of(&table);
        let store = table.max_connections(1).build().unwrap();
        let lock = Owner::random().unwrap().to_bits() >> 97;
        let leaves = [
            "SELECT set_config('search_path', 'nowhere', false)".to_owned(),
            "SET synchronous_commit = off".to_owned(),
            format!("SELECT set_config('role', '{}_other', false)", counts.table),
            format!("SELECT pg_advisory_lock({lock})"),
            format!("CREATE TEMP TABLE {name} (key text)"),
            "DECLARE kept CURSOR WITH HOLD FOR SELECT 1".to_owned(),
            "LISTEN something".to_owned(),
            "DO $$ BEGIN EXECUTE 'PREPARE \"left\" AS SELECT 1'; END $$".to_owned(),
        ];
        for (number, text) in leaves.iter().enumerate() {
            let before = format!("{number}-before");
            for fails in [true, false] {
                let name = format!("{number}-{fails}");
                wrote(&store, claim(&name, 1)).await;
                let last = PostgresStatement::new("SELECT 1 WHERE NOT $1").bind(fails);
                let effects = [PostgresStatement::new(text.as_str()), last.expect_rows(1)];
                let verdict = one(&store, with(complete(&name, 1), effects), in_secs(20)).await;
                assert_eq!(matches!(verdict, Verdict::Written), !fails, "{text}: {verdict:?}");
                assert_eq!(matches!(verdict, Verdict::EffectRefused(_)), fails, "{text}");
            }
            wrote(&store, claim(&before, 1)).await;
            let nothing = "SELECT 1 WHERE current_setting('search_path') <> 'nowhere' \
                 AND current_setting('synchronous_commit') = 'on' AND current_user = session_user \
                 AND NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory') \
                 AND NOT EXISTS (SELECT FROM pg_class WHERE relpersistence = 't') \
                 AND NOT EXISTS (SELECT FROM pg_cursors WHERE is_holdable) \
                 AND NOT EXISTS (SELECT FROM pg_prepared_statements WHERE from_sql) \
                 AND NOT EXISTS (SELECT FROM pg_listening_channels())";
            let nothing = PostgresStatement::new(nothing).expect_rows(1);
            wrote(&store, with(complete(&before, 1), [nothing])).await;
            assert!(stored(&store, &before).await.is_some());
        }
    }
}
