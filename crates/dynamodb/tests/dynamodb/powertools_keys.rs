//! Tables of Powertools with all settings: composite keys, other attribute names, both forms of `data`.
//! The requests of Powertools are recorded.

mod late;
pub(crate) mod recorded;

use crate::support::{Fault, Fixture, PlainVerdict, claimed, completed, owner, plain};
use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    record::{Fingerprint, Status},
    store::{Guard, RecordVersion, Verdict, Write},
};
use lambda_idempotency_dynamodb::{
    Attributes, DataForm, DynamoDbConfigError, DynamoDbStore, SortKey,
};
use recorded::{Recorded, TABLE, read, send, store};
use serde_json::{Value, json};

/// Both sides claim, complete and read the records of the other.
async fn shares(recorded: &Recorded, names: &Attributes) {
    for in_batch in [false, true] {
        let fixture = Fixture::start().await;
        let store = store(&fixture, names.clone());
        let (key, name) = (recorded.key.clone(), &recorded.name);
        assert!(recorded.claims(&fixture.db), "{name}");
        let claim = Write::new(key.clone(), Guard::Absent, Some(claimed(1)));
        let Verdict::Found(Some(busy)) = send(&store, claim.clone(), in_batch).await else {
            panic!("Powertools holds the key: {name}")
        };
        assert_eq!((busy.status, busy.owner), (Status::InProgress, None));
        assert_eq!(busy.lease_until, Some(Timestamp::from_millis(1_700_000_030_123)), "{name}");
        assert_eq!(busy.expires_at, Timestamp::from_secs(1_700_003_600), "{name}");
        recorded.completes(&fixture.db);
        let Verdict::Found(Some(done)) = send(&store, claim, in_batch).await else {
            panic!("Powertools completed the key: {name}")
        };
        assert_eq!(done.status, Status::Completed, "{name}");
        assert!(done.lease_until.is_some(), "Powertools never removes the lease: {name}");
        let result = done.result.as_deref().map(|text| serde_json::from_str(text).unwrap());
        assert_eq!(result, serde_json::from_str::<Value>(&recorded.result).ok(), "{name}");
        assert_eq!(done.fingerprint.is_some(), name.contains("validation"), "{name}");
        assert_eq!(done.expires_at, Timestamp::from_secs(1_700_003_600), "{name}");

        // After it expired, we take the key over; Powertools then finds our claim and our completion.
        let guard = Guard::Unchanged(RecordVersion::of(&done));
        let mut mine = claimed(1);
        mine.fingerprint = done.fingerprint.clone();
        let takeover = Write::new(key.clone(), guard, Some(mine.clone()));
        assert_eq!(plain(&send(&store, takeover, in_batch).await), PlainVerdict::Written, "{name}");
        assert_eq!(
            read(&store, &key).await,
            Some(mine),
            "no attribute of Powertools is left: {name}"
        );
        assert!(!recorded.claims(&fixture.db), "we hold the key: {name}");
        let mut done = completed(1, "\"ours\"");
        done.fingerprint = Some(Fingerprint::new("f"));
        let complete = Write::new(key.clone(), Guard::OwnedBy(owner(1)), Some(done));
        assert_eq!(
            plain(&send(&store, complete.clone(), in_batch).await),
            PlainVerdict::Written,
            "{name}"
        );
        assert!(!recorded.claims(&fixture.db), "we completed the key: {name}");

        let done = read(&store, &key).await.unwrap();
        let delete = Write::new(key.clone(), Guard::Unchanged(RecordVersion::of(&done)), None);
        assert_eq!(plain(&send(&store, delete, in_batch).await), PlainVerdict::Written, "{name}");
        assert_eq!(read(&store, &key).await, None, "{name}");
        assert!(recorded.claims(&fixture.db), "the key is free: {name}");
    }
}

#[tokio::test]
async fn each_side_reads_what_the_other_writes() {
    let mut shared = 0;
    for recorded in Recorded::both().iter().filter(|t| !t.name.contains("composite")) {
        shares(recorded, &Attributes::default()).await;
        shared += 1;
    }
    assert!(shared >= 65, "{shared}");
}

#[tokio::test]
async fn with_a_sort_key() {
    for (name, partition) in
        [("composite_key", "idempotency#orders-fn"), ("composite_key_static_pk", "tenant#7")]
    {
        for recorded in Recorded::named(name) {
            let mut names = Attributes::default();
            names.sort_key = Some(SortKey::new("sk", partition));
            shares(&recorded, &names).await;
        }
    }
}

/// The same requests with other attribute names, as `DynamoDBPersistenceLayer` makes them with its options.
fn renamed(mut recorded: Recorded) -> Recorded {
    const NAMES: [(&str, &str); 6] = [
        ("id", "pk1"),
        ("expiration", "exp"),
        ("in_progress_expiration", "ipe"),
        ("status", "st"),
        ("data", "dt"),
        ("validation", "val"),
    ];
    for (old, new) in NAMES {
        for request in [&mut recorded.put, &mut recorded.update] {
            for part in ["Item", "Key"] {
                let Some(members) = request[part].as_object_mut() else { continue };
                if let Some(value) = members.remove(old) {
                    members.insert(new.to_owned(), value);
                }
            }
            for name in request["ExpressionAttributeNames"].as_object_mut().unwrap().values_mut() {
                if name == old {
                    *name = json!(new);
                }
            }
        }
    }
    recorded
}

