//! Errors name the remedy, and neither keys nor results nor passwords.

use std::{error::Error, num::NonZeroUsize, time::Duration};

use lambda_idempotency_core::{
    browse::Browse as _,
    clock::{Clock, SystemClock},
    key::Key,
    store::{Guard, Store as _, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_postgres::{Isolation, PostgresStatement, PostgresStore};
use lambda_idempotency_testkit::tcp::TcpProxy;

use crate::{
    effects::{Counts, with},
    servers::{Server, USER, new_directory, postgres_url},
    table::{ask, name_of, new_table, trigger},
    writes::{
        claim, complete, completed, error_of, in_secs, key, one, stored, unknown, written, wrote,
    },
};

/// Runs statements as the owner of the database.
async fn run(server: &Server, text: &str) {
    ask(&server.url(), text).await;
}

/// The error and its causes.
fn whole(error: &StoreError) -> String {
    let cause = error.source().map(|cause| format!(" ({cause})")).unwrap_or_default();
    format!("{error}{cause}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_the_server_is_said_with_its_remedy() {
    let server = Server::shared_postgres();
    let (table, url) = (name_of(&new_table(&server.url()).await), server.url());
    let roles = format!(
        "CREATE ROLE reader LOGIN; GRANT SELECT ON {table} TO reader; CREATE ROLE few LOGIN CONNECTION LIMIT 0"
    );
    run(server, &roles).await;
    let nowhere = url.replace("/postgres?", "/nowhere?");
    let by = |role| url.replace(USER, role);
    for (url, table, kind, remedy) in [
        (url.clone(), "nothing", StoreErrorKind::Misconfigured, "PostgresStore::migrate"),
        (nowhere, &table, StoreErrorKind::Misconfigured, "the database does not exist"),
        (by("nobody:s3cr3t"), &table, StoreErrorKind::Denied, "refused the user or the password"),
        (by("reader"), &table, StoreErrorKind::Denied, "SELECT, INSERT, UPDATE and DELETE"),
        (by("few"), &table, StoreErrorKind::Unavailable, "max_connections"),
    ] {
        let store = PostgresStore::builder(&url).table(table).build().unwrap();
        let error = error_of(one(&store, claim("s3cr3t", 1), in_secs(2)).await);
        assert_eq!((error.kind(), error.may_have_applied()), (kind, false), "{error}");
        assert!(error.to_string().contains(remedy), "{error}");
        assert!(!whole(&error).contains("s3cr3t"), "{}", whole(&error));
    }
}

/// The check says each of these, and so does the first claim where it could not be made. Partitions are no obstacle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_may_forget_is_refused_at_the_start() {
    let safe = Server::postgres(&[]);
    run(&safe, "CREATE ROLE plain LOGIN").await;
    let partitions = |kind: &str| {
        format!(
            "CREATE TABLE other (LIKE TABLE_NAME INCLUDING ALL) PARTITION BY HASH (key); DROP TABLE TABLE_NAME; \
             ALTER TABLE other RENAME TO TABLE_NAME; \
             CREATE TABLE TABLE_NAME_0 PARTITION OF TABLE_NAME FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
             CREATE {kind} TABLE TABLE_NAME_1 PARTITION OF TABLE_NAME FOR VALUES WITH (MODULUS 2, REMAINDER 1)"
        )
    };
    for (change, checked, claimed) in [
        (&*partitions(""), "", ""),
        (&partitions("UNLOGGED"), "a partition of it, is UNLOGGED", ""),
        ("ALTER TABLE TABLE_NAME SET UNLOGGED", "UNLOGGED", ""),
        ("ALTER TABLE TABLE_NAME ENABLE ROW LEVEL SECURITY", "row security", "row security"),
        (
            "ALTER TABLE TABLE_NAME DROP CONSTRAINT TABLE_NAME_pkey",
            "has no primary key",
            "ADD PRIMARY KEY (key)",
        ),
        ("ALTER ROLE plain SET synchronous_commit = off", "may forget that work was done", ""),
    ] {
        let name = name_of(&new_table(&safe.url()).await);
        let store = || {
            let plain = safe.url().replace(USER, "plain");
            PostgresStore::builder(&plain).table(&name).build().unwrap()
        };
        let grant = "GRANT ALL ON ALL TABLES IN SCHEMA public TO plain";
        run(&safe, grant).await;
        store().check().await.unwrap();
        run(&safe, &change.replace("TABLE_NAME", &name)).await;
        run(&safe, grant).await;
        let refused = store().check().await.map_err(|error| format!("{error:?}"));
        if checked.is_empty() {
            refused.unwrap();
        } else {
            let refused = refused.unwrap_err();
            assert!(refused.contains(checked), "{change}: {refused}");
        }
        if !claimed.is_empty() {
            let error = error_of(one(&store(), claim("a", 1), in_secs(60)).await);
            assert!(error.to_string().contains(claimed), "{}", whole(&error));
        }
    }
    let fast = Server::shared_postgres();
    let refused = new_table(&fast.url()).await.build().unwrap().check().await.unwrap_err();
    assert!(format!("{refused:?}").contains("`fsync`"), "{refused:?}");
    let none = PostgresStore::connect(&fast.url()).await.unwrap_err();
    assert!(format!("{none:?}").contains("PostgresStore::migrate"), "{none:?}");
}

/// As a standby is, and while the database moves to another server. Records that are read here may be old.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_its_administrator_has_set_read_only_is_neither_written_nor_read() {
    let server = Server::postgres(&["fsync=off"]);
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let table = new_table(&postgres_url(proxy.address())).await;
    let counts = Counts::new(&server.url()).await;
    wrote(&table.clone().build().unwrap(), claim("a", 1)).await;
    run(&server, "ALTER DATABASE postgres SET default_transaction_read_only = on").await;
    let store = table.build().unwrap();
    for write in [claim("b", 1), complete("a", 1), counts.counted("a", 1)] {
        let before = proxy.connections();
        let error =
            unknown(one(&store, write, in_secs(2)).await, StoreErrorKind::Unavailable, false);
        assert!(error.to_string().contains("default_transaction_read_only"), "{}", whole(&error));
        assert!(proxy.connections() > before + 1, "each attempt looks for another server");
    }
    let read = store.read(&[key("a")], in_secs(2)).await.remove(0).unwrap_err();
    assert_eq!(read.kind(), StoreErrorKind::Unavailable, "{}", whole(&read));
    let checked = format!("{:?}", store.check().await.unwrap_err());
    assert!(checked.contains("the session is read-only"), "{checked}");
    let back =
        "BEGIN READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only; COMMIT";
    run(&server, back).await;
    wrote(&store, counts.counted("a", 1)).await;
    assert_eq!((counts.of("a").await, stored(&store, "b").await), (1, None));
}

/// A person at a terminal, and one who may not even read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_only_reads_needs_no_right_to_write_and_says_at_once_what_is_missing() {
    let server = Server::shared_postgres();
    let table = new_table(&server.url()).await;
    let name = name_of(&table);
    wrote(&table.build().unwrap(), claim("a", 1)).await;
    let roles = format!(
        "CREATE ROLE looks_{name} LOGIN; ALTER ROLE looks_{name} SET default_transaction_read_only = on; \
         GRANT SELECT ON {name} TO looks_{name}; CREATE ROLE blind_{name} LOGIN"
    );
    run(server, &roles).await;
    let of = |role: &str| {
        let url = server.url().replace(USER, &format!("{role}_{name}"));
        PostgresStore::builder(&url).table(&name).read_only().build().unwrap()
    };
    let store = of("looks");
    store.server_time(in_secs(60)).await.unwrap();
    assert!(stored(&store, "a").await.is_some());
    assert_eq!(store.count(in_secs(60)).await.unwrap(), 1);
    let page = NonZeroUsize::MIN;
    assert_eq!(store.page(None, page, in_secs(60)).await.unwrap().items.len(), 1);
    // These would wait for an hour otherwise.
    let hour = in_secs(3600);
    let error = unknown(one(&store, complete("a", 1), hour).await, StoreErrorKind::Refused, false);
    assert!(error.to_string().contains("`read_only`"), "{error}");
    let error = of("blind").page(None, page, hour).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied);
    assert!(error.to_string().contains("the role needs SELECT on"), "{error}");
}

