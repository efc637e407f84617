//! The chaos rig in servers that run already and have data of others: it leaves them as it found them, whatever happens.

use std::time::Duration;

use lambda_idempotency::{
    RedisStore,
    clock::{Clock as _, SystemClock, Timestamp},
    store::{Guard, IdempotencyRecord, Key, Status, Store as _, Verdict, Write},
};
use lambda_idempotency_chaos::{Error, Mode, Report, Settings, TestedStore, run, run_until};
use lambda_idempotency_core::browse::Browse as _;
use lambda_idempotency_local::{ServerKind, StoreServer};
use tokio_postgres::NoTls;

use crate::{pgbouncer::PgBouncer, server::program};

/// The schemas and tables of all users.
const NAMES: &str = "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' \
     UNION ALL SELECT relnamespace::regnamespace || '.' || relname FROM pg_class \
     WHERE relnamespace::regnamespace::text NOT LIKE 'pg\\_%' \
     AND relnamespace::regnamespace::text <> 'information_schema'";

/// A server with data of somebody else.
struct Server(StoreServer);

/// In it: all tables and schemas with their owner's rows, or all names.
type Contents = Vec<String>;

impl Server {
    async fn postgres() -> Self {
        let server = Self(StoreServer::start(ServerKind::Postgres, &[]).await.unwrap());
        // The names that the rig would take without a schema of its own.
        let made = "CREATE TABLE idempotency (mine text); INSERT INTO idempotency VALUES ('mine'); \
                    CREATE TABLE orders (mine text); INSERT INTO orders VALUES ('mine')";
        server.run(made).await;
        server
    }

    async fn redis(settings: &[(&str, &str)]) -> Self {
        let settings: Vec<_> =
            settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Self(StoreServer::start(ServerKind::Redis, &settings).await.unwrap())
    }

    /// A record of a function that keeps its records in the same server.
    async fn with_record(self) -> Self {
        let record = IdempotencyRecord::new(Status::Completed, soon());
        let write = Write::new(Key::from_text("place-order#mine"), Guard::Absent, Some(record));
        let verdict = RedisStore::new(&self.url()).unwrap().write(&[write], soon()).await;
        assert!(matches!(verdict[0], Verdict::Written), "{verdict:?}");
        self
    }

    fn url(&self) -> String {
        self.0.url()
    }

    fn store(&self) -> TestedStore {
        self.url().parse().unwrap()
    }

    /// Runs a statement, and returns the texts of its rows.
    async fn run(&self, text: &str) -> Contents {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.unwrap();
        tokio::select! {
            rows = client.simple_query(text) => rows
                .unwrap()
                .iter()
                .filter_map(|message| match message {
                    tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                })
                .collect(),
            _ = connection => panic!("the connection was closed"),
        }
    }

    async fn contents(&self) -> Contents {
        match self.0.kind() {
            ServerKind::Postgres => {
                let rows = "UNION ALL SELECT 'row ' || mine FROM idempotency \
                            UNION ALL SELECT 'row ' || mine FROM orders";
                self.run(&format!("{NAMES} {rows} ORDER BY 1")).await
            }
            ServerKind::Redis => {
                let all = RedisStore::builder(&self.url()).prefix("").build().unwrap();
                let (mut names, mut after) = (Contents::new(), None);
                loop {
                    let limit = 1000.try_into().unwrap();
                    let page = all.page(after.as_ref(), limit, soon()).await.unwrap();
                    names.extend(page.items.iter().map(|(key, _)| key.as_str().to_owned()));
                    after = page.next;
                    if after.is_none() {
                        return names;
                    }
                }
            }
        }
    }
}

fn soon() -> Timestamp {
    SystemClock.now().plus(Duration::from_secs(60))
}

fn settings(server: &Server, mode: Mode, messages: bool) -> Settings {
    let settings = Settings::with_mode(env!("CARGO_BIN_EXE_scripted_orders"), mode);
    let settings = if messages { settings.with_messages() } else { settings };
    Settings { deliveries: 40, ..settings.with_store(server.store()) }
}