#[tokio::test]
async fn with_other_attribute_names() {
    for recorded in Recorded::named("payload_validation") {
        let mut names = Attributes::default();
        names.id = "pk1".into();
        names.expiration = "exp".into();
        names.in_progress_expiration = "ipe".into();
        names.status = "st".into();
        names.data = "dt".into();
        names.validation = "val".into();
        shares(&renamed(recorded), &names).await;
    }
}

#[tokio::test]
async fn a_claim_without_a_lease_counts_until_it_expires() {
    for mut recorded in Recorded::named("string_ascii") {
        recorded.put["Item"].as_object_mut().unwrap().remove("in_progress_expiration");
        let fixture = Fixture::start().await;
        let store = store(&fixture, Attributes::default());
        assert!(recorded.claims(&fixture.db));
        let found = read(&store, &recorded.key).await.unwrap();
        assert_eq!((found.status, found.lease_until), (Status::InProgress, None));
    }
}

/// Our completions have, byte for byte, the `data` and `validation` of those of Powertools.
#[tokio::test]
async fn results_have_the_form_that_powertools_reads() {
    for (language, form) in [("python", DataForm::Json), ("typescript", DataForm::Native)] {
        let mut compared = 0;
        for recorded in Recorded::all(language) {
            let values = &recorded.update["ExpressionAttributeValues"];
            let Some(data) = values.get(":response_data") else { continue };
            if recorded.name.contains("composite") {
                continue;
            }
            for in_batch in [false, true] {
                let fixture = Fixture::start().await;
                let mut names = Attributes::default();
                names.data_form = form;
                let store = store(&fixture, names);
                let mut record = completed(1, &recorded.result);
                record.fingerprint = values[":validation_key"]["S"].as_str().map(Fingerprint::new);
                let key = recorded.key.clone();
                let write = Write::new(key.clone(), Guard::Absent, Some(record));
                assert_eq!(plain(&send(&store, write, in_batch).await), PlainVerdict::Written);
                let get = json!({ "TableName": TABLE, "Key": recorded.update["Key"] });
                let got = fixture.db.get_item(serde_json::from_value(get).unwrap()).unwrap();
                let item = serde_json::to_value(got.item.unwrap()).unwrap();
                assert_eq!(&item["data"], data, "{}", recorded.name);
                assert_eq!(item.get("validation"), values.get(":validation_key"));
                assert_eq!(item["status"], json!({"S": "COMPLETED"}));

                let outcome = read(&store, &key).await.unwrap().result.unwrap();
                let (ours, result) = (serde_json::from_str(&outcome), recorded.result.parse());
                assert_eq!(ours.ok() as Option<Value>, result.ok(), "{}", recorded.name);
            }
            compared += 1;
        }
        assert!(compared >= 30, "{language}: {compared}");
    }
}

/// Powertools for TypeScript stores the string `"42"` as the text 42, which is also JSON.
#[tokio::test]
async fn a_text_that_could_be_json_is_read_in_the_configured_form() {
    for (form, expected) in [(DataForm::Json, "42"), (DataForm::Native, "\"42\"")] {
        let fixture = Fixture::start().await;
        let mut names = Attributes::default();
        names.data_form = form;
        let store = store(&fixture, names);
        let item = json!({
            "id": {"S": "op#1"}, "status": {"S": "COMPLETED"}, "expiration": {"N": "1700003600"},
            "data": {"S": "42"},
        });
        let put = json!({ "TableName": TABLE, "Item": item });
        fixture.db.put_item(serde_json::from_value(put).unwrap()).unwrap();
        let found = read(&store, &Key::from_text("op#1")).await.unwrap();
        assert_eq!(found.result.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn a_result_without_a_native_form_is_too_large() {
    let fixture = Fixture::start().await;
    let mut names = Attributes::default();
    names.data_form = DataForm::Native;
    let store = store(&fixture, names);
    let key = Key::from_text("op#1");
    let record = completed(1, "[1e200]");
    let write = Write::new(key, Guard::Absent, Some(record));
    let Verdict::Unknown(error) = send(&store, write, false).await else { panic!("too large") };
    assert_eq!(error.kind(), lambda_idempotency_core::store::StoreErrorKind::TooLarge);
    assert!(!error.to_string().contains("1e200"), "{error}");
}

#[tokio::test]
async fn a_sort_key_needs_a_different_name_and_a_partition() {
    let fixture = Fixture::start().await;
    let build = |name: &'static str, partition: &'static str| {
        let mut names = Attributes::default();
        names.sort_key = Some(SortKey::new(name, partition));
        let builder = DynamoDbStore::builder(fixture.client.clone(), TABLE).attributes(names);
        builder.build().err()
    };
    assert_eq!(build("sk", "p"), None);
    assert_eq!(build("sk", ""), Some(DynamoDbConfigError::UnfitPartition));
    assert_eq!(build("id", "p"), Some(DynamoDbConfigError::NameUsedTwice("id".into())));
}

#[tokio::test]
async fn a_native_result_whose_answer_was_lost_is_recognised() {
    for in_batch in [false, true] {
        let fixture = Fixture::start().await;
        let mut names = Attributes::default();
        names.data_form = DataForm::Native;
        let store = store(&fixture, names);
        fixture.wire.fault(vec![Fault::LoseAnswer]);
        let record = completed(1, r#"{"z":1.50,"a":1e3,"n":-0.0}"#);
        let key = Key::from_text("op#native");
        let write = Write::new(key, Guard::Absent, Some(record));
        assert_eq!(plain(&send(&store, write, in_batch).await), PlainVerdict::Written);
    }
}