/// It would refuse records because of their texts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_cannot_hold_all_texts_is_refused_at_the_start_and_by_each_connection() {
    let server = Server::shared_postgres();
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let name = format!("d{}", encoding.to_lowercase());
        let create = format!(
            "CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        );
        run(server, &create).await;
        let url = server.url().replace("/postgres?", &format!("/{name}?"));
        let store = PostgresStore::builder(&url).build().unwrap();
        let refused = format!("{:?}", store.check().await.unwrap_err());
        let error = error_of(one(&store, claim("a", 1), in_secs(5)).await);
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        let migrated = store.migrate(in_secs(5)).await.unwrap_err();
        for text in [refused, error.to_string(), migrated.to_string()] {
            assert!(text.contains(encoding) && text.contains("ENCODING 'UTF8'"), "{text}");
        }
    }
}

/// A server that does not answer, which may have to do with its address, is told from a call without time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_had_no_time_for_a_connection_is_not_sent_to_look_for_the_host() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = postgres_url(silent.local_addr().unwrap());
    let store = PostgresStore::builder(&url).connect_timeout(Duration::from_secs(60));
    let store = store.build().unwrap();
    let error = error_of(one(&store, claim("a", 1), in_secs(1)).await).to_string();
    assert!(error.contains("there was no connection in the last"), "{error}");
}

