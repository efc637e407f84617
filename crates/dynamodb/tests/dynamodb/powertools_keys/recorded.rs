//! The requests of Powertools, as they were recorded, and a store on their table.

use dynoxide::Database;
use lambda_idempotency_core::{
    key::Key,
    record::IdempotencyRecord,
    store::{Store, Verdict, Write},
};
use lambda_idempotency_dynamodb::{Attributes, DynamoDbStore};
use serde_json::{Value, json};

use crate::support::{Fixture, claims, soon};

/// The table in the recorded requests.
pub(crate) const TABLE: &str = "idem";

/// The requests with which Powertools claims and completes a key.
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) key: Key,
    pub(crate) result: String,
    pub(crate) put: Value,
    pub(crate) update: Value,
}

impl Recorded {
    pub(crate) fn all(language: &str) -> Vec<Self> {
        let text = match language {
            "python" => {
                include_str!("../../../../keys/tests/keys/powertools/vectors/requests-python.json")
            }
            _ => include_str!(
                "../../../../keys/tests/keys/powertools/vectors/requests-typescript.json"
            ),
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

    pub(crate) fn both() -> Vec<Self> {
        Self::all("python").into_iter().chain(Self::all("typescript")).collect()
    }

    pub(crate) fn named(name: &str) -> Vec<Self> {
        let found: Vec<_> = Self::both().into_iter().filter(|t| t.name.ends_with(name)).collect();
        assert_eq!(found.len(), 2, "one of each language: {name}");
        found
    }

    /// Powertools tries to claim the key; returns whether it did.
    pub(crate) fn claims(&self, db: &Database) -> bool {
        db.put_item(serde_json::from_value(self.put.clone()).unwrap()).is_ok()
    }

    pub(crate) fn completes(&self, db: &Database) {
        db.update_item(serde_json::from_value(self.update.clone()).unwrap()).unwrap();
    }
}

/// A store on a table with these names, which is another table than the fixture's.
pub(crate) fn store(fixture: &Fixture, names: Attributes) -> DynamoDbStore {
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
pub(crate) async fn send(store: &DynamoDbStore, write: Write, in_batch: bool) -> Verdict {
    let mut writes = vec![write];
    if in_batch {
        writes.extend(claims(2));
    }
    store.write(&writes, soon()).await.remove(0)
}

pub(crate) async fn read(store: &DynamoDbStore, key: &Key) -> Option<IdempotencyRecord> {
    store.read(std::slice::from_ref(key), soon()).await.remove(0).unwrap()
}
