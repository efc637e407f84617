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
    pgbouncer::PgBouncer,
    server::{Postgres, USER, url},
    table::{claim, complete, in_secs, new_table, one, stored, unknown, written},
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

/// A trigger of the table that runs this when a row is inserted, or at `COMMIT`.
async fn on_insert(counts: &Counts, name: &str, at_commit: bool, body: &str) {
    let table = &counts.table;
    let trigger = if at_commit { "CONSTRAINT TRIGGER" } else { "TRIGGER" };
    let late = if at_commit { "DEFERRABLE INITIALLY DEFERRED" } else { "" };
    let text = format!(
        "CREATE FUNCTION {table}_{name}() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN {body} RETURN NEW; END $$; \
         CREATE {trigger} {name} AFTER INSERT ON {table} {late} FOR EACH ROW EXECUTE FUNCTION {table}_{name}()"
    );
    counts.ask(&text).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn effects_that_take_longer_than_a_request_are_committed() {
    let server = Postgres::shared();
    let table = new_table(&server.url()).await.attempt_timeout(Duration::from_millis(300));
    let store = table.build().unwrap();
    let counts = Counts::new(&server.url()).await;
    let late = Counts::new(&server.url()).await;
    on_insert(&late, "slow", true, "PERFORM pg_sleep(0.9);").await;
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
        written(&one(&store, claim(name, 1), in_secs(20)).await);
        written(&one(&store, with(complete(name, 1), effects), in_secs(20)).await);
        assert_eq!(counts.of(name).await, 1, "{name}");
        assert_eq!(stored(&store, name).await.unwrap().status, Status::Completed, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn an_effect_for_which_the_call_has_no_time_is_refused_and_a_lost_answer_is_not() {
    let server = Postgres::shared();
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let table = new_table(&url(proxy.address())).await;
    let store = table.attempt_timeout(Duration::from_millis(300)).build().unwrap();
    let counts = Counts::new(&server.url()).await;
    written(&one(&store, claim("a", 1), in_secs(20)).await);
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
    let lost = unknown(one(&store, counts.counted("a", 1), in_secs(3)).await);
    assert_eq!(lost.kind(), StoreErrorKind::Unavailable);
    assert!(!lost.to_string().contains("effect"), "{lost}");
    proxy.faults().clear();
    written(&one(&store, counts.counted("a", 1), in_secs(20)).await);
}

/// It would be the same answer until the deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn what_the_server_answers_twice_is_a_failure_of_the_handler() {
    let server = Postgres::shared();
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
            let tries = format!("{}_tries", counts.table);
            counts.ask(&format!("CREATE SEQUENCE {tries}")).await;
            let raise = format!(
                "PERFORM nextval('{tries}'); RAISE EXCEPTION 's3cr3t' USING ERRCODE = '{code}';"
            );
            on_insert(&counts, "fails", at_commit, &raise).await;
            let name = format!("{code}-{at_commit}");
            written(&one(&store, claim(&name, 1), in_secs(20)).await);
            let effects = [PostgresStatement::new("SELECT 1"), counts.adding_one(&name)];
            let refused = refused(one(&store, with(complete(&name, 1), effects), in_secs(5)).await);
            let told = (refused.reason(), refused.position());
            let position = (!at_commit).then_some(1);
            assert_eq!(told, (RefusalReason::ConditionFailed, position), "{name}: {refused}");
            let text = refused.to_string();
            assert!(text.contains(code) && !text.contains("s3cr3t"), "{name}: {text}");
            let tried = counts.ask(&format!("SELECT last_value FROM {tries}")).await;
            assert_eq!(tried, Some(attempts), "{name}");
            assert_eq!(counts.of(&name).await, 0, "{name}");
            assert_eq!(stored(&store, &name).await.unwrap().status, Status::InProgress, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn an_effect_that_ends_its_connection_twice_is_a_failure_of_the_handler() {
    let store = new_table(&Postgres::shared().url()).await.build().unwrap();
    written(&one(&store, claim("a", 1), in_secs(20)).await);
    let ends = PostgresStatement::new("SELECT pg_terminate_backend(pg_backend_pid())");
    let refused = refused(one(&store, with(complete("a", 1), [ends]), in_secs(5)).await);
    assert_eq!(refused.position(), Some(0), "{refused}");
    written(&one(&store, complete("a", 1), in_secs(20)).await);
}

/// The server runs out of room for locks, and not because a function says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn a_server_without_resources_for_an_effect_is_an_outage() {
    let small = ["fsync=off", "max_locks_per_transaction=10", "max_connections=20"];
    let server = Postgres::start_with(&small);
    let store = new_table(&server.url()).await.build().unwrap();
    let counts = Counts::new(&server.url()).await;
    counts.ask("CREATE SEQUENCE tries").await;
    written(&one(&store, claim("a", 1), in_secs(20)).await);
    let locks = "SELECT count(pg_advisory_xact_lock(n)) FROM generate_series(1, 100000) n";
    let effects = ["SELECT nextval('tries')", locks].map(PostgresStatement::new);
    let error = unknown(one(&store, with(complete("a", 1), effects), in_secs(12)).await);
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(counts.ask("SELECT last_value FROM tries").await > Some(2));
    written(&one(&store, counts.counted("a", 1), in_secs(20)).await);
}

/// The role may not do all that cleans the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn what_fails_after_the_commit_does_not_make_it_a_refusal() {
    let server = Postgres::start();
    let counts = Counts::new(&server.url()).await;
    let table = &counts.table;
    let grants = format!(
        "CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain; GRANT ALL ON {table} TO plain; \
         REVOKE EXECUTE ON FUNCTION pg_advisory_unlock_all() FROM PUBLIC"
    );
    counts.ask(&grants).await;
    let plain = server.url().replace(USER, "plain");
    let store = new_table(&plain).await.build().unwrap();
    written(&one(&store, claim("a", 1), in_secs(20)).await);
    written(&one(&store, counts.counted("a", 1), in_secs(20)).await);
    assert_eq!(counts.of("a").await, 1);
    assert_eq!(stored(&store, "a").await.unwrap().status, Status::Completed);
    // The connection is closed, with what was left on it.
    let leaves = PostgresStatement::new("SELECT set_config('orders.left', 'here', false)");
    let finds = "SELECT 1 WHERE current_setting('orders.left', true) = 'here'";
    let finds_nothing = PostgresStatement::new(finds).expect_rows(0);
    for (name, effect) in [("b", leaves), ("c", finds_nothing)] {
        written(&one(&store, claim(name, 1), in_secs(20)).await);
        written(&one(&store, with(complete(name, 1), [effect]), in_secs(20)).await);
    }
}

/// Each of them may pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn answers_that_differ_are_no_failure_of_the_handler() {
    let server = Postgres::shared();
    let store = new_table(&server.url()).await.build().unwrap();
    let counts = Counts::new(&server.url()).await;
    let tries = format!("{}_tries", counts.table);
    counts.ask(&format!("CREATE SEQUENCE {tries}")).await;
    let raise = format!(
        "CASE nextval('{tries}') WHEN 1 THEN RAISE EXCEPTION 'one' USING ERRCODE = '40001'; \
         WHEN 2 THEN RAISE EXCEPTION 'two' USING ERRCODE = '53100'; ELSE NULL; END CASE;"
    );
    on_insert(&counts, "fails", false, &raise).await;
    written(&one(&store, claim("a", 1), in_secs(20)).await);
    written(&one(&store, counts.counted("a", 1), in_secs(20)).await);
    assert_eq!(counts.of("a").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn an_effect_that_waits_for_a_locked_row_is_contended_and_not_the_handler_s_failure() {
    let server = Postgres::shared();
    let table = new_table(&server.url()).await.attempt_timeout(Duration::from_millis(300));
    let store = table.build().unwrap();
    let counts = Counts::new(&server.url()).await;
    counts.ask(&format!("INSERT INTO {} VALUES ('a', 0)", counts.table)).await;
    written(&one(&store, claim("a", 1), in_secs(20)).await);
    let (other, wire) =
        tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    let holding = async {
        let hold = format!("BEGIN; UPDATE {} SET n = 0", counts.table);
        other.batch_execute(&hold).await.unwrap();
        // The last request of a call may have too little time for an answer, and then nobody knows.
        let mut error = unknown(one(&store, counts.counted("a", 1), in_secs(2)).await);
        for _ in 0..5 {
            if error.kind() != StoreErrorKind::Contended {
                error = unknown(one(&store, counts.counted("a", 1), in_secs(3)).await);
            }
        }
        let told = (error.kind(), error.may_have_applied());
        assert_eq!(told, (StoreErrorKind::Contended, false), "{error}");
        other.batch_execute("ROLLBACK").await.unwrap();
        written(&one(&store, counts.counted("a", 1), in_secs(20)).await);
    };
    futures_util::future::select(std::pin::pin!(holding), std::pin::pin!(wire)).await;
    assert_eq!(counts.of("a").await, 1);
}

/// The records after it would be written elsewhere, as somebody else, or be forgotten in a crash.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn nothing_of_an_effect_stays_on_its_connection() {
    let server = Postgres::start();
    let pooler = PgBouncer::start_with(&server, "pool_mode = session");
    let shared = PgBouncer::start(&server);
    let counts = Counts::new(&server.url()).await;
    counts.ask(&format!("CREATE ROLE {}_other", counts.table)).await;
    for (url, are_kept) in
        [(server.url(), false), (server.url(), true), (pooler.url(), false), (shared.url(), false)]
    {
        let table = new_table(&url).await;
        let name = format!("{table:?}").split('"').nth(1).unwrap().to_owned();
        let table = table.max_connections(1).prepared_statements(are_kept);
        let store = table.build().unwrap();
        let lock = Owner::random().unwrap().to_bits() >> 97;
        let leaves = [
            "SELECT set_config('search_path', 'nowhere', false)".to_owned(),
            "SET synchronous_commit = off".to_owned(),
            format!("SELECT set_config('role', '{}_other', false)", counts.table),
            format!("SELECT pg_advisory_lock({lock})"),
            format!("CREATE TEMP TABLE {name} (key text)"),
            "DECLARE kept CURSOR WITH HOLD FOR SELECT 1".to_owned(),
            "LISTEN something".to_owned(),
        ];
        for (number, text) in leaves.iter().enumerate() {
            let before = format!("{number}-before");
            for fails in [true, false] {
                let name = format!("{number}-{fails}");
                written(&one(&store, claim(&name, 1), in_secs(20)).await);
                let last = PostgresStatement::new("SELECT 1 WHERE NOT $1").bind(fails);
                let effects = [PostgresStatement::new(text.as_str()), last.expect_rows(1)];
                let verdict = one(&store, with(complete(&name, 1), effects), in_secs(20)).await;
                assert_eq!(matches!(verdict, Verdict::Written), !fails, "{text}: {verdict:?}");
                assert_eq!(matches!(verdict, Verdict::EffectRefused(_)), fails, "{text}");
            }
            written(&one(&store, claim(&before, 1), in_secs(20)).await);
            let nothing = "SELECT 1 WHERE current_setting('search_path') <> 'nowhere' \
                 AND current_setting('synchronous_commit') = 'on' AND current_user = session_user \
                 AND NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory') \
                 AND NOT EXISTS (SELECT FROM pg_class WHERE relpersistence = 't') \
                 AND NOT EXISTS (SELECT FROM pg_cursors WHERE is_holdable) \
                 AND NOT EXISTS (SELECT FROM pg_listening_channels())";
            let nothing = PostgresStatement::new(nothing).expect_rows(1);
            written(&one(&store, with(complete(&before, 1), [nothing]), in_secs(20)).await);
            assert!(stored(&store, &before).await.is_some());
        }
    }
}
