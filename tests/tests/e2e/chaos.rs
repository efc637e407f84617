//! A short run of the chaos rig with all faults, and its audit. Broken functions test the audit
//! itself.
//!
//! `docs/chaos.md` has a long run.

use std::{collections::BTreeSet, time::Duration};

use lambda_idempotency_chaos::{
    Cause, Error, FaultKind, Mode, Offence, Origin, Report, Settings, Template, run,
};
use lambda_idempotency_local::{Outcome, Table};
use lambda_idempotency_tests::events::{
    batch, event, kinesis, message, message_in_group, notification,
};
use serde_json::{Value, json};

fn settings(deliveries: usize, faults: &[FaultKind]) -> Settings {
    let mut settings = Settings::new(env!("CARGO_BIN_EXE_scripted_orders"));
    settings.deliveries = deliveries;
    settings.faults = faults.iter().copied().collect();
    if faults.is_empty() { without_faults(settings) } else { settings }
}

/// Without faults nothing is late but the machine. A process that misses its deadline is a fault, too: what it does
/// twice has a cause.
fn without_faults(settings: Settings) -> Settings {
    Settings { faults: BTreeSet::new(), timeout: Duration::from_secs(30), ..settings }
}

fn in_mode(mode: Mode, deliveries: usize) -> Settings {
    let settings = Settings::with_mode(env!("CARGO_BIN_EXE_scripted_orders"), mode);
    Settings { deliveries, ..settings }
}

/// With this variable, which breaks the function.
async fn broken(mut settings: Settings, variable: &str, value: &str) -> Report {
    settings.env.push((variable.to_owned(), value.to_owned()));
    run(&settings, |_| {}).await.unwrap()
}

/// Runs, and expects that nothing is wrong and that each of these faults occurred.
async fn sound(settings: &Settings, faults: impl IntoIterator<Item = FaultKind>) -> Report {
    let report = run(settings, |_| {}).await.unwrap();
    assert!(report.findings.violations.is_empty(), "{report}");
    assert_eq!(report.acknowledged + report.dead_lettered, report.messages + report.probes);
    for kind in faults {
        assert!(report.injected.contains_key(&kind), "no {kind}: {report}");
    }
    report
}

/// Every effect that is doubled is found, and no cause excuses one.
fn all_doubled_are_found(report: &Report) {
    let doubled = report.findings.count(Offence::Doubled);
    assert!(doubled > 0 && doubled == report.findings.effects - report.keys as u64, "{report}");
}

#[tokio::test]
async fn with_all_faults_no_record_is_lost_stuck_or_doubled_without_a_cause() {
    use FaultKind::{Drop, Error, Kill, Outage, Slow, Stop, Throttle, Timeout};
    let faults = [Kill, Stop, Timeout, Throttle, Error, Drop, Slow, Outage];
    let all: Vec<_> = Mode::Claim.faults().collect();
    let report = sound(&settings(1500, &all), faults).await;
    assert!(report.dead_lettered > 0 && report.executions > report.keys, "{report}");
    for outcome in [Outcome::Executed, Outcome::Replayed, Outcome::Coalesced, Outcome::Failed] {
        assert!(report.outcome(&outcome) > 0, "no {outcome}: {report}");
    }
}

#[tokio::test]
async fn duplicates_alone_double_nothing() {
    let report = sound(&settings(1000, &[]), []).await;
    assert!(report.findings.doubled.is_empty(), "{report}");
    assert_eq!(report.findings.effects, report.keys as u64, "{report}");
}

/// Also a key that differs between two messages of the same order.
#[tokio::test]
async fn the_audit_finds_a_function_without_protection_and_a_key_that_misses_duplicates() {
    all_doubled_are_found(&broken(settings(300, &[]), "SCRIPTED_UNPROTECTED", "1").await);
    let report = broken(settings(300, &[]), "ORDERS_SQS_KEY", "record:messageId").await;
    assert!(report.findings.count(Offence::Doubled) > 0, "{report}");
    assert!(report.findings.count(Offence::RanAgain) > 0, "{report}");
}

