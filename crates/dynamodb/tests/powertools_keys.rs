//! Tables of Powertools with all settings: composite keys, other attribute names, both forms of `data`.
//! The requests of Powertools are recorded.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod support;

use dynoxide::Database;
use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    record::{Fingerprint, IdempotencyRecord, Status},
    store::{Guard, RecordVersion, Store, Verdict, Write},
};
use lambda_idempotency_dynamodb::{
    Attributes, DataForm, DynamoDbConfigError, DynamoDbStore, SortKey,
};
use serde_json::{Value, json};
use support::{Fault, Fixture, Told, claimed, claims, completed, owner, soon, told};

/// The table in the recorded requests.
const TABLE: &str = "idem";

/// The requests with which Powertools claims and completes a key.
struct Recorded {
    name: String,
    key: Key,
    result: String,
    put: Value,
    update: Value,
}

impl Recorded {
    fn all(language: &str) -> Vec<Self> {
        let text = match language {
            "python" => {
                include_str!("../../powertools/tests/powertools/vectors/requests-python.json")
            }
            _ => include_str!("../../powertools/tests/powertools/vectors/requests-typescript.json"),
        };
        let vectors: Value = serde_json::from_str(text).unwrap();
        let vectors = vectors["vectors"].as_array().unwrap().iter();
        let recorded = vectors.filter(|vector| vector["calls"][1].is_object()).map(|vector| Self {
            name: format!("{language} {}", vector["name"].as_str().unwrap()),
            key: Key::from_text(vector["idempotency_key"].as_str().unwrap()),
            result: vector["result_json"].as_str().unwrap().to_owned(),
            put: vector["calls"][0]["request"].clone(),
            update: vector["calls"][1]["request"].clone(),
        });
        recorded.collect()
    }

    fn both() -> Vec<Self> {
        Self::all("python").into_iter().chain(Self::all("typescript")).collect()
    }

    fn named(name: &str) -> Vec<Self> {
        let found: Vec<_> = Self::both().into_iter().filter(|t| t.name.ends_with(name)).collect();
        assert_eq!(found.len(), 2, "one of each language: {name}");
        found
    }

    /// Powertools tries to claim the key; returns whether it did.
    fn claims(&self, db: &Database) -> bool {
        db.put_item(serde_json::from_value(self.put.clone()).unwrap()).is_ok()
    }

    fn completes(&self, db: &Database) {
        db.update_item(serde_json::from_value(self.update.clone()).unwrap()).unwrap();
    }
}

/// A store on a table with these names, which is another table than the fixture's.
fn store(fixture: &Fixture, names: Attributes) -> DynamoDbStore {
    let sort = names.sort_key.as_ref().map(|sort_key| sort_key.name.to_string());
    let mut schema = vec![json!({"AttributeName": names.id, "KeyType": "HASH"})];
    let mut types = vec![json!({"AttributeName": names.id, "AttributeType": "S"})];
    if let Some(sort) = sort {
        schema.push(json!({"AttributeName": sort, "KeyType": "RANGE"}));
        types.push(json!({"AttributeName": sort, "AttributeType": "S"}));
    }
    let table = json!({
        "TableName": TABLE, "KeySchema": schema, "AttributeDefinitions": types,
        "BillingMode": "PAY_PER_REQUEST",
    });
    fixture.db.create_table(serde_json::from_value(table).unwrap()).unwrap();
    DynamoDbStore::builder(fixture.client.clone(), TABLE).attributes(names).build().unwrap()
}

/// Writes alone or in a batch; returns the first verdict.
async fn send(store: &DynamoDbStore, write: Write, in_batch: bool) -> Verdict {
    let mut writes = vec![write];
    if in_batch {
        writes.extend(claims(2));
    }
    store.write(&writes, soon()).await.remove(0)
}

async fn read(store: &DynamoDbStore, key: &Key) -> Option<IdempotencyRecord> {
    store.read(std::slice::from_ref(key), soon()).await.remove(0).unwrap()
}