/// Runs, and expects that nothing is wrong, and that the server has what it had.
async fn nothing_is_left(server: &Server, mode: Mode, messages: bool) -> Report {
    let before = server.contents().await;
    assert!(!before.is_empty(), "data of somebody else");
    let report = run(&settings(server, mode, messages), |_| {}).await.unwrap();
    assert!(report.findings.violations.is_empty(), "{mode}: {report}");
    assert!(report.requests > 0, "the function has reached the server: {report}");
    assert_eq!(server.contents().await, before, "{mode}");
    report
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run stores` runs this"]
async fn a_postgres_with_data_of_others_is_tested_in_each_mode_and_left_as_it_was() {
    let server = Server::postgres().await;
    for mode in Mode::ALL {
        nothing_is_left(&server, *mode, false).await;
    }
    let report = nothing_is_left(&server, Mode::Transaction, true).await;
    assert!(report.published > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Redis: `bash tests/run stores` runs this"]
async fn a_redis_with_data_of_others_is_tested_in_each_mode_that_it_has_and_left_as_it_was() {
    let server = Server::redis(&[]).await.with_record().await;
    for mode in [Mode::Claim, Mode::Steps] {
        nothing_is_left(&server, mode, false).await;
    }
}

/// A function that does not start, and a run that is stopped while its processes work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL and Redis: `bash tests/run stores` runs this"]
async fn nothing_is_left_after_a_failure_or_a_stop() {
    for server in [Server::postgres().await, Server::redis(&[]).await.with_record().await] {
        let before = server.contents().await;
        let mut broken = settings(&server, Mode::Claim, false);
        broken.env.push(("ORDERS_SQS_KEY".to_owned(), "not an expression (".to_owned()));
        let failed = run(&broken, |_| {}).await.map(|_| ());
        assert!(matches!(failed, Err(Error::DoesNotStart { .. })), "{failed:?}");
        assert_eq!(server.contents().await, before);

        let settings = Settings { deliveries: 2000, ..settings(&server, Mode::Claim, false) };
        let (some, stop) = tokio::sync::watch::channel(0);
        let progress = |settled| {
            some.send_replace(settled);
        };
        let mut changes = stop.clone();
        let stopped = run_until(&settings, progress, async {
            changes.wait_for(|settled| *settled > 20).await.unwrap();
            assert_ne!(server.contents().await, before, "it works there");
        });
        let stopped = stopped.await.map(|_| ());
        assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
        assert_eq!(server.contents().await, before);
    }
}

/// What a server cannot do is said before a process starts, and without the password.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL and Redis: `bash tests/run stores` runs this"]
async fn a_server_that_does_not_fit_is_refused_and_left_as_it_was() {
    let unsafe_postgres =
        StoreServer::start(ServerKind::Postgres, &[("fsync".to_owned(), "off".to_owned())])
            .await
            .unwrap();
    let postgres = Server::postgres().await;
    postgres.run("CREATE ROLE guest LOGIN PASSWORD 's3cr3t'").await;
    let guest = postgres.url().replace("tests@", "guest:s3cr3t@");
    let cluster = Server::redis(&[("cluster-enabled", "yes")]).await;
    let evicting = Server::redis(&[("maxmemory-policy", "allkeys-lru")]).await;
    let locked = Server::redis(&[("requirepass", "0ther")]).await;
    let before = postgres.contents().await;
    for (url, remedy) in [
        (unsafe_postgres.url(), "fsync"),
        (guest, "permission denied"),
        (postgres.url().replace("/postgres?", "/n0ne?"), "does not exist"),
        (postgres.url().replace("127.0.0.1", "127.0.0.1,127.0.0.2"), "name one host"),
        ("postgres:///postgres?host=/tmp&sslmode=disable".to_owned(), "name one host"),
        (cluster.url(), "use a single server"),
        (evicting.url(), "noeviction"),
        (locked.url().replace("redis://", "redis://:s3cr3t@"), "assword"),
        ("redis://:s3cr3t@127.0.0.1:1".to_owned(), "refused"),
        ("postgres://u:s3cr3t@127.0.0.1:1/d?sslmode=disable".to_owned(), "refused"),
    ] {
        let settings = Settings::new("never started").with_store(url.parse().unwrap());
        let error = run(&settings, |_| {}).await.map(|_| ()).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Store(_)) && text.contains(remedy), "{url}: {text}");
        assert!(!format!("{text} {error:?}").contains("s3cr3t"), "{text}");
    }
    assert_eq!(postgres.contents().await, before);
}

/// The first two numbers of the version of PgBouncer.
fn pgbouncer_version() -> (u32, u32) {
    let said = std::process::Command::new(program("pgbouncer")).arg("--version").output();
    let said = String::from_utf8(said.expect("PgBouncer starts").stdout).expect("text");
    let mut numbers = said.split([' ', '.', '\n']).filter_map(|word| word.parse().ok());
    let mut next = || numbers.next().unwrap_or_else(|| panic!("a version: {said}"));
    (next(), next())
}

/// PgBouncer either drops the option with the schema, or refuses it. Without it, a run would make its tables in `public`.
/// From version 1.26 it passes on what the server reports, and PostgreSQL 18 reports its schema: then the run goes on in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL and PgBouncer: `bash tests/run stores` runs this"]
async fn a_proxy_that_does_not_pass_the_schema_on_is_refused_and_nothing_is_left() {
    let server = Server(StoreServer::start(ServerKind::Postgres, &[]).await.unwrap());
    let names = format!("{NAMES} ORDER BY 1");
    let before = server.run(&names).await;
    for (setting, remedy) in [
        ("ignore_startup_parameters = options, search_path", "name the server itself in the URL"),
        ("", "unsupported startup parameter"),
    ] {
        let pooler = PgBouncer::before(server.0.address(), setting);
        let settings = Settings::new("never started").with_store(pooler.url().parse().unwrap());
        let error = run(&settings, |_| {}).await.map(|_| ()).unwrap_err();
        let is_refused = matches!(&error, Error::Store(text) if text.contains(remedy));
        let is_passed_on = setting.is_empty()
            && pgbouncer_version() >= (1, 26)
            && matches!(&error, Error::DoesNotStart { .. });
        assert!(is_refused || is_passed_on, "{setting}: {error:?}");
        assert_eq!(server.run(&names).await, before, "{setting}");
    }
}

#[tokio::test]
async fn settings_of_a_server_that_the_rig_does_not_start_are_refused() {
    for store in ["dynamodb", "redis://127.0.0.1", "postgres://h/d?sslmode=disable"] {
        let mut settings = Settings::new("never started").with_store(store.parse().unwrap());
        settings.server_settings = vec![("appendonly".to_owned(), "no".to_owned())];
        let refused = run(&settings, |_| {}).await.map(|_| ());
        assert!(matches!(refused, Err(Error::Settings(_))), "{store}: {refused:?}");
        settings.server_settings.clear();
        settings.check().unwrap();
    }
}
