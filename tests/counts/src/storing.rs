//! Calls of the DynamoDB store over a connection that answers at once: items, statements, the SDK.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpRequest;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, Credentials, HttpClient, Region, RuntimeComponents, SharedHttpClient,
};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::http::{Response, StatusCode};
use aws_smithy_types::body::SdkBody;
use lambda_idempotency_core::clock::{Clock as _, SystemClock};
use lambda_idempotency_core::record::{IdempotencyRecord, Owner, Status};
use lambda_idempotency_core::store::{Guard, Store as _, Verdict, Write};
use lambda_idempotency_dynamodb::DynamoDbStore;
use lambda_idempotency_keys::Key;
use tokio::runtime::Runtime;

use crate::cases::{Case, Work, runtime};

pub(crate) fn cases() -> impl Iterator<Item = Case> {
    let claims = [1, 10, 25]
        .map(|size| Case::new(format!("dynamodb: {size} claims"), move || write(size, claim)));
    let completions = [1, 10, 25].map(|size| {
        Case::new(format!("dynamodb: {size} completions of 1 KB"), move || write(size, completion))
    });
    let reads = [1, 10]
        .map(|size| Case::new(format!("dynamodb: {size} read, of 1 KB"), move || read(size)));
    claims.into_iter().chain(completions).chain(reads)
}

pub(crate) const TABLE: &str = "idempotency";

/// A client whose requests are answered at once.
pub(crate) fn client() -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-west-1"))
        .endpoint_url("http://localhost:1")
        .credentials_provider(Credentials::new("id", "secret", None, None, "counts"))
        .http_client(SharedHttpClient::new(Answers::new()))
        .build();
    Client::from_conf(config)
}

fn key(n: usize) -> Key {
    Key::from_text(format!("place-order#7c211433f02071597741e6ff5a8ea34789abbf43a2f4c6c8d9{n:014}"))
}

fn claim(n: usize) -> Write {
    let now = SystemClock.now();
    let mut record =
        IdempotencyRecord::new(Status::InProgress, now.plus(Duration::from_secs(86_400)));
    record.owner = Some(Owner::from_bits(n as u128));
    record.lease_until = Some(now.plus(Duration::from_secs(30)));
    Write::new(key(n), Guard::Absent, Some(record))
}

fn completion(n: usize) -> Write {
    let mut record = IdempotencyRecord::new(Status::Completed, SystemClock.now());
    record.owner = Some(Owner::from_bits(n as u128));
    record.result = Some(format!("\"{}\"", "x".repeat(1024)).into());
    Write::new(key(n), Guard::OwnedBy(Owner::from_bits(n as u128)), Some(record))
}

fn write(size: usize, one: fn(usize) -> Write) -> Work {
    let (runtime, store) = store();
    let writes: Vec<Write> = (0..size).map(one).collect();
    Box::new(move || {
        let deadline = SystemClock.now().plus(Duration::from_secs(5));
        let verdicts = runtime.block_on(store.write(&writes, deadline));
        assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Written)), "{verdicts:?}");
    })
}

fn read(size: usize) -> Work {
    let (runtime, store) = store();
    let keys: Vec<Key> = (0..size).map(key).collect();
    Box::new(move || {
        let deadline = SystemClock.now().plus(Duration::from_secs(5));
        let found = runtime.block_on(store.read(&keys, deadline));
        assert!(found.iter().all(|found| matches!(found, Ok(Some(_)))), "{found:?}");
    })
}

fn store() -> (Runtime, DynamoDbStore) {
    let (runtime, store) = (runtime(), DynamoDbStore::new(client(), TABLE));
    // The first request of a client resolves and caches what later ones use.
    let first = [claim(0)];
    let deadline = SystemClock.now().plus(Duration::from_secs(5));
    runtime.block_on(store.write(&first, deadline));
    (runtime, store)
}

/// A connection that answers each request as if it had succeeded.
#[derive(Clone, Debug)]
struct Answers {
    /// The items that are read.
    items: Arc<[String]>,
}

impl Answers {
    fn new() -> Self {
        let item = |n| {
            let (key, data) = (key(n), "x".repeat(1024));
            let key = key.as_str();
            format!(
                r#"{{"id":{{"S":"{key}"}},"status":{{"S":"COMPLETED"}},"expiration":{{"N":"1900000000"}},"data":{{"S":"{data}"}},"fence":{{"N":"1800000000000"}}}}"#
            )
        };
        Self { items: (0..10).map(item).collect() }
    }

    fn answer(&self, request: &HttpRequest) -> String {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let body = str::from_utf8(request.body().bytes().unwrap_or_default()).unwrap_or_default();
        match target.rsplit('.').next().unwrap_or_default() {
            "BatchExecuteStatement" => {
                let each = r#"{"TableName":"idempotency"}"#;
                let all = vec![each; body.matches("\"Statement\"").count()].join(",");
                format!(r#"{{"Responses":[{all}]}}"#)
            }
            "BatchGetItem" => {
                let all = self.items.join(",");
                format!(r#"{{"Responses":{{"idempotency":[{all}]}},"UnprocessedKeys":{{}}}}"#)
            }
            "GetItem" => format!(r#"{{"Item":{}}}"#, self.items.first().map_or("", String::as_str)),
            _ => "{}".to_owned(),
        }
    }
}

impl HttpClient for Answers {
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Answers {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let status = StatusCode::try_from(200).expect("it is valid");
        HttpConnectorFuture::ready(Ok(Response::new(status, SdkBody::from(self.answer(&request)))))
    }
}