/// Both sides claim, complete and read the records of the other.
async fn shares(recorded: &Recorded, names: &Attributes) {
    for in_batch in [false, true] {
        let fixture = Fixture::start().await;
        let store = store(&fixture, names.clone());
        let (key, name) = (recorded.key.clone(), &recorded.name);
        assert!(recorded.claims(&fixture.db), "{name}");
        let claim = Write { key: key.clone(), guard: Guard::Absent, record: Some(claimed(1)) };
        let Verdict::Found(Some(busy)) = send(&store, claim.clone(), in_batch).await else {
            panic!("Powertools holds the key: {name}")
        };
        assert_eq!((busy.status, busy.owner), (Status::InProgress, None));
        recorded.completes(&fixture.db);
        let Verdict::Found(Some(done)) = send(&store, claim, in_batch).await else {
            panic!("Powertools completed the key: {name}")
        };
        assert_eq!(done.status, Status::Completed, "{name}");
        assert_eq!(done.expires_at, Timestamp::from_secs(1_700_003_600), "{name}");

        // After it expired, we take the key over; Powertools then finds our claim and our completion.
        let guard = Guard::Unchanged(RecordVersion::of(&done));
        let mut mine = claimed(1);
        mine.fingerprint = done.fingerprint.clone();
        let takeover = Write { key: key.clone(), guard, record: Some(mine.clone()) };
        assert_eq!(told(&send(&store, takeover, in_batch).await), Told::Written, "{name}");
        assert_eq!(
            read(&store, &key).await,
            Some(mine),
            "no attribute of Powertools is left: {name}"
        );
        assert!(!recorded.claims(&fixture.db), "we hold the key: {name}");
        let mut done = completed(1, "\"ours\"");
        done.fingerprint = Some(Fingerprint::new("f"));
        let complete =
            Write { key: key.clone(), guard: Guard::OwnedBy(owner(1)), record: Some(done) };
        assert_eq!(told(&send(&store, complete.clone(), in_batch).await), Told::Written, "{name}");
        assert!(!recorded.claims(&fixture.db), "we completed the key: {name}");

        let done = read(&store, &key).await.unwrap();
        let delete = Write {
            key: key.clone(),
            guard: Guard::Unchanged(RecordVersion::of(&done)),
            record: None,
        };
        assert_eq!(told(&send(&store, delete, in_batch).await), Told::Written, "{name}");
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
                let write = Write { key: key.clone(), guard: Guard::Absent, record: Some(record) };
                assert_eq!(told(&send(&store, write, in_batch).await), Told::Written);
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
    let write = Write { key, guard: Guard::Absent, record: Some(record) };
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

/// The risk of Powertools and this library on one table: completions of Powertools have no condition.
#[tokio::test]
async fn a_late_completion_of_powertools_overwrites_ours() {
    for recorded in Recorded::named("string_ascii") {
        let fixture = Fixture::start().await;
        let store = store(&fixture, Attributes::default());
        let key = recorded.key.clone();
        let write = |guard, record| Write { key: key.clone(), guard, record: Some(record) };
        // Powertools claimed, its lease expired, and we took over and completed.
        assert!(recorded.claims(&fixture.db));
        let stale = read(&store, &key).await.unwrap();
        let takeover = write(Guard::Unchanged(RecordVersion::of(&stale)), claimed(1));
        assert_eq!(told(&send(&store, takeover, false).await), Told::Written);
        let complete = write(Guard::OwnedBy(owner(1)), completed(1, "\"ours\""));
        assert_eq!(told(&send(&store, complete, false).await), Told::Written);

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
        let done =
            Write { key: key.clone(), guard: Guard::Absent, record: Some(completed(1, "1")) };
        assert_eq!(told(&send(&store, done, false).await), Told::Written);
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
            let write = |guard, record| Write { key: key.clone(), guard, record: Some(record) };
            let claim = send(&store, write(Guard::Absent, lapsed), false).await;
            assert_eq!(told(&claim), Told::Written);
            assert!(recorded.claims(&fixture.db), "our lease has expired");
            recorded.completes(&fixture.db);
            let done = read(&store, &key).await;
            let late = write(Guard::OwnedBy(owner(1)), completed(1, "\"late\""));
            assert!(matches!(send(&store, late, in_batch).await, Verdict::Found(Some(_))));
            assert_eq!(read(&store, &key).await, done);
        }
    }
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
        let write = Write { key, guard: Guard::Absent, record: Some(record) };
        assert_eq!(told(&send(&store, write, in_batch).await), Told::Written);
    }
}
