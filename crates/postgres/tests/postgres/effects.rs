//! Rows and records are committed together or not at all.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::BoxFuture,
    effects::{Effects, RefusalReason},
    record::Status,
    store::{Verdict, Write},
};
use lambda_idempotency_postgres::{PostgresEffects, PostgresStatement};
use lambda_idempotency_testkit::{
    conformance::effects::{EFFECTS_SCENARIOS, EffectsKit},
    tcp::{TcpFault, TcpProxy},
};

use crate::{
    servers::{Server, postgres_url},
    table::{AT_COMMIT, new_store, new_table, trigger},
    writes::{claim, complete, in_secs, one, stored, wrote},
};

/// Rows that count, in a table of their own.
#[derive(Clone)]
pub(crate) struct Counts {
    pub(crate) url: String,
    pub(crate) table: String,
}

impl Counts {
    pub(crate) async fn new(url: &str) -> Self {
        let table = format!("c{}", lambda_idempotency_core::record::Owner::random().unwrap());
        let counts = Self { url: url.to_owned(), table };
        counts
            .ask(&format!("CREATE TABLE {} (name text PRIMARY KEY, n bigint)", counts.table))
            .await;
        counts
    }

    /// The number that a statement returns.
    pub(crate) async fn ask(&self, text: &str) -> Option<i64> {
        crate::table::ask(&self.url, text).await
    }

    pub(crate) async fn of(&self, name: &str) -> i64 {
        self.ask(&format!("SELECT n FROM {} WHERE name = '{name}'", self.table)).await.unwrap_or(0)
    }

    pub(crate) fn adding_one(&self, name: &str) -> PostgresStatement {
        let table = &self.table;
        PostgresStatement::new(format!(
            "INSERT INTO {table} AS c VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET n = c.n + 1"
        ))
        .bind(name)
        .expect_rows(1)
    }

    /// A completion that also counts.
    pub(crate) fn counted(&self, name: &str, by: u128) -> Write {
        with(complete(name, by), [self.adding_one(name)])
    }
}

impl EffectsKit for Counts {
    fn adding(&self, names: &[String], refused: Option<usize>) -> Effects {
        let mut effects = PostgresEffects::default();
        for (position, name) in names.iter().enumerate() {
            let nothing = format!("UPDATE {} SET n = n + 1 WHERE name = $1 AND false", self.table);
            let refused = refused == Some(position);
            let never = || PostgresStatement::new(&*nothing).bind(name.as_str()).expect_rows(1);
            effects.add(if refused { never() } else { self.adding_one(name) }).unwrap();
        }
        Effects::new(effects)
    }

    fn count<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64> {
        Box::pin(async move { u64::try_from(self.of(name).await).unwrap() })
    }
}

pub(crate) fn with(write: Write, statements: impl IntoIterator<Item = PostgresStatement>) -> Write {
    let mut effects = PostgresEffects::default();
    statements.into_iter().for_each(|statement| effects.add(statement).unwrap());
    write.with_effects(Some(Effects::new(effects)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_conform_directly_and_through_pgbouncer() {
    let server = Server::shared_postgres();
    let counts = Counts::new(&server.url()).await;
    let pooler = Server::pgbouncer(server, "", "");
    for url in [server.url(), pooler.url()] {
        let store = new_store(&url).await;
        for (name, scenario) in EFFECTS_SCENARIOS {
            println!("{name}");
            scenario(&*store, &counts).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_of_the_server_has_its_reason_and_leaves_the_claim() {
    let server = Server::shared_postgres();
    let counts = Counts::new(&server.url()).await;
    let table = &counts.table;
    let unique = format!(
        "ALTER TABLE {table} ADD UNIQUE (n) DEFERRABLE INITIALLY DEFERRED; INSERT INTO {table} VALUES ('there', 7)"
    );
    counts.ask(&unique).await;
    let late = "IF NEW.n < 0 THEN RAISE EXCEPTION 's3cr3t'; END IF;";
    trigger(&counts.url, table, AT_COMMIT, late).await;
    let into = format!("INSERT INTO {table} VALUES ");
    let raise = "DO $$ BEGIN RAISE EXCEPTION 's3cr3t'; END $$";
    let store = new_table(&server.url()).await.build().unwrap();
    wrote(&store, claim("a", 1)).await;
    for (text, reason, position) in [
        (format!("{into} ('there', 1)"), RefusalReason::ConditionFailed, Some(1)),
        (raise.to_owned(), RefusalReason::ConditionFailed, Some(1)),
        ("SELECT * FROM nowhere".to_owned(), RefusalReason::Invalid, Some(1)),
        // Its SQLSTATE is of a class that is mostly about the server.
        ("SELECT pg_read_file('nowhere')".to_owned(), RefusalReason::Invalid, Some(1)),
        ("SELECT 's3cr3t'::int".to_owned(), RefusalReason::Invalid, Some(1)),
        (format!("SELECT count(*) FROM {table} FOR UPDATE"), RefusalReason::Invalid, Some(1)),
        ("EXECUTE nothing".to_owned(), RefusalReason::Invalid, Some(1)),
        (format!("{into} ('s3cr3t', 7)"), RefusalReason::ConditionFailed, None),
        (format!("{into} ('s3cr3t', -1)"), RefusalReason::ConditionFailed, None),
    ] {
        let effects = [counts.adding_one("first"), PostgresStatement::new(&*text)];
        match one(&store, with(complete("a", 1), effects), in_secs(20)).await {
            Verdict::EffectRefused(refused) => {
                let told = (refused.reason(), refused.position());
                assert_eq!(told, (reason, position), "{text}");
                assert!(!refused.to_string().contains("s3cr3t"), "{refused}");
            }
            other => panic!("{text}: {other:?}"),
        }
        assert_eq!(stored(&store, "a").await.unwrap().status, Status::InProgress, "{text}");
        assert_eq!(counts.of("first").await, 0, "{text}");
    }
    let before = counts.of("a").await;
    wrote(&store, counts.counted("a", 1)).await;
    assert_eq!(counts.of("a").await, before + 1);
}

/// The worst moment: the server has committed, and nobody hears of it. Or it has prepared all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_is_recognised_and_not_repeated() {
    let server = Server::shared_postgres();
    let counts = Counts::new(&server.url()).await;
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let store = new_table(&postgres_url(proxy.address())).await.build().unwrap();
    for (name, before) in [("prepared", 0), ("committed", 1)] {
        wrote(&store, claim(name, 1)).await;
        proxy.faults().add(TcpFault::delay(Duration::ZERO).times(before));
        let lost = proxy.faults().add(TcpFault::lose_answer().times(1));
        wrote(&store, counts.counted(name, 1)).await;
        assert_eq!(proxy.faults().injected(lost), 1, "{name}");
        assert_eq!(counts.of(name).await, 1, "{name}");
    }
}
