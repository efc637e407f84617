//! Short runs of the chaos rig with stores in servers that are killed and cut off. Broken servers and functions test the
//! audit itself.
//!
//! `docs/chaos.md` has longer runs.

use std::time::Duration;

use lambda_idempotency_chaos::{FaultKind, Mode, Offence, Report, Settings, TestedStore, run};

const POSTGRES: TestedStore = TestedStore::Postgres;
const REDIS: TestedStore = TestedStore::Redis;

fn settings(store: TestedStore, mode: Mode, deliveries: usize) -> Settings {
    let settings = Settings::with_mode(env!("CARGO_BIN_EXE_scripted_orders"), mode);
    Settings { deliveries, ..settings.with_store(store) }
}

/// Runs, and expects that the store got each of its faults and that nothing is wrong afterwards.
async fn nothing_is_wrong(settings: &Settings) -> Report {
    let report = run(settings, |_| {}).await.unwrap();
    assert!(report.findings.violations.is_empty(), "{report}");
    assert_eq!(report.acknowledged + report.dead_lettered, report.messages + report.probes);
    use FaultKind::{Drop, Kill, Outage, ServerKill, Silence, Slow, Stop};
    for kind in [Kill, Stop, Drop, Slow, Outage, Silence, ServerKill] {
        assert!(report.injected.contains_key(&kind), "no {kind}: {report}");
    }
    report
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run stores` runs this"]
async fn with_all_faults_of_postgres_no_record_is_lost_stuck_or_doubled_without_a_cause() {
    nothing_is_wrong(&settings(POSTGRES, Mode::Claim, 500)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Redis: `bash tests/run stores` runs this"]
async fn with_all_faults_of_redis_no_record_is_lost_stuck_or_doubled_without_a_cause() {
    nothing_is_wrong(&settings(REDIS, Mode::Claim, 500)).await;
}

/// The effects are rows of the function's own table, which shows each that was placed twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run stores` runs this"]
async fn with_all_faults_of_postgres_no_effect_in_a_transaction_is_doubled_or_lost() {
    let report = nothing_is_wrong(&settings(POSTGRES, Mode::Transaction, 500)).await;
    assert!(report.findings.doubled.is_empty(), "{report}");
    assert!(
        report.findings.effects > 0 && report.findings.effects < report.keys as u64,
        "{report}"
    );
    assert!(report.findings.not_committed > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run stores` runs this"]
async fn with_all_faults_of_postgres_no_message_of_a_committed_order_is_unsent() {
    let settings = settings(POSTGRES, Mode::Transaction, 200).with_messages();
    let report = run(&settings, |_| {}).await.unwrap();
    assert!(
        report.findings.violations.is_empty() && report.findings.doubled.is_empty(),
        "{report}"
    );
    assert_eq!(
        (report.findings.sent, report.received),
        (report.published as u64, report.published)
    );
    assert!(report.relayed > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL and Redis: `bash tests/run stores` runs this"]
async fn small_runs_in_the_other_modes_of_each_store_are_right() {
    for (store, mode) in
        [(POSTGRES, Mode::Optimistic), (POSTGRES, Mode::Steps), (REDIS, Mode::Steps)]
    {
        let report = run(&settings(store, mode, 40), |_| {}).await.unwrap();
        assert!(report.findings.violations.is_empty(), "{mode}: {report}");
        assert!(report.requests > 0, "the function has reached the server: {report}");
    }
}

/// A server that keeps nothing forgets claims and completions when it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Redis: `bash tests/run stores` runs this"]
async fn the_audit_finds_a_redis_that_forgets_what_it_has_confirmed() {
    let mut settings = settings(REDIS, Mode::Claim, 300);
    settings.faults = [FaultKind::ServerKill].into();
    settings.server_settings = vec![("appendonly".to_owned(), "no".to_owned())];
    let report = run(&settings, |_| {}).await.unwrap();
    assert!(report.injected.contains_key(&FaultKind::ServerKill), "{report}");
    assert!(report.findings.count(Offence::Store) > 0, "{report}");
    assert!(report.findings.count(Offence::Doubled) > 0, "{report}");
}

/// A worker that commits its effect in a transaction of its own, and completes the key afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run stores` runs this"]
async fn the_audit_finds_an_effect_outside_of_the_transaction_of_postgres() {
    let mut settings = settings(POSTGRES, Mode::Transaction, 200);
    settings.faults = [FaultKind::Kill, FaultKind::Timeout].into();
    settings.env.push(("SCRIPTED_OUTSIDE".to_owned(), "1".to_owned()));
    let report = run(&settings, |_| {}).await.unwrap();
    let doubled = report.findings.count(Offence::Doubled);
    assert!(doubled > 0 && doubled == report.findings.effects - report.keys as u64, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL and Redis: `bash tests/run stores` runs this"]
async fn the_audit_finds_a_function_without_protection_beside_each_store() {
    for store in [POSTGRES, REDIS] {
        let mut settings = settings(store, Mode::Claim, 150);
        settings.faults.clear();
        // What a process does twice that misses its deadline would have a cause.
        settings.timeout = Duration::from_secs(30);
        settings.env.push(("SCRIPTED_UNPROTECTED".to_owned(), "1".to_owned()));
        let report = run(&settings, |_| {}).await.unwrap();
        let doubled = report.findings.count(Offence::Doubled);
        assert!(doubled > 0 && doubled == report.findings.effects - report.keys as u64, "{report}");
    }
}
