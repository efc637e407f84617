//! For how long a completion is missing in DynamoDB: the benchmark of the engine, with a table of an embedded
//! DynamoDB behind the SDK.
//!
//! ```console
//! $ cargo bench -p lambda-idempotency-dynamodb --bench dynamodb_completions
//! ```
//!
//! The database has a thread of its own, and answers over HTTP on this machine, at once. Requests to AWS take some
//! milliseconds more; the engine's own benchmark has a store at a distance.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark"
)]

#[path = "../../engine/benches/completions/window.rs"]
mod window;

use std::{num::NonZero, sync::mpsc, thread};

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
};
use dynoxide::Database;
use lambda_idempotency_dynamodb::DynamoDbStore;
use serde_json::json;
use tokio::runtime::Builder;

use window::{Handlers, Work, measure, print_head};

const TABLE: &str = "idempotency";

fn main() {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let handlers = |work, concurrency| Handlers { work, concurrency };
    print_head();
    println!("in the embedded DynamoDB");
    for (name, handlers) in [
        ("waiting", handlers(Work::Wait, 16)),
        ("computing", handlers(Work::Compute, 16)),
        ("in `spawn_blocking`", handlers(Work::ComputeElsewhere, 16)),
        ("in `spawn_blocking`", handlers(Work::ComputeElsewhere, processors)),
    ] {
        let store = DynamoDbStore::builder(client(&serve()), TABLE).build().unwrap();
        measure(name, handlers, store, |store| store);
    }
}

/// A database with an empty table, on its own thread. Returns its address.
fn serve() -> String {
    let (address, known) = mpsc::channel();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let database = Database::memory().unwrap();
            let table = json!({
                "TableName": TABLE,
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            });
            database.create_table(serde_json::from_value(table).unwrap()).unwrap();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            address.send(format!("http://{}", listener.local_addr().unwrap())).unwrap();
            let for_ever = std::future::pending::<()>();
            dynoxide::server::serve_with_shutdown(listener, database, for_ever).await.unwrap();
        });
    });
    known.recv().unwrap()
}

fn client(endpoint: &str) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-west-1"))
        .endpoint_url(endpoint)
        .credentials_provider(Credentials::new("id", "secret", None, None, "bench"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    Client::from_conf(config)
}
