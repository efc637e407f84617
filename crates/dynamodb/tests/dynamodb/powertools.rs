//! Sharing a table with Powertools for AWS Lambda, tested with recorded requests of Powertools.

use crate::support::{
    Fixture, PlainVerdict, claimed, claims, completed, owner, plain, released, soon,
};
use dynoxide::Database;
use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    record::Status,
    store::{Guard, RecordVersion, Store, Verdict, Write},
};
use lambda_idempotency_dynamodb::DynamoDbStore;
use serde_json::{Value, json};

struct Case {
    name: String,
    result: Option<Value>,
    put: Value,
    update: Value,
}

impl Case {
    fn all() -> Vec<Self> {
        let data: Value = serde_json::from_str(include_str!("data/powertools.json")).unwrap();
        let cases = data["cases"].as_array().unwrap().iter().map(|case| Self {
            name: format!("{} {}", case["library"], case["name"]),
            result: serde_json::from_str(case["result"].as_str().unwrap()).ok(),
            put: case["put"].clone(),
            update: case["update"].clone(),
        });
        cases.collect()
    }

    fn key(&self) -> Key {
        Key::from_text(self.put["Item"]["id"]["S"].as_str().unwrap())
    }

    /// Powertools tries to claim the key; returns whether it did.
    fn claims(&self, db: &Database) -> bool {
        db.put_item(serde_json::from_value(self.put.clone()).unwrap()).is_ok()
    }

    fn completes(&self, db: &Database) {
        db.update_item(serde_json::from_value(self.update.clone()).unwrap()).unwrap();
    }
}

/// Writes alone or in a batch; returns the first verdict.
async fn send(store: &DynamoDbStore, write: Write, in_batch: bool) -> Verdict {
    let mut writes = vec![write];
    if in_batch {
        writes.extend(claims(2));
    }
    store.write(&writes, soon()).await.remove(0)
}

#[tokio::test]
async fn a_claim_of_powertools_is_read() {
    for case in Case::all() {
        let fixture = Fixture::start().await;
        assert!(case.claims(&fixture.db));
        let found = fixture.store().read(&[case.key()], soon()).await.remove(0).unwrap().unwrap();
        assert_eq!(found.status, Status::InProgress, "{}", case.name);
        assert_eq!(found.owner, None);
        assert_eq!(found.lease_until, Some(Timestamp::from_millis(1_700_000_030_123)));
        assert_eq!(found.expires_at, Timestamp::from_secs(1_700_003_600));
    }
}

#[tokio::test]
async fn a_result_of_powertools_is_replayed_as_json() {
    for case in Case::all() {
        for in_batch in [false, true] {
            let fixture = Fixture::start().await;
            assert!(case.claims(&fixture.db));
            case.completes(&fixture.db);
            let write = Write::new(case.key(), Guard::Absent, Some(claimed(1)));
            let PlainVerdict::Found(Some(found)) =
                plain(&send(&fixture.store(), write, in_batch).await)
            else {
                panic!("{}", case.name)
            };
            assert_eq!(found.status, Status::Completed);
            assert!(found.lease_until.is_some(), "Powertools never removes the lease");
            let outcome = found.result.map(|text| serde_json::from_str::<Value>(&text).unwrap());
            assert_eq!(outcome, case.result, "{}", case.name);
            assert_eq!(found.fingerprint.is_some(), case.name.contains("validation"));
        }
    }
}

#[tokio::test]
async fn records_of_powertools_can_be_taken_over() {
    for case in Case::all() {
        for in_batch in [false, true] {
            let fixture = Fixture::start().await;
            let store = fixture.store();
            case.claims(&fixture.db);
            case.completes(&fixture.db);
            let found = store.read(&[case.key()], soon()).await.remove(0).unwrap().unwrap();
            let guard = Guard::Unchanged(RecordVersion::of(&found));
            let write = Write::new(case.key(), guard, Some(claimed(1)));
            let name = &case.name;
            assert_eq!(
                plain(&send(&store, write.clone(), in_batch).await),
                PlainVerdict::Written,
                "{name}"
            );
            let read = store.read(&[case.key()], soon()).await.remove(0).unwrap();
            assert_eq!(read, Some(claimed(1)), "no attribute of Powertools is left: {name}");
            assert!(matches!(send(&store, write, in_batch).await, Verdict::Found(Some(_))));
        }
    }
}

/// The condition of Powertools, at 1700000000123 ms, with our records.
#[tokio::test]
async fn powertools_respects_our_records() {
    let case = Case::all().remove(0);
    let mut lapsed = claimed(1);
    lapsed.lease_until = Some(Timestamp::from_millis(1_600_000_000_000));
    let mut expired = completed(1, "1");
    expired.expires_at = Timestamp::from_secs(1_600_000_000);
    let mut failed = completed(1, "1");
    failed.status = Status::PermanentlyFailed;
    for (record, taken) in [
        (claimed(1), false),
        (completed(1, "1"), false),
        (failed, false),
        (released(1), true),
        (lapsed, true),
        (expired, true),
    ] {
        let fixture = Fixture::start().await;
        let write = Write::new(case.key(), Guard::Absent, Some(record.clone()));
        assert_eq!(plain(&send(&fixture.store(), write, false).await), PlainVerdict::Written);
        assert_eq!(case.claims(&fixture.db), taken, "{record:?}");
    }
}

#[tokio::test]
async fn after_a_takeover_by_powertools_we_are_fenced() {
    let case = Case::all().remove(0);
    for in_batch in [false, true] {
        let fixture = Fixture::start().await;
        let store = fixture.store();
        let mut lapsed = claimed(1);
        lapsed.lease_until = Some(Timestamp::from_millis(1_600_000_000_000));
        let write = Write::new(case.key(), Guard::Absent, Some(lapsed));
        assert_eq!(plain(&send(&store, write, false).await), PlainVerdict::Written);
        assert!(case.claims(&fixture.db));
        let guard = Guard::OwnedBy(owner(1));
        let late = Write::new(case.key(), guard, Some(completed(1, "1")));
        let Verdict::Found(Some(found)) = send(&store, late, in_batch).await else {
            panic!("the takeover by Powertools removes our token")
        };
        assert_eq!((found.status, found.owner), (Status::InProgress, None));
    }
}

#[tokio::test]
async fn a_fractional_expiry_can_be_taken_over() {
    for in_batch in [false, true] {
        let fixture = Fixture::start().await;
        let store = fixture.store();
        fixture.put(&json!({
            "id": {"S": "op#7"}, "status": {"S": "INPROGRESS"}, "expiration": {"N": "1700000000.12"},
        }));
        let key = Key::from_text("op#7");
        let found =
            store.read(std::slice::from_ref(&key), soon()).await.remove(0).unwrap().unwrap();
        assert_eq!(found.expires_at, Timestamp::from_millis(1_700_000_000_120));
        let mut rounded = found.clone();
        rounded.expires_at = Timestamp::from_secs(1_700_000_000);
        for (seen, expected) in
            [(&rounded, PlainVerdict::Found(Some(found.clone()))), (&found, PlainVerdict::Written)]
        {
            let guard = Guard::Unchanged(RecordVersion::of(seen));
            let write = Write::new(key.clone(), guard, Some(claimed(5)));
            assert_eq!(plain(&send(&store, write, in_batch).await), expected);
        }
    }
}