/// The other connections lead to the same server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_met_a_read_only_server_takes_no_idle_connection() {
    let server = Server::shared_postgres();
    let effects = vec![PostgresStatement::new("SELECT 1")];
    for write in [complete("a", 1), with(complete("a", 1), effects)] {
        let proxy = TcpProxy::start(server.address()).await.unwrap();
        let table = new_table(&postgres_url(proxy.address())).await;
        let name = name_of(&table);
        let store = table.build().unwrap();
        let claims = ["a", "b"].map(|name| one(&store, claim(name, 1), in_secs(20)));
        futures_util::future::join_all(claims).await.iter().for_each(written);
        let refuse = "IF nextval('{tries}') = 1 THEN RAISE EXCEPTION 'cannot execute UPDATE' USING ERRCODE = '25006'; END IF;";
        trigger(&server.url(), &name, "BEFORE UPDATE", refuse).await;
        let before = proxy.connections();
        wrote(&store, write).await;
        assert_eq!(proxy.connections(), before + 1, "it opened another");
    }
}

/// An operator may limit how long transactions take, by `transaction_timeout` of PostgreSQL 17 for example. The error is
/// that of a trigger, because older servers do not have the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_the_server_ended_is_sent_again() {
    let server = Server::shared_postgres();
    for code in ["25P03", "25P04"] {
        let table = new_table(&server.url()).await;
        let name = name_of(&table);
        let store = table.build().unwrap();
        let end = format!(
            "IF nextval('{{tries}}') < 3 THEN RAISE EXCEPTION 'terminating connection' USING ERRCODE = '{code}'; END IF;"
        );
        let sequence = trigger(&server.url(), &name, "BEFORE INSERT", &end).await;
        wrote(&store, claim("a", 1)).await;
        let for_ever = format!(
            "SELECT setval('{sequence}', 1, false); ALTER SEQUENCE {sequence} INCREMENT BY -1 MINVALUE -1000000"
        );
        run(server, &for_ever).await;
        unknown(one(&store, claim("b", 1), in_secs(1)).await, StoreErrorKind::Unavailable, false);
    }
}

/// A member that the server refuses does not harm the others, and its values are not repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_are_refused_are_not_repeated() {
    let server = Server::shared_postgres();
    let table = new_table(&server.url()).await;
    let name = name_of(&table);
    run(server, &format!("ALTER TABLE {name} ADD CHECK (application <> 's3cr3t')")).await;
    let store = table.build().unwrap();
    let mut bad = claim("s3cr3t", 1);
    bad.record.as_mut().unwrap().application = Some("s3cr3t".into());
    let nul = Write::new(Key::from_text("op#s3cr3t\0"), Guard::Absent, Some(completed(2)));
    let writes = [claim("a", 1), bad, nul, claim("b", 2)];
    let verdicts = lambda_idempotency_core::store::Store::write(&store, &writes, in_secs(20)).await;
    let [first, Verdict::Unknown(bad), Verdict::Unknown(nul), last] = &verdicts[..] else {
        panic!("{verdicts:?}")
    };
    written(first);
    written(last);
    for error in [bad, nul] {
        assert_eq!((error.kind(), error.may_have_applied()), (StoreErrorKind::Refused, false));
        assert!(!format!("{error:?} {}", whole(error)).contains("s3cr3t"), "{}", whole(error));
    }
    let long = Write::new(key("x".repeat(3000)), Guard::Absent, Some(completed(1)));
    assert_eq!(error_of(one(&store, long, in_secs(5)).await).kind(), StoreErrorKind::Refused);
}

