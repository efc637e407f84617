//! The commands with stores in PostgreSQL and Redis, in servers that the tests start. They need these programs, which
//! `cargo test` does not install, so it does not run this program:
//!
//! ```console
//! $ bash tests/run stores
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of a test"
)]

#[path = "../ran/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod ran;
#[path = "../../../redis/tests/redis/server.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod redis;
#[path = "../../../../tests/servers.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod servers;
#[path = "../records/verbs.rs"]
mod verbs;
#[path = "../../../../tests/writes.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod writes;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use lambda_idempotency_core::{
    key::Key,
    store::{Guard, Store, Verdict, Write},
};
use lambda_idempotency_postgres::PostgresStore;
use serde_json::Value;

use ran::Ran;
use servers::{Server, USER, program};

/// Runs the command with the variable that names the store.
fn command(store: &str, arguments: &[&str]) -> Ran {
    let mut command = ran::command(arguments);
    Ran::from(command.env("IDEMPOTENCY_STORE", store).env_remove("IDEMPOTENCY_TABLE"))
}

/// The example function, which Cargo has built beside the command for the end-to-end tests of the same name.
fn orders() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_lambda-idempotency")).with_file_name("orders-under-test")
}

/// Six messages with four orders, which the example function gets twice: each order is placed once.
fn invoke(store: &str) -> Value {
    let events = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events/sqs-duplicates.json");
    let (binary, events) = (orders(), events.display().to_string());
    let arguments =
        ["invoke", "--json", "--timeout", "60", "--repeat", "2", "--store", store, "--binary"];
    let arguments = [&arguments[..], &[binary.to_str().unwrap(), &events]].concat();
    let report = command("", &arguments).code(0).json();
    assert!(report["tables"]["idempotency"].is_null(), "the records are in the store");
    for order in report["tables"]["orders"].as_array().unwrap() {
        assert_eq!(order["placed"]["N"], "1", "{order}");
    }
    report
}

/// What every store answers in the same way.
fn everything_works(store: &str) {
    command(store, &["records", "table", "check"]).code(0);
    let first = invoke(store);
    assert_eq!(first["summary"]["executed"], 4, "{}", first["summary"]);
    let listed = command(store, &["records", "list", "--json"]).code(0).json();
    let records = listed["records"].as_array().unwrap();
    assert_eq!(records.len(), 4, "{listed}");
    assert!(records.iter().all(|record| record["state"] == "completed"), "{listed}");
    let key = records[0]["key"].as_str().unwrap();
    let shown = command(store, &["records", "show", key, "--json"]).code(0).json();
    assert_eq!(shown["records"][0]["provenance"]["source"], "sqs", "{shown}");
    // One order is to be placed again, and only it is.
    command(store, &["records", "free", key, "--yes"]).code(0);
    command(store, &["records", "show", key]).code(1);
    let again = invoke(store);
    assert_eq!(again["summary"]["executed"], 1, "{}", again["summary"]);
}

/// Every verb on `store`, which the command reaches with these options.
async fn every_verb(name: &str, store: &dyn Store, reached: &[&str]) {
    let records = |code: i32, arguments: &[&str]| {
        let ran = command("", &[&["records"], arguments, reached].concat()).code(code);
        if ran.out.is_empty() { Value::Null } else { ran.json() }
    };
    let options = ["--operation", "place", "--key", "orderId"];
    verbs::every_verb(name, &options, records, async |key: &str| hold(store, key).await).await;
}

