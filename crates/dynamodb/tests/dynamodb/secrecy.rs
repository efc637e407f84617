//! Logs and errors of the store, and of the SDK for it, contain nothing of a key or a record, and each line is logged by
//! the call that it is about.

use std::{
    io,
    sync::{Arc, Mutex},
};

use futures_util::future::join_all;
use lambda_idempotency_core::{
    key::Key,
    record::{Fingerprint, IdempotencyRecord},
    store::{Guard, RecordVersion, Store, Verdict, Write},
};
use lambda_idempotency_dynamodb::{DynamoDbStore, DynamoDbStoreBuilder};
use serde_json::json;
use tracing::Instrument as _;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::support::{self, Fault, Fixture, claimed, completed, soon};

const SECRET: &str = "s3cr3t";

/// All logs and the texts of all errors.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    /// Captures the logs of this thread at every level, except those of the embedded server, which logs
    /// requests.
    fn start(&self) -> tracing::subscriber::DefaultGuard {
        let everything = EnvFilter::new("trace,dynoxide=off");
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(everything)
            .with_ansi(false)
            .with_writer(self.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    fn leak(&self) -> Option<String> {
        self.text().lines().find(|line| line.contains(SECRET)).map(ToOwned::to_owned)
    }
}

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn key(n: usize) -> Key {
    Key::from_text(format!("{SECRET}#{n}"))
}

/// A record with a secret in all fields that can have one.
fn secret(by: u128) -> IdempotencyRecord {
    let mut record = completed(by, &format!("\"{SECRET}\""));
    record.fingerprint = Some(Fingerprint::new(SECRET));
    record.error_type = Some(SECRET.into());
    record.steps = Some(format!("\"{SECRET}\"").into());
    record.outbox = record.steps.clone();
    record.payload = record.steps.clone();
    record
}

/// All kinds of requests with all faults; faults of statements only if `statements`.
async fn everything(
    fixture: &Fixture,
    store: &DynamoDbStore,
    statements: bool,
    captured: &Captured,
) {
    let mut faults: Vec<fn() -> Vec<Fault>> = vec![
        Vec::new,
        || vec![Fault::LoseAnswer],
        || vec![Fault::Status(500)],
        || vec![Fault::error("ThrottlingException")],
        || (0..4).map(|_| Fault::error("AccessDeniedException")).collect(),
        || (0..4).map(|_| Fault::error("ValidationException")).collect(),
        || {
            let quoting = format!("The value '{SECRET}' of {SECRET} is \"{SECRET}\"");
            let answer = json!({"__type": "SerializationException", "message": quoting});
            (0..4).map(|_| Fault::Instead(400, answer.clone())).collect()
        },
    ];
    for count in [1, 3] {
        if statements && count > 1 {
            faults.push(|| vec![Fault::Refuse(vec![0, 1], "ThrottlingError")]);
            faults.push(|| vec![Fault::Refuse(vec![0], "ValidationError")]);
        }
        for faults in &faults {
            let all = |guard: fn(IdempotencyRecord) -> Guard,
                       record: Option<IdempotencyRecord>|
             -> Vec<Write> {
                let write = |n| Write::new(key(n), guard(secret(1)), record.clone());
                (0..count).map(write).collect()
            };
            let keys: Vec<Key> = (0..count).map(key).collect();
            let calls = [
                all(|_| Guard::Absent, Some(secret(1))),
                all(|_| Guard::Absent, Some(claimed(2))),
                all(|seen| Guard::Unchanged(RecordVersion::of(&seen)), Some(secret(1))),
                all(|_| Guard::OwnedBy(support::owner(1)), Some(secret(1))),
                all(|seen| Guard::Unchanged(RecordVersion::of(&seen)), None),
            ];
            for writes in calls {
                fixture.wire.fault(faults());
                for verdict in store.write(&writes, soon()).await {
                    if let Verdict::Unknown(error) = verdict {
                        show(captured, &error);
                    }
                }
                for read in store.read(&keys, soon()).await {
                    if let Err(error) = read {
                        show(captured, &error);
                    }
                }
                fixture.wire.heal();
            }
        }
    }
    fixture.put(&json!({"id": {"S": key(7).as_str()}, "status": {"S": SECRET}}));
    for read in store.read(&[key(7)], soon()).await {
        show(captured, &read.unwrap_err());
    }
}

fn show(captured: &Captured, error: &(dyn std::error::Error + 'static)) {
    let mut next = Some(error);
    while let Some(error) = next {
        captured.0.lock().unwrap().extend(format!("{error}\n{error:?}\n{error:#?}\n").bytes());
        next = error.source();
    }
}

type Make = fn(DynamoDbStoreBuilder) -> DynamoDbStoreBuilder;

async fn captured(statements: bool, make: Make) -> Captured {
    let fixture = Fixture::start().await;
    let captured = Captured::default();
    let guard = captured.start();
    let store = make(fixture.builder()).build().unwrap();
    everything(&fixture, &store, statements, &captured).await;
    captured.0.lock().unwrap().extend(format!("{store:?} {store:#?}\n").bytes());
    drop(guard);
    captured
}

#[tokio::test]
async fn logs_and_errors_contain_nothing_of_a_record() {
    let ways: [(bool, Make); 2] =
        [(true, |builder| builder), (false, DynamoDbStoreBuilder::without_partiql)];
    for (statements, make) in ways {
        let captured = captured(statements, make).await;
        assert_eq!(captured.leak(), None);
        let text = captured.text();
        let proofs =
            ["some writes failed", "was refused", "attribute `status`", "dynamodb:PutItem"];
        for proof in proofs {
            assert!(text.contains(proof), "the test did not capture this: {proof}");
        }
    }
}

/// Shows that the test above can fail, and that only one target of the SDK, at `TRACE`, logs requests, as
/// documented.
#[tokio::test]
async fn the_sdk_logs_records_at_trace_if_enabled() {
    let captured = captured(true, DynamoDbStoreBuilder::with_sdk_logs).await;
    assert!(captured.leak().is_some());
    for line in captured.text().lines().filter(|line| line.contains(SECRET)) {
        let level = line.split_whitespace().nth(1);
        let sdk = line.contains(" aws_smithy_runtime::");
        assert!(level == Some("TRACE") && sdk, "{line}");
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