/// Effects in the transaction that completes their key: no cause excuses a doubled one. Without claims, processes are killed
/// anywhere, deliveries overlap, and duplicates may run.
#[tokio::test]
async fn with_all_faults_no_effect_in_a_transaction_is_doubled_lost_or_stuck() {
    for (mode, deliveries) in [(Mode::Transaction, 500), (Mode::Optimistic, 260)] {
        let settings = in_mode(mode, deliveries);
        let of_all = settings.faults.iter().filter(|it| FaultKind::FOR_ANY_FUNCTION.contains(it));
        let faults: Vec<_> = of_all.copied().filter(|_| mode == Mode::Transaction).collect();
        let report = sound(&settings, faults).await;
        assert!(report.findings.doubled.is_empty(), "{report}");
        // Orders that fail permanently are not placed; every other order is placed once.
        let effects = report.findings.effects;
        assert!(effects > 0 && effects < report.keys as u64, "{report}");
        // Processes were killed between the collection of an effect and its commit, and the store failed.
        assert!(report.findings.not_committed > 0, "{report}");
        assert!(mode != Mode::Optimistic || report.findings.ran_again > 0, "{report}");
    }
}

/// A worker that commits its effect by itself, and completes the key afterwards, doubles it: in the mode for claims every
/// one of its doubled effects would have a cause.
#[tokio::test]
async fn the_audit_finds_effects_outside_of_the_commit() {
    let faults = [FaultKind::Kill, FaultKind::Timeout].into();
    let outside = Settings { faults, ..in_mode(Mode::Transaction, 200) };
    let report = broken(outside, "SCRIPTED_OUTSIDE", "1").await;
    all_doubled_are_found(&report);
    assert!(report.findings.doubled.is_empty(), "{report}");
}

/// The step of an order is repeated only if its worker ended before the result was recorded.
#[tokio::test]
async fn with_all_faults_no_recorded_step_runs_again() {
    let report = sound(&in_mode(Mode::Steps, 260), []).await;
    assert!(report.findings.answered_steps > 0, "{report}");
    assert!(report.findings.doubled.contains_key(&Cause::Killed), "{report}");
}

#[tokio::test]
async fn transactions_that_are_cancelled_or_unanswered_double_nothing() {
    let faults = [FaultKind::Conflict, FaultKind::Drop];
    let settings = Settings { faults: faults.into(), ..in_mode(Mode::Transaction, 200) };
    let report = sound(&settings, faults).await;
    assert_eq!(report.findings.effects, report.keys as u64, "{report}");
}

