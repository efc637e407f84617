//! Every guard with every record, as statements and as single writes, compared with `Write::applies`.

use crate::support::{Fixture, PlainVerdict, claimed, owner, plain, soon, write};
use lambda_idempotency_core::{
    clock::Timestamp,
    record::{IdempotencyRecord, Status},
    store::{Guard, RecordVersion, Store, Write},
};
use lambda_idempotency_dynamodb::DynamoDbStore;

/// Records with all combinations of the values that a guard compares.
fn records() -> Vec<IdempotencyRecord> {
    let mut records = Vec::new();
    for status in [Status::InProgress, Status::Completed, Status::PermanentlyFailed] {
        for by in [None, Some(owner(1)), Some(owner(2))] {
            for last in [None, Some(owner(1))] {
                for lease in [None, Some(Timestamp::from_millis(1))] {
                    for expires in [Timestamp::from_secs(9), Timestamp::from_millis(9_500)] {
                        let mut record = IdempotencyRecord::new(status, Timestamp::EPOCH);
                        record.owner = by;
                        record.last_owner = last;
                        record.lease_until = lease;
                        record.expires_at = expires;
                        records.push(record);
                    }
                }
            }
        }
    }
    records
}

fn guards() -> Vec<Guard> {
    let mut guards = vec![Guard::Absent, Guard::OwnedBy(owner(1)), Guard::OwnedBy(owner(2))];
    guards.extend(records().iter().map(|record| Guard::Unchanged(RecordVersion::of(record))));
    guards
}

async fn every_pair(setup: &DynamoDbStore, store: &DynamoDbStore, step: usize, from: usize) {
    let mut existing: Vec<Option<IdempotencyRecord>> = records().into_iter().map(Some).collect();
    existing.push(None);
    let (mut before, mut writes, mut expected) = (vec![], vec![], vec![]);
    let pairs =
        existing.iter().flat_map(|existing| guards().into_iter().map(move |g| (existing, g)));
    for (n, (existing, guard)) in pairs.enumerate().skip(from).step_by(step) {
        // Every third write deletes.
        let record = (n % 3 != 2).then(|| claimed(7));
        let write: Write = write(n, guard, record);
        before.extend(
            existing.clone().map(|r| Write::new(write.key.clone(), Guard::Absent, Some(r))),
        );
        let applies = write.applies(existing.as_ref());
        let verdict =
            if applies { PlainVerdict::Written } else { PlainVerdict::Found(existing.clone()) };
        let left = if applies { write.record.clone() } else { existing.clone() };
        expected.push((verdict, left));
        writes.push(write);
    }
    for verdict in setup.write(&before, soon()).await {
        assert_eq!(plain(&verdict), PlainVerdict::Written);
    }
    let verdicts = store.write(&writes, soon()).await;
    let keys: Vec<_> = writes.iter().map(|write| write.key.clone()).collect();
    let left = setup.read(&keys, soon()).await;
    for (((write, verdict), left), expected) in writes.iter().zip(verdicts).zip(left).zip(expected)
    {
        let actual = (plain(&verdict), left.unwrap());
        assert_eq!(actual, expected, "{:?} over {:?}", write.guard, expected.1);
    }
}

#[tokio::test]
async fn as_statements() {
    let fixture = Fixture::start().await;
    every_pair(&fixture.store(), &fixture.store(), 1, 0).await;
}

#[tokio::test]
async fn as_single_writes() {
    let fixture = Fixture::start().await;
    let singles = fixture.builder().without_partiql().build().unwrap();
    // The step size has no common factor with the number of guards, 75, so each guard meets many records.
    every_pair(&fixture.store(), &singles, 4, 1).await;
}
