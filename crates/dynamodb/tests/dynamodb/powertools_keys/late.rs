//! Late writes of one side, after the other side took the key over.

use lambda_idempotency_core::{
    clock::Timestamp,
    record::Status,
    store::{Guard, RecordVersion, Verdict, Write},
};
use lambda_idempotency_dynamodb::Attributes;
use serde_json::json;

use super::recorded::{Recorded, TABLE, read, send, store};
use crate::support::{Fixture, PlainVerdict, claimed, completed, owner, plain};

/// The risk of Powertools and this library on one table: completions of Powertools have no condition.
#[tokio::test]
async fn a_late_completion_of_powertools_overwrites_ours() {
    for recorded in Recorded::named("string_ascii") {
        let fixture = Fixture::start().await;
        let store = store(&fixture, Attributes::default());
        let key = recorded.key.clone();
        let write = |guard, record| Write::new(key.clone(), guard, Some(record));
        // Powertools claimed, its lease expired, and we took over and completed.
        assert!(recorded.claims(&fixture.db));
        let stale = read(&store, &key).await.unwrap();
        let takeover = write(Guard::Unchanged(RecordVersion::of(&stale)), claimed(1));
        assert_eq!(plain(&send(&store, takeover, false).await), PlainVerdict::Written);
        let complete = write(Guard::OwnedBy(owner(1)), completed(1, "\"ours\""));
        assert_eq!(plain(&send(&store, complete, false).await), PlainVerdict::Written);

        recorded.completes(&fixture.db);
        let found = read(&store, &key).await.unwrap();
        assert_ne!(found.result.as_deref(), Some("\"ours\""), "{}", recorded.name);
        assert_eq!(found.owner, completed(1, "1").owner, "only our token is left");
    }
}

/// The deletion of Powertools after a failure has no condition either, so the next delivery does the work
/// again.
#[tokio::test]
async fn a_late_failure_of_powertools_deletes_our_record() {
    for recorded in Recorded::named("string_ascii") {
        let fixture = Fixture::start().await;
        let store = store(&fixture, Attributes::default());
        let key = recorded.key.clone();
        let done = Write::new(key.clone(), Guard::Absent, Some(completed(1, "1")));
        assert_eq!(plain(&send(&store, done, false).await), PlainVerdict::Written);
        // Both languages send only the key.
        let delete = json!({ "TableName": TABLE, "Key": recorded.update["Key"] });
        fixture.db.delete_item(serde_json::from_value(delete).unwrap()).unwrap();
        assert_eq!(read(&store, &key).await, None);
    }
}

/// Our own late completion fails its guard.
#[tokio::test]
async fn our_late_completion_does_not_change_records_of_powertools() {
    for recorded in Recorded::named("string_ascii") {
        for in_batch in [false, true] {
            let fixture = Fixture::start().await;
            let store = store(&fixture, Attributes::default());
            let mut lapsed = claimed(1);
            lapsed.lease_until = Some(Timestamp::from_millis(1_600_000_000_000));
            let key = recorded.key.clone();
            let write = |guard, record| Write::new(key.clone(), guard, Some(record));
            let claim = send(&store, write(Guard::Absent, lapsed), false).await;
            assert_eq!(plain(&claim), PlainVerdict::Written);
            assert!(recorded.claims(&fixture.db), "our lease has expired");
            recorded.completes(&fixture.db);
            let done = read(&store, &key).await;
            let late = write(Guard::OwnedBy(owner(1)), completed(1, "\"late\""));
            let Verdict::Found(Some(found)) = send(&store, late, in_batch).await else {
                panic!("the takeover by Powertools removes our token")
            };
            assert_eq!((found.status, found.owner), (Status::Completed, None));
            assert_eq!(read(&store, &key).await, done);
        }
    }
}