/// Somebody has changed it since it was loaded. The function takes longer than a connection may, and longer than a call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_is_refused_is_loaded_once_more_and_loading_has_a_time_of_its_own() {
    let directory = new_directory("hba");
    let rules = directory.join("hba.conf");
    std::fs::write(&rules, "host all locked all scram-sha-256\nhost all all all trust\n").unwrap();
    let server = Server::postgres(&["fsync=off", &format!("hba_file={}", rules.display())]);
    let table = new_table(&server.url()).await;
    let name = name_of(&table);
    run(&server, "CREATE ROLE locked LOGIN PASSWORD 'new'").await;
    run(&server, &format!("GRANT ALL ON {name} TO locked")).await;
    let locked = || PostgresStore::builder(&server.url().replace(USER, "locked")).table(&name);
    let loaded = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = loaded.clone();
    let changed = locked().password(move || {
        let is_first = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        async move { Ok::<_, std::io::Error>(if is_first { "old" } else { "new" }.to_owned()) }
    });
    wrote(&changed.build().unwrap(), claim("a", 1)).await;
    assert_eq!(loaded.load(std::sync::atomic::Ordering::Relaxed), 2);
    let wrong = locked().password(async || Ok::<_, std::io::Error>("s3cr3t".to_owned()));
    let error = error_of(one(&wrong.build().unwrap(), claim("b", 1), in_secs(60)).await);
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{}", whole(&error));
    let slow = locked().connect_timeout(Duration::from_millis(500)).password(async || {
        tokio::time::sleep(Duration::from_millis(1100)).await;
        Ok::<_, std::io::Error>("new".to_owned())
    });
    let slow = slow.build().unwrap();
    let error = error_of(one(&slow, claim("c", 1), in_secs(1)).await);
    assert!(error.to_string().contains("`password` has not returned for"), "{}", whole(&error));
    wrote(&slow, claim("c", 1)).await;
    drop(server);
    std::fs::remove_dir_all(directory).unwrap();
}

/// The effects of handlers as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_are_as_isolated_as_the_database_or_the_store_says() {
    let server = Server::postgres(&["fsync=off", "default_transaction_isolation=serializable"]);
    let table = new_table(&server.url()).await;
    for (store, level) in [
        (table.clone(), "serializable"),
        (table.clone().isolation(Isolation::ReadCommitted), "read committed"),
        (table.isolation(Isolation::RepeatableRead), "repeatable read"),
    ] {
        let store = store.build().unwrap();
        wrote(&store, claim(level, 1)).await;
        let is = "SELECT 1 WHERE current_setting('transaction_isolation') = $1";
        let is = PostgresStatement::new(is).bind(level).expect_rows(1);
        wrote(&store, with(complete(level, 1), [is])).await;
    }
}

/// They are texts of the database's functions, which may write data into them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notices_of_the_database_are_not_logged() {
    struct Heard(std::sync::Mutex<String>);
    impl log::Log for Heard {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }
        fn log(&self, record: &log::Record<'_>) {
            *self.0.lock().unwrap() += &format!("{}\n", record.args());
        }
        fn flush(&self) {}
    }
    static HEARD: Heard = Heard(std::sync::Mutex::new(String::new()));
    log::set_logger(&HEARD).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let store = new_table(&Server::shared_postgres().url()).await.build().unwrap();
    wrote(&store, claim("a", 1)).await;
    let raises = "DO $$ BEGIN RAISE NOTICE USING MESSAGE = reverse('eciton-t3rc3s'); END $$";
    wrote(&store, with(complete("a", 1), [PostgresStatement::new(raises)])).await;
    let heard = HEARD.0.lock().unwrap();
    assert!(!heard.is_empty() && !heard.contains("s3cr3t-notice"), "{heard}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_can_be_applied_again_and_at_once() {
    let server = Server::shared_postgres();
    let builder = PostgresStore::builder(&server.url()).table("again");
    let store = || builder.clone().build().unwrap();
    let (one_store, other) = (store(), store());
    let migrations = [one_store.migrate(in_secs(20)), other.migrate(in_secs(20))];
    for migrated in futures_util::future::join_all(migrations).await {
        migrated.unwrap();
    }
    one_store.migrate(in_secs(20)).await.unwrap();
    let late = one_store.migrate(SystemClock.now()).await.unwrap_err();
    assert_eq!(late.kind(), StoreErrorKind::Unavailable);
}

/// Its owner has it from an earlier commit, with records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_adds_the_column_that_a_table_does_not_have() {
    let server = Server::shared_postgres();
    let builder = new_table(&server.url()).await;
    let name = name_of(&builder);
    let store = builder.build().unwrap();
    let mut old = completed(1);
    old.expires_at = SystemClock.now().minus(Duration::from_secs(7200));
    let old = Write::new(key("old"), Guard::Absent, Some(old));
    wrote(&store, old).await;
    wrote(&store, claim("new", 1)).await;
    // The index goes with it.
    run(server, &format!("ALTER TABLE {name} DROP COLUMN sweep_slot")).await;
    store.migrate(in_secs(20)).await.unwrap();
    assert_eq!(store.sweep(8.try_into().unwrap(), in_secs(20)).await.unwrap(), 1);
    wrote(&store, complete("new", 1)).await;
    assert!(stored(&store, "old").await.is_none());
}
