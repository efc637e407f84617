//! Sharing a table with Powertools for AWS Lambda, tested with recorded requests of Powertools.

use crate::{
    powertools_keys::recorded::{Recorded, send, store},
    support::{Fixture, PlainVerdict, claimed, completed, plain, released, soon},
};
use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    record::Status,
    store::{Guard, RecordVersion, Store, Write},
};
use lambda_idempotency_dynamodb::Attributes;
use serde_json::json;

/// The condition of Powertools, at 1700000000123 ms, with our records.
#[tokio::test]
async fn powertools_respects_our_records() {
    let mut lapsed = claimed(1);
    lapsed.lease_until = Some(Timestamp::from_millis(1_600_000_000_000));
    let mut expired = completed(1, "1");
    expired.expires_at = Timestamp::from_secs(1_600_000_000);
    let mut failed = completed(1, "1");
    failed.status = Status::PermanentlyFailed;
    for recorded in Recorded::named("string_ascii") {
        for (record, taken) in [
            (claimed(1), false),
            (completed(1, "1"), false),
            (failed.clone(), false),
            (released(1), true),
            (lapsed.clone(), true),
            (expired.clone(), true),
        ] {
            let fixture = Fixture::start().await;
            let store = store(&fixture, Attributes::default());
            let write = Write::new(recorded.key.clone(), Guard::Absent, Some(record.clone()));
            assert_eq!(plain(&send(&store, write, false).await), PlainVerdict::Written);
            assert_eq!(recorded.claims(&fixture.db), taken, "{record:?}");
        }
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
