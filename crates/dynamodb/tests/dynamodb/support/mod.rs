//! An embedded DynamoDB behind a real SDK client, with a connection that records requests and injects faults.

#![allow(unreachable_pub, clippy::large_enum_variant, reason = "helpers of tests")]

mod company;
mod wire;

use std::{sync::Arc, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
};
use dynoxide::Database;
use lambda_idempotency_core::{
    clock::{Clock, SystemClock, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, Store, StoreError, Verdict, Write},
};
use lambda_idempotency_dynamodb::{Attributes, DynamoDbStore, DynamoDbStoreBuilder, SortKey};
use serde_json::{Value, json};

pub(crate) use company::InCompany;
pub use wire::{Fault, Wire};

pub const TABLE: &str = "idempotency";
pub const SORTED: &str = "sorted";

/// One table in memory, its server, and the connection to it.
pub struct Fixture {
    pub db: Database,
    pub wire: Arc<Wire>,
    pub client: Client,
}

impl Fixture {
    pub async fn start() -> Self {
        Self::with_key("id").await
    }

    /// With another name for the partition key.
    pub async fn with_key(key: &str) -> Self {
        let db = Database::memory().unwrap();
        let table = json!({
            "TableName": TABLE,
            "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        });
        db.create_table(serde_json::from_value(table).unwrap()).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = dynoxide::server::serve_with_shutdown(
            listener,
            db.clone(),
            std::future::pending::<()>(),
        );
        #[expect(clippy::disallowed_methods, reason = "ends with the runtime of the test")]
        tokio::spawn(server);
        let wire = Wire::new(db.clone());
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("eu-west-1"))
            .endpoint_url(endpoint)
            .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
            .http_client(wire.client())
            .build();
        Self { db, wire, client: Client::from_conf(config) }
    }

    /// With a second table, named `sorted`, which has the keys `id` and `sk`.
    pub async fn sorted() -> Self {
        let fixture = Self::start().await;
        let table = json!({
            "TableName": SORTED,
            "KeySchema": [
                { "AttributeName": "id", "KeyType": "HASH" },
                { "AttributeName": "sk", "KeyType": "RANGE" },
            ],
            "AttributeDefinitions": [
                { "AttributeName": "id", "AttributeType": "S" },
                { "AttributeName": "sk", "AttributeType": "S" },
            ],
            "BillingMode": "PAY_PER_REQUEST",
        });
        fixture.db.create_table(serde_json::from_value(table).unwrap()).unwrap();
        fixture
    }

    /// With a table that has an index of what is left.
    pub async fn indexed() -> Self {
        let fixture = Self::start().await;
        fixture.add_index(TABLE, "unfinished", "unfinished");
        fixture
    }

    /// Adds an index with this partition key, of the items that are there as well.
    pub fn add_index(&self, table: &str, name: &str, key: &str) {
        let create = json!({
            "IndexName": name,
            "KeySchema": [{ "AttributeName": key, "KeyType": "HASH" }],
            "Projection": { "ProjectionType": "KEYS_ONLY" },
        });
        let update = json!({
            "TableName": table,
            "AttributeDefinitions": [{ "AttributeName": key, "AttributeType": "S" }],
            "GlobalSecondaryIndexUpdates": [{ "Create": create }],
        });
        self.db.update_table(serde_json::from_value(update).unwrap()).unwrap();
    }

    /// A store in the table `sorted`.
    pub fn in_sorted(&self, sort_key: SortKey) -> DynamoDbStoreBuilder {
        let mut names = Attributes::default();
        names.sort_key = Some(sort_key);
        DynamoDbStore::builder(self.client.clone(), SORTED)
            .attempt_timeout(Duration::from_secs(20))
            .backoff(Duration::from_millis(1), Duration::from_millis(4))
            .attributes(names)
    }

    /// Puts an item with this primary key and nothing else into the table `sorted`.
    pub fn put_sorted(&self, partition: &str, sort: &str) {
        let item = json!({ "id": { "S": partition }, "sk": { "S": sort } });
        let put = json!({ "TableName": SORTED, "Item": item });
        self.db.put_item(serde_json::from_value(put).unwrap()).unwrap();
    }

    pub fn builder(&self) -> DynamoDbStoreBuilder {
        DynamoDbStore::builder(self.client.clone(), TABLE)
            .attempt_timeout(Duration::from_secs(20))
            .backoff(Duration::from_millis(1), Duration::from_millis(4))
    }

    pub fn store(&self) -> DynamoDbStore {
        self.builder().build().unwrap()
    }

    /// The item as it is stored.
    pub fn item(&self, key: &str) -> Option<Value> {
        let request = json!({"TableName": TABLE, "Key": {"id": {"S": key}}});
        let response = self.db.get_item(serde_json::from_value(request).unwrap()).unwrap();
        response.item.map(|item| serde_json::to_value(item).unwrap())
    }

    pub fn put(&self, item: &Value) {
        put(&self.db, item);
    }
}

pub fn put(db: &Database, item: &Value) {
    let request = json!({"TableName": TABLE, "Item": item});
    db.put_item(serde_json::from_value(request).unwrap()).unwrap();
}

pub fn delete(db: &Database, key: &str) {
    let request = json!({"TableName": TABLE, "Key": {"id": {"S": key}}});
    db.delete_item(serde_json::from_value(request).unwrap()).unwrap();
}

pub fn key(n: usize) -> Key {
    Key::from_text(format!("op#{n}"))
}

pub fn owner(n: u128) -> Owner {
    Owner::from_bits(n)
}

pub fn soon() -> Timestamp {
    SystemClock.now().plus(Duration::from_secs(60))
}

pub fn claimed(by: u128) -> IdempotencyRecord {
    let mut record =
        IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(4_000_000_000));
    record.owner = Some(owner(by));
    record.lease_until = Some(Timestamp::from_millis(3_900_000_000_123));
    record
}

