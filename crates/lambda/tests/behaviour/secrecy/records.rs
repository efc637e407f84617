//! Idempotency records, the decisions about them, and the stores that hold them.

use lambda_idempotency::{
    Failure, MemoryStore, Outcome,
    clock::Timestamp,
    store::{StoreError, StoreErrorKind},
};
use lambda_idempotency_core::{
    admission::{Admission, Claim, Settlement, admit},
    outbox::SendError,
    outcome::ResultKept,
    record::{Fingerprint, IdempotencyRecord, Json, Owner, Status},
    store::{Guard, RecordVersion, Store, Verdict, Write},
};
use lambda_idempotency_engine::batch::Returned;
use lambda_idempotency_keys::Key;
use lambda_idempotency_testkit::faults::{Fault, FaultyStore};

use super::shown::{SECRET, Shown};

fn json(text: &str) -> Json {
    Json::from(format!("\"{text} {SECRET}\""))
}

fn filled() -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
    record.owner = Some(Owner::from_bits(1));
    record.fingerprint = Some(Fingerprint::new("1f38"));
    record.result = Some(json("outcome"));
    record.steps = Some(json("step"));
    record.outbox = Some(json("message"));
    record.payload = Some(json("payload"));
    record.error_type = Some("payments::Declined".into());
    record
}

#[test]
fn records_and_decisions_about_them() {
    let shown = Shown::default();
    let key = Key::from_text(format!("charge#~/{SECRET}"));
    let claim = Claim {
        owner: Owner::from_bits(2),
        lease_until: Timestamp::from_secs(60),
        retention: std::time::Duration::from_secs(60),
        clock_skew: std::time::Duration::from_secs(1),
        fingerprint: None,
        application: None,
        provenance: None,
        payload: None,
    };
    let Admission::Try { held, .. } = admit(&claim, None, Timestamp::EPOCH) else { panic!() };
    let complete =
        Settlement::Complete { result: Some(json("settled")), outbox: Some(json("outbox")) };
    let permanent =
        Settlement::FailPermanently { result: Some(json("failed")), error_type: "E".into() };
    shown.debug(&held.settled(&complete, None, Timestamp::EPOCH));
    shown.debug(&held.settled(&complete, Some(&filled()), Timestamp::EPOCH));
    shown.debug(&admit(&claim, Some(&filled()), Timestamp::EPOCH));
    let mut sent = filled();
    sent.outbox = None;
    shown.debug(&admit(&claim, Some(&sent), Timestamp::EPOCH));
    shown.debug(&held);
    shown.debug(&(complete, permanent));
    shown.debug(&Verdict::Found(Some(filled())));
    let guard = Guard::Unchanged(RecordVersion::of(&filled()));
    shown.debug(&Write::new(key.clone(), guard, Some(filled())));
    shown.debug(&(Returned::Value(json("returned")), key));
    for outcome in [
        Outcome::Executed {
            result: Some(json("executed")),
            kept: ResultKept::Whole,
            completion: None,
        },
        Outcome::Replayed { result: Some(json("replayed")), completion: None },
        Outcome::CompletionLost {
            result: Some(json("lost")),
            error: StoreError::new(StoreErrorKind::Unavailable, "completing"),
        },
        Outcome::Unsent { result: Some(json("unsent")), error: SendError::new("sending") },
        Outcome::Failed {
            failure: Failure::transient(SECRET),
            failed_attempts: 1,
            permanent: false,
        },
    ] {
        shown.debug(&outcome);
    }
    shown.assert_silent(&[
        "Unsent",
        "Replay",
        "Overtaken",
        "Again",
        "Found",
        "Executed",
        "charge#",
    ]);
}

#[tokio::test]
async fn stores_and_their_histories() {
    let shown = Shown::default();
    let store = FaultyStore::new(MemoryStore::new());
    store.inject(Fault::lose_answer());
    let write =
        Write::new(Key::from_text(format!("charge#~/{SECRET}")), Guard::Absent, Some(filled()));
    for _ in 0..2 {
        for verdict in store.write(std::slice::from_ref(&write), Timestamp::EPOCH).await {
            shown.debug(&verdict);
        }
    }
    shown.debug(&store);
    shown.debug(&store.history());
    shown.assert_silent(&["FaultyStore", "Unknown", "Found", "MemoryStore"]);
}
