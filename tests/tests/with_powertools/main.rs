//! The real Powertools for Python and for TypeScript, and this library, at work on one table.
//!
//! Each test does the same with both of them. `cargo test` does not run this program, which needs the packages of
//! Powertools:
//!
//! ```console
//! $ bash tests/run powertools     # installs them under target/ and runs these tests
//! ```
//!
//! Powertools runs in a process of its own (`tests/powertools/app.py`, `app.mjs`) and works on the same embedded
//! DynamoDB, by the machine's clock. Where something has to expire between the two, the clock of this library is moved.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod ours;
mod theirs;

mod batches;
mod claims;
mod completions;
mod keys;
mod migration;

use lambda_idempotency_local::{DynamoDb, Proxy, Table};
use serde_json::{Value, json};

use ours::Ours;
use theirs::Theirs;

/// The table that both sides write to.
const TABLE: &str = "idempotency";
/// The prefix of the keys, where a test does not choose it.
const PREFIX: &str = "orders";

/// A language of Powertools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Python,
    TypeScript,
}

impl Language {
    const BOTH: [Self; 2] = [Self::Python, Self::TypeScript];
}

/// A table, Powertools of one language, and this library.
struct Shared {
    dynamodb: DynamoDb,
    theirs: Theirs,
    ours: Ours,
    /// What both sides are connected to, until it is dropped.
    proxy: Proxy,
}

impl Shared {
    async fn new(language: Language) -> Self {
        Self::with_table(language, &Table::new(TABLE, "id").ttl("expiration")).await
    }

    async fn with_table(language: Language, table: &Table) -> Self {
        let dynamodb = DynamoDb::start().await.unwrap();
        dynamodb.create_table(table).unwrap();
        Self::with(language, dynamodb).await
    }

    /// With a table that is there.
    async fn with(language: Language, dynamodb: DynamoDb) -> Self {
        let proxy = dynamodb.proxy().await.unwrap();
        let theirs = Theirs::start(language, &proxy.url());
        let ours = Ours::new(language, &proxy.url());
        Self { dynamodb, theirs, ours, proxy }
    }

    /// The items of the table.
    fn items(&self) -> Vec<Value> {
        self.dynamodb.items(TABLE).unwrap()
    }

    /// The only item of the table.
    #[track_caller]
    fn item(&self) -> Value {
        let items = self.items();
        let [item] = items.as_slice() else { panic!("{items:?}") };
        item.clone()
    }

    /// The state of the record that `lambda-idempotency records show` finds with these options; null if there is none.
    fn show(&self, options: &[&str]) -> Value {
        let command = std::path::Path::new(env!("CARGO_BIN_EXE_orders-under-test"))
            .with_file_name("lambda-idempotency");
        let mut command = std::process::Command::new(command);
        command.args(["records", "show", "--json", "--table", TABLE, "--region", "eu-west-1"]);
        command.args(["--endpoint-url", &self.proxy.url()]).args(options);
        command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "secret");
        let output = tokio::task::block_in_place(|| command.output()).unwrap();
        let shown: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        shown["records"][0]["state"].clone()
    }

    /// Deletes all items.
    fn empty(&self) {
        for item in self.items() {
            self.dynamodb.delete_item(TABLE, &json!({ "id": item["id"] })).unwrap();
        }
    }
}
