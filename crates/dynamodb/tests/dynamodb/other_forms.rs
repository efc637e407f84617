//! Results that are compressed and encrypted before they reach DynamoDB.

use crate::support::{Fixture, claims, completed, key, owner, soon, write};
use lambda_idempotency_core::store::{Guard, Store, Verdict};
use lambda_idempotency_dynamodb::{Attributes, DataForm, DynamoDbStore};
use lambda_idempotency_results::{EncryptionKey, LocalKeys, Results};

fn encrypted(store: DynamoDbStore) -> Results<DynamoDbStore> {
    let key = EncryptionKey::new("2026-11", &[7; 32]).unwrap();
    Results::new(store).compress_above(1024).encrypt_with(LocalKeys::new(key))
}

mod conformance {
    use super::*;

    async fn store() -> Results<DynamoDbStore> {
        encrypted(Fixture::start().await.store())
    }

    lambda_idempotency_testkit::browse_conformance!(store);
}

/// A native value is parsed and written again.
#[tokio::test]
async fn a_form_is_read_from_a_native_value_and_from_a_text() {
    let long = format!("[{}0]", "1234,".repeat(2000));
    let looks_stored = "\"lambda-idempotency:1 plain MQ\"";
    for form in [DataForm::Json, DataForm::Native] {
        let fixture = Fixture::start().await;
        let mut names = Attributes::default();
        names.data_form = form;
        let inner = || fixture.builder().attributes(names.clone()).build().unwrap();
        let stores =
            [encrypted(inner()), Results::new(inner()).compress_above(1024), Results::new(inner())];
        let mut n = 0;
        for store in stores {
            for result in ["1", "\"card 4111\"", looks_stored, &long] {
                n += 1;
                let record = completed(1, result);
                let verdict =
                    store.write(&[write(n, Guard::Absent, Some(record.clone()))], soon()).await;
                assert!(matches!(verdict[..], [Verdict::Written]), "{verdict:?}");
                let found = store.read(&[key(n)], soon()).await.pop().unwrap().unwrap();
                assert_eq!(found.unwrap().result, record.result);
            }
        }
    }
}

#[tokio::test]
async fn the_table_does_not_contain_an_encrypted_result() {
    let fixture = Fixture::start().await;
    let record = completed(1, "\"card 4111\"");
    encrypted(fixture.store()).write(&[write(0, Guard::Absent, Some(record))], soon()).await;
    let item = fixture.item("op#0").unwrap().to_string();
    assert!(item.contains("aes-256-gcm=2026-11") && !item.contains("4111"), "{item}");
}

#[tokio::test]
async fn encrypted_completions_share_their_requests() {
    let fixture = Fixture::start().await;
    let store = encrypted(fixture.store());
    store.write(&claims(20), soon()).await;
    fixture.wire.take();
    let completions: Vec<_> = (0..20)
        .map(|n| {
            write(
                n,
                Guard::OwnedBy(owner(n as u128)),
                Some(completed(n as u128, "{\"card\":4111}")),
            )
        })
        .collect();
    let verdicts = store.write(&completions, soon()).await;
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Written)), "{verdicts:?}");
    assert_eq!(fixture.wire.operations(), ["BatchExecuteStatement"]);
}