/// Claims this key.
async fn hold(store: &dyn Store, key: &str) {
    let claim = Write::new(Key::from_text(key), Guard::Absent, Some(writes::claimed(1)));
    let verdicts = store.write(&[claim], writes::in_secs(60)).await;
    assert!(matches!(verdicts[..], [Verdict::Written]), "{verdicts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_works_by_key_and_by_event_in_postgres() {
    let server = Server::postgres(&[]);
    let reached = ["--store", &server.url(), "--table", "orders"];
    let store = migrated(&server, "orders").await;
    every_verb("postgres", &store, &reached).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_works_by_key_and_by_event_in_redis_with_a_prefix() {
    let server = Server::redis(&[]);
    let reached = ["--store", &server.url(), "--redis-prefix", "orders:"];
    let store = server.builder().prefix("orders:").build().unwrap();
    every_verb("redis", &store, &reached).await;
}

/// A store in this table, which is made.
async fn migrated(server: &Server, table: &str) -> PostgresStore {
    let store = PostgresStore::builder(&server.url()).table(table).build().unwrap();
    store.migrate(writes::in_secs(60)).await.unwrap();
    store
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_the_records_of_a_function_and_of_the_command() {
    // The check wants `fsync`, which other tests turn off.
    let server = Server::postgres(&[]);
    let missing = command(&server.url(), &["records", "table", "check", "--json"]).code(1).json();
    assert!(missing["problems"][0].as_str().unwrap().contains("does not exist"), "{missing}");
    migrated(&server, "idempotency").await;
    everything_works(&server.url());
    // Who only looks needs no right to write.
    psql(&server, "CREATE ROLE reader LOGIN; GRANT SELECT ON idempotency TO reader");
    let reader = server.url().replace(USER, "reader");
    let listed = command(&reader, &["records", "list", "--json"]).code(0).json();
    let key = listed["records"][0]["key"].as_str().unwrap();
    command(&reader, &["records", "free", key, "--yes"]).refused("INSERT, UPDATE and DELETE");
    command(&reader, &["records", "table", "check"]).code(1);
    psql(&server, "ALTER ROLE reader SET default_transaction_read_only = on");
    command(&reader, &["records", "show", key]).code(0);
    command(&reader, &["records", "free", key, "--yes"]).refused("the session is read-only");
}

fn psql(server: &Server, text: &str) {
    let mut psql = Command::new(program("psql"));
    let output = psql.arg(server.url()).args(["-c", text]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The time of the server is an hour behind that of this machine. By this machine's clock the claim lapsed an hour ago.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_claim_is_live_whatever_the_clock_of_this_machine_says() {
    let server = Server::postgres(&[]);
    migrated(&server, "idempotency").await;
    let run = |text: &str| psql(&server, text);
    let in_a_minute = "(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::bigint - 3540000";
    run(&format!(
        "INSERT INTO idempotency (key, status, owner, failed_attempts, lost_attempts, consecutive_losses, \
         fence, lease_until, expires_at) VALUES ('orders#1', 'INPROGRESS', \
         '00000000-0000-0000-0000-000000000001', 0, 0, 0, 0, {in_a_minute}, {in_a_minute})"
    ));
    let state = || {
        let shown = command(&server.url(), &["records", "show", "orders#1", "--json"]).code(0);
        (shown.json()["records"][0]["state"].as_str().unwrap().to_owned(), shown.err)
    };
    assert_eq!(state().0, "expired", "where both clocks agree");
    run("CREATE SCHEMA wrong; \
         CREATE FUNCTION wrong.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS \
         $$ SELECT pg_catalog.clock_timestamp() - interval '1 hour' $$");
    run("ALTER ROLE tests SET search_path = wrong, public, pg_catalog");
    let (state, said) = state();
    assert_eq!(state, "in-progress", "{said}");
    assert!(said.contains("ahead of PostgreSQL's"), "{said}");
    let freed = command(&server.url(), &["records", "free", "orders#1", "--yes"]);
    assert_ne!(freed.code, Some(0), "{}{}", freed.out, freed.err);
    command(&server.url(), &["records", "show", "orders#1"]).code(0);
}

/// What the variable says is not known, so no other store is used in its place.
#[cfg(unix)]
#[test]
fn a_variable_that_is_not_text_is_refused() {
    use std::os::unix::ffi::OsStringExt as _;
    for variable in ["IDEMPOTENCY_STORE", "IDEMPOTENCY_TABLE"] {
        let mut list = ran::command(["records", "list"]);
        list.env_remove("IDEMPOTENCY_STORE");
        list.env(variable, std::ffi::OsString::from_vec(b"redis://s3cr3t\xff".to_vec()));
        let said = Ran::from(&mut list).refused(&format!("{variable} is not valid UTF-8")).err;
        assert!(!said.contains("s3cr3t"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_keeps_the_records_of_a_function_and_of_the_command() {
    let server = Server::redis(&[]);
    everything_works(&server.url());
    let evicts = Server::redis(&["--maxmemory-policy", "allkeys-lru"]);
    let check = command(&evicts.url(), &["records", "table", "check", "--json"]).code(1).json();
    assert!(check["problems"][0].as_str().unwrap().contains("allkeys-lru"), "{check}");
    command(&evicts.url(), &["records", "list"]).refused("--allow-eviction");
    let mute = Server::redis(&[]);
    mute.command(&["ACL", "SETUSER", "default", "-info"]).await;
    command(&mute.url(), &["records", "list"]).refused("--allow-eviction");
    for server in [&evicts, &mute] {
        hold(&server.builder().allow_eviction().build().unwrap(), "place#a").await;
        let records = |arguments: &[&str]| {
            let all = [&["records"], arguments, &["--allow-eviction"]].concat();
            command(&server.url(), &all).code(0)
        };
        assert_eq!(records(&["list", "--json"]).json()["records"][0]["key"], "place#a");
        records(&["release", "place#a", "--even-if-held", "--yes"]);
        records(&["table", "check"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_comes_from_a_variable_and_is_never_shown() {
    let server = Server::redis(&["--requirepass", "s3cr3t"]);
    let list =
        ["records", "list", "--store", &server.url(), "--password-from-env", "CACHE_PASSWORD"];
    Ran::from(ran::command(list).env("CACHE_PASSWORD", "s3cr3t")).code(0);
    command("", &list).refused("CACHE_PASSWORD is not set");
    let wrong = server.url().replace("redis://", "redis://:wr0ng@");
    for arguments in [&["records", "list"][..], &["records", "table", "check"]] {
        let refused = command(&wrong, arguments).code(2);
        assert!(!format!("{}{}", refused.out, refused.err).contains("wr0ng"), "{}", refused.err);
    }
}

/// Its process logs no line that would say whose key it claimed.
#[test]
fn a_message_that_kills_its_process_is_one_key_of_the_page() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (body, page) = (folder.join("deadly.json"), folder.join("deadly.html"));
    let order = r#"{"orderId":"o-1","customer":"c","sku":"s","quantity":1,"dieTimes":9}"#;
    std::fs::write(&body, order).unwrap();
    let [body, page] = [&body, &page].map(|path| path.to_str().unwrap());
    let binary = orders().with_file_name("scripted_orders").display().to_string();
    let options = ["--max-receive-count", "1", "--report", page, "--binary", &binary];
    command("", &[&["invoke", "--sqs-body", body][..], &options].concat()).code(1);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<h2>Keys (1)</h2>"), "{page}");
}

/// The chaos rig until Ctrl-C: it ends its processes, and removes what they kept.
#[cfg(unix)]
#[test]
fn chaos_leaves_nothing_when_it_is_interrupted() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interrupted");
    std::fs::create_dir_all(&folder).unwrap();
    let names = || {
        let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
    };
    let chaos = ran::command(["chaos", "--deliveries", "5000", "--binary"])
        .arg(orders().with_file_name("scripted_orders"))
        .env("TMPDIR", &folder)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let start = std::time::Instant::now();
    let has_effects = |name: &String| {
        name.ends_with(".ledger") && folder.join(name).metadata().is_ok_and(|file| file.len() > 0)
    };
    while !names().iter().any(has_effects) {
        assert!(start.elapsed().as_secs() < 60, "no effect comes: {:?}", names());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let signal = Command::new("kill").args(["-INT", &chaos.id().to_string()]).status().unwrap();
    assert!(signal.success());
    let ended = chaos.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!((ended.status.code(), names()), (Some(130), vec![]), "{said}");
}

/// What does not fit together is said before anything is built or started.
#[test]
fn chaos_refuses_faults_that_the_function_cannot_get_before_it_builds() {
    // There is no such package, and nobody looks for it.
    let mut chaos = ran::command(["chaos", "--package", "n0ne", "--faults", "conflict"]);
    let said = Ran::from(&mut chaos).refused("needs transactions").err;
    assert!(!said.contains("n0ne"), "{said}");
}

#[test]
fn a_store_that_cannot_be_read_is_refused_without_being_repeated() {
    for (store, arguments, remedy) in [
        ("mysql://u:s3cr3t@db/orders", &["records", "list"][..], "dynamodb:TABLE"),
        ("postgres://u:s3cr3t@db:port/orders", &["records", "list"], "percent-encoded"),
        ("rediss://u:s3cr3t@cache:port", &["records", "table", "check"], "percent-encoded"),
        ("redis://u:s3cr3t@cache", &["records", "list", "--table", "orders"], "--table"),
        ("dynamodb:orders", &["records", "list", "--table", "others"], "two tables"),
    ] {
        let refused = command(store, arguments).refused(remedy);
        assert!(!refused.err.contains("s3cr3t"), "{store}: {}", refused.err);
    }
}
