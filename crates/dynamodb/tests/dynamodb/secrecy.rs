//! Logs and errors of the store, and of the SDK for it, contain nothing of a key or a record, and each line is logged by
//! the call that it is about.

#[path = "../../../lambda/tests/behaviour/secrecy/capture.rs"]
#[allow(dead_code, reason = "shared with `behaviour`, which uses all of it")]
mod capture;

use futures_util::future::join_all;
use lambda_idempotency_core::{
    key::Key,
    record::{Fingerprint, IdempotencyRecord},
    store::{Guard, RecordVersion, Store, Verdict, Write},
};
use lambda_idempotency_dynamodb::DynamoDbStoreBuilder;
use serde_json::json;
use tracing::Instrument as _;

use self::capture::{CANARY, Captured};
use crate::support::{self, Fault, Fixture, claimed, completed, soon};

fn key(n: usize) -> Key {
    Key::from_text(format!("{CANARY}#{n}"))
}

/// A record with the canary in all fields that can have one.
fn planted(by: u128) -> IdempotencyRecord {
    let mut record = completed(by, &format!("\"{CANARY}\""));
    record.fingerprint = Some(Fingerprint::new(CANARY));
    record.error_type = Some(CANARY.into());
    record.steps = Some(format!("\"{CANARY}\"").into());
    record.outbox = record.steps.clone();
    record.payload = record.steps.clone();
    record
}

/// All kinds of requests with all faults; those of statements only if there are any.
async fn captured(
    statements: bool,
    make: fn(DynamoDbStoreBuilder) -> DynamoDbStoreBuilder,
) -> Captured {
    let (fixture, captured) = (Fixture::start().await, Captured::default());
    let guard = captured.start();
    let store = make(fixture.builder()).build().unwrap();
    let quoting = format!("The value '{CANARY}' of {CANARY} is \"{CANARY}\"");
    let quoting = json!({"__type": "SerializationException", "message": quoting});
    let four = |fault: &dyn Fn() -> Fault| (0..4).map(|_| fault()).collect::<Vec<_>>();
    let faults: [&dyn Fn() -> Vec<Fault>; 9] = [
        &Vec::new,
        &|| vec![Fault::LoseAnswer],
        &|| vec![Fault::Status(500)],
        &|| vec![Fault::error("ThrottlingException")],
        &|| four(&|| Fault::error("AccessDeniedException")),
        &|| four(&|| Fault::error("ValidationException")),
        &|| four(&|| Fault::Instead(400, quoting.clone())),
        &|| vec![Fault::Refuse(vec![0, 1], "ThrottlingError")],
        &|| vec![Fault::Refuse(vec![0], "ValidationError")],
    ];
    for (count, faults) in [1, 3].into_iter().flat_map(|n| faults.iter().map(move |it| (n, it))) {
        let faults = || {
            faults()
                .into_iter()
                .filter(|it| !matches!(it, Fault::Refuse(..)) || (statements && count > 1))
        };
        let keys: Vec<Key> = (0..count).map(key).collect();
        let unchanged = || Guard::Unchanged(RecordVersion::of(&planted(1)));
        for (guard, record) in [
            (Guard::Absent, Some(planted(1))),
            (Guard::Absent, Some(claimed(2))),
            (unchanged(), Some(planted(1))),
            (Guard::OwnedBy(support::owner(1)), Some(planted(1))),
            (unchanged(), None),
        ] {
            let write = |n| Write::new(key(n), guard.clone(), record.clone());
            let writes: Vec<Write> = (0..count).map(write).collect();
            fixture.wire.fault(faults());
            for verdict in store.write(&writes, soon()).await {
                if let Verdict::Unknown(error) = verdict {
                    captured.error(&error);
                }
            }
            for error in store.read(&keys, soon()).await.into_iter().filter_map(Result::err) {
                captured.error(&error);
            }
            fixture.wire.heal();
        }
    }
    fixture.put(&json!({"id": {"S": key(7).as_str()}, "status": {"S": CANARY}}));
    captured.error(&store.read(&[key(7)], soon()).await.remove(0).unwrap_err());
    captured.debug(&store);
    drop(guard);
    captured
}

#[tokio::test]
async fn logs_and_errors_contain_nothing_of_a_record() {
    let proofs = "some writes failed|was refused|attribute `status`|dynamodb:PutItem";
    captured(true, |builder| builder).await.assert_silent(proofs);
    captured(false, DynamoDbStoreBuilder::without_partiql).await.assert_silent(proofs);
}

/// Shows that the test above can fail, and that only one target of the SDK, at `TRACE`, logs requests, as
/// documented.
#[tokio::test]
async fn the_sdk_logs_records_at_trace_if_enabled() {
    let leaks = captured(true, DynamoDbStoreBuilder::with_sdk_logs).await.leaks();
    assert!(!leaks.is_empty());
    for line in leaks {
        let level = line.split_whitespace().nth(1);
        assert!(level == Some("TRACE") && line.contains(" aws_smithy_runtime::"), "{line}");
    }
}

/// Whichever call is polled sends the request for all of them.
#[tokio::test]
async fn a_refused_statement_is_logged_by_its_own_call() {
    let captured = Captured::default();
    let fixture = Fixture::start().await;
    let store = fixture.store();
    let _capturing = captured.start();
    fixture.wire.fault([Fault::Pass, Fault::Refuse(vec![1], "ValidationError")]);
    let calls = (0..4).map(|n| {
        let store = &store;
        let claim = |n| Write::new(key(n), Guard::Absent, Some(claimed(n as u128)));
        async move { store.write(&[claim(n), claim(n + 10)], soon()).await }
            .instrument(tracing::info_span!("call", n))
    });
    for verdict in join_all(calls).await.into_iter().flatten() {
        assert!(matches!(verdict, Verdict::Written), "{verdict:?}");
    }
    let text = captured.text();
    let logged: Vec<&str> = text.lines().filter(|line| line.contains("was refused")).collect();
    assert!(matches!(&*logged, [line] if line.contains("call{n=1}")), "{logged:?}");
}