pub fn completed(by: u128, outcome: &str) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(4_000_000_000));
    record.owner = Some(owner(by));
    record.result = Some(outcome.into());
    record
}

pub fn released(by: u128) -> IdempotencyRecord {
    let mut record =
        IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(4_000_000_000));
    record.last_owner = Some(owner(by));
    record.lease_until = Some(Timestamp::from_millis(1));
    record.failed_attempts = 1;
    record.error_type = Some("Declined".into());
    record
}

pub fn write(n: usize, guard: Guard, record: Option<IdempotencyRecord>) -> Write {
    Write::new(key(n), guard, record)
}

/// Claims of the keys from 0 to below `count`, each by the owner of the same number.
pub fn claims(count: usize) -> Vec<Write> {
    (0..count).map(|n| write(n, Guard::Absent, Some(claimed(n as u128)))).collect()
}

pub async fn one(store: &DynamoDbStore, write: Write) -> Verdict {
    store.write(&[write], soon()).await.pop().unwrap()
}

/// A verdict that is not an error, in a form that can be compared.
#[derive(Clone, Debug, PartialEq)]
pub enum PlainVerdict {
    Written,
    Found(Option<IdempotencyRecord>),
}

pub fn plain(verdict: &Verdict) -> PlainVerdict {
    match verdict {
        Verdict::Written => PlainVerdict::Written,
        Verdict::Found(found) => PlainVerdict::Found(found.clone()),
        Verdict::EffectRefused(refused) => panic!("{refused}"),
        Verdict::Unknown(error) => panic!("{error} ({:?})", std::error::Error::source(error)),
    }
}

/// The error of a verdict.
pub fn unknown(verdict: Verdict) -> StoreError {
    match verdict {
        Verdict::Unknown(error) => error,
        other => panic!("not an error: {other:?}"),
    }
}