#[tokio::test]
async fn a_mode_and_its_faults_have_to_fit() {
    let charges = || Settings { faults: BTreeSet::new(), ..own(env!("CARGO_BIN_EXE_charges"), 10) };
    for (settings, why) in [
        (settings(10, &[FaultKind::Conflict]), "the fault `conflict` needs transactions"),
        (Settings { mode: Mode::Transaction, ..charges() }, "of the scripted orders function"),
        (Settings { faults: [FaultKind::Panic].into(), ..charges() }, "`panic` needs a function"),
    ] {
        match run(&settings, |_| {}).await {
            Err(Error::Settings(text)) => assert!(text.contains(why), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

/// Settings for a function that follows no scripts, as `chaos --sqs-body` has them.
fn own(binary: &str, deliveries: usize) -> Settings {
    let template = Template::new(r#"{"paymentId":"p","amount":500}"#, "paymentId").unwrap();
    Settings { deliveries, ..Settings::for_any_function(binary, template) }
}

/// An event with one record that pays one payment.
fn payment(origin: Origin) -> Value {
    let payment = json!({ "paymentId": "p", "amount": 500 });
    match origin {
        Origin::Sqs => batch([message("m", &payment)]),
        Origin::SqsFifo => batch([message_in_group("m", "g", &payment)]),
        Origin::Sns => notification("n", &payment),
        Origin::EventBridge => event("e", &payment),
        Origin::Kinesis => kinesis([(0, 1, "p", payment)]),
        Origin::DynamoDb => json!({ "Records": [{
            "eventSource": "aws:dynamodb", "eventID": "e", "eventName": "INSERT",
            "eventSourceARN": "arn:aws:dynamodb:eu-west-1:1:table/payments/stream/s",
            "dynamodb": {
                "SequenceNumber": "1", "Keys": { "paymentId": { "S": "p" } },
                "NewImage": { "paymentId": { "S": "p" }, "amount": { "N": "500" } },
            },
        }] }),
        other => panic!("{other} has no sample here"),
    }
}

fn own_event(binary: &str, origin: Origin, deliveries: usize) -> Settings {
    let template = Template::of_event(&payment(origin).to_string(), "paymentId").unwrap();
    assert_eq!(template.origin(), origin);
    Settings { deliveries, ..Settings::for_any_function(binary, template) }
}

#[tokio::test]
async fn any_function_is_audited_with_every_source_and_all_faults() {
    for origin in Origin::ALL {
        let settings = own_event(env!("CARGO_BIN_EXE_charges"), *origin, 120);
        let report = sound(&settings, [FaultKind::Kill, FaultKind::Stop]).await;
        assert_eq!((report.dead_lettered, report.source), (0, *origin), "{report}");
        assert!(report.findings.effects >= report.keys as u64, "{report}");
        assert!(report.injected.len() > 3, "hardly any faults of the store: {report}");
    }
}

#[tokio::test]
async fn the_audit_finds_records_of_a_shard_or_group_in_the_wrong_order() {
    for origin in [Origin::Kinesis, Origin::SqsFifo] {
        let binary = env!("CARGO_BIN_EXE_unprotected_charges");
        let ordered = without_faults(own_event(binary, origin, 200));
        let report = run(&ordered, |_| {}).await.unwrap();
        assert_eq!(report.findings.count(Offence::OutOfOrder), 0, "{report}");
        all_doubled_are_found(&report);
        let env = vec![("CHARGES_REVERSED".to_owned(), "1".to_owned())];
        let report = run(&Settings { env, ..ordered }, |_| {}).await.unwrap();
        assert!(report.findings.count(Offence::OutOfOrder) > 0, "{report}");
    }
}

#[tokio::test]
async fn a_function_that_reports_no_effect_cannot_be_audited() {
    let template =
        Template::new(r#"{"orderId":"o","customer":"c","sku":"s","quantity":1}"#, "orderId")
            .unwrap();
    let settings = Settings::for_any_function(env!("CARGO_BIN_EXE_orders-under-test"), template);
    let mut settings = without_faults(settings);
    settings.deliveries = 20;
    settings.tables = vec![Table::new("orders", "orderId")];
    match run(&settings, |_| {}).await {
        Err(Error::NoEffects { deliveries: 20.., outcomes, .. }) => {
            assert!(outcomes.iter().any(|outcome| outcome.contains("executed")), "{outcomes:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn why_there_was_no_effect_is_told() {
    // The messages do not fit the function: no handler is called.
    let template = Template::new(r#"{"paymentId":"p"}"#, "paymentId").unwrap();
    let settings = Settings::for_any_function(env!("CARGO_BIN_EXE_charges"), template);
    let visibility = Duration::from_millis(10);
    let settings = Settings { deliveries: 5, visibility, ..without_faults(settings) };
    let error = run(&settings, |_| {}).await.unwrap_err();
    let in_vain = matches!(error, Error::NoEffects { deliveries: 50..100, .. });
    assert!(in_vain, "it goes on as long as its patience: {error}");
    let error = error.to_string();
    assert!(error.contains("rejected") && error.contains("does not fit"), "{error}");
    let settings = Settings { env: vec![("IDEMPOTENCY_TABLE".into(), String::new())], ..settings };
    let error = run(&settings, |_| {}).await.unwrap_err().to_string();
    assert!(error.contains("does not start") && error.contains("IDEMPOTENCY_TABLE"), "{error}");
}
