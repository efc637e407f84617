//! Which form serves which number of writes: singles at once, or one batch?
//!
//! ```text
//! cargo run --release -p lambda-idempotency-dynamodb --example forms
//! ```
//!
//! Prints, for each number of writes in a call: requests, processor time of the calling thread, and
//! time with a network of 4 ms (about what DynamoDB takes). The server has its own thread, so
//! its time is not counted. `BATCH_FROM` in `src/write.rs` is chosen by the result.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "an example")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use aws_sdk_dynamodb::{
    Client,
    config::{
        BehaviorVersion, Credentials, HttpClient, Region, RuntimeComponents, SharedHttpClient,
        http::HttpRequest,
    },
};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use lambda_idempotency_core::{
    clock::{Clock, SystemClock},
    key::Key,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, Store, Verdict, Write},
};
use lambda_idempotency_dynamodb::DynamoDbStore;
use serde_json::json;

const NETWORK: Duration = Duration::from_millis(4);
const CALLS: usize = 60;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let sent = Arc::new(AtomicUsize::new(0));
    let near = client(serve(), Network { delay: Duration::ZERO, sent: sent.clone(), inner: None });
    let far = client(serve(), Network { delay: NETWORK, sent: sent.clone(), inner: None });
    println!("               |       singles at once      |          one batch");
    println!("what     writes| requests  cpu us  4 ms net | requests  cpu us  4 ms net");
    for what in ["claim", "lose", "complete"] {
        for count in [1, 2, 3, 4, 5, 8, 10, 25] {
            print!("{what:9}{count:6}|");
            for singles in [true, false] {
                let store = |client: &Client| {
                    let builder = DynamoDbStore::builder(client.clone(), "forms");
                    let builder = if singles { builder.without_partiql() } else { builder };
                    builder.build().unwrap()
                };
                let (requests, cpu) = median(&store(&near), &sent, what, count, true).await;
                let (_, wall) = median(&store(&far), &sent, what, count, false).await;
                let millis = wall.as_secs_f64() * 1000.0;
                print!(" {requests:8} {:7} {millis:9.2} |", cpu.as_micros());
            }
            println!();
        }
    }
}

/// Requests of a call, and the median over some calls: processor time, or time.
async fn median(
    store: &DynamoDbStore,
    sent: &AtomicUsize,
    what: &str,
    count: usize,
    cpu: bool,
) -> (usize, Duration) {
    let mut times = Vec::new();
    for call in 0..=CALLS {
        let owner = Owner::random().unwrap();
        let claims: Vec<Write> = (0..count).map(|n| claim(owner, n)).collect();
        if what != "claim" {
            prepare(store, &claims).await;
        }
        let writes: Vec<Write> = match what {
            "complete" => claims.iter().map(|claim| complete(owner, claim)).collect(),
            "lose" => claims.iter().map(again).collect(),
            _ => claims,
        };
        sent.store(0, Ordering::Relaxed);
        let (begin, begin_cpu) = (Instant::now(), thread_time());
        let verdicts = store.write(&writes, soon()).await;
        let time = if cpu { thread_time() - begin_cpu } else { begin.elapsed() };
        let lost = verdicts.iter().filter(|v| matches!(v, Verdict::Found(Some(_)))).count();
        assert_eq!(lost, if what == "lose" { count } else { 0 }, "{verdicts:?}");
        // The first fills the connections.
        if call > 0 {
            times.push(time);
        }
    }
    times.sort_unstable();
    (sent.load(Ordering::Relaxed), times[times.len() / 2])
}

async fn prepare(store: &DynamoDbStore, claims: &[Write]) {
    for verdict in store.write(claims, soon()).await {
        assert!(matches!(verdict, Verdict::Written), "{verdict:?}");
    }
}

fn soon() -> lambda_idempotency_core::clock::Timestamp {
    SystemClock.now().plus(Duration::from_secs(60))
}

fn claim(owner: Owner, n: usize) -> Write {
    let mut record = IdempotencyRecord::new(Status::InProgress, soon());
    record.owner = Some(owner);
    record.lease_until = Some(soon());
    let key = Key::from_text(format!("forms#{owner}#{n}"));
    Write::new(key, Guard::Absent, Some(record))
}

fn again(claim: &Write) -> Write {
    let mut again = claim.clone();
    if let Some(record) = &mut again.record {
        record.owner = Owner::random().ok();
    }
    again
}

fn complete(owner: Owner, claim: &Write) -> Write {
    let mut record = IdempotencyRecord::new(Status::Completed, soon());
    record.owner = Some(owner);
    record.result = Some(r#"{"charged":true,"receipt":"0f4a1c2e"}"#.into());
    Write::new(claim.key.clone(), Guard::OwnedBy(owner), Some(record))
}

/// What this thread has had of the processor.
fn thread_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

/// Starts an embedded DynamoDB with a table, on its own thread.
fn serve() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let db = dynoxide::Database::memory().unwrap();
    let table = json!({
        "TableName": "forms",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    });
    db.create_table(serde_json::from_value(table).unwrap()).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            dynoxide::server::serve_on(listener, db).await;
        });
    });
    endpoint
}

fn client(endpoint: String, network: Network) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-west-1"))
        .endpoint_url(endpoint)
        .credentials_provider(Credentials::new("id", "secret", None, None, "example"))
        .http_client(SharedHttpClient::new(network))
        .build();
    Client::from_conf(config)
}

/// A connection that counts its requests and takes its time.
#[derive(Clone, Debug)]
struct Network {
    delay: Duration,
    sent: Arc<AtomicUsize>,
    inner: Option<SharedHttpConnector>,
}

impl HttpClient for Network {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        static PLAIN: std::sync::LazyLock<SharedHttpClient> =
            std::sync::LazyLock::new(|| aws_smithy_http_client::Builder::new().build_http());
        let inner = Some(PLAIN.http_connector(settings, components));
        SharedHttpConnector::new(Self { inner, ..self.clone() })
    }
}

impl HttpConnector for Network {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let (delay, inner) = (self.delay, self.inner.clone().unwrap());
        HttpConnectorFuture::new(async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            inner.call(request).await
        })
    }
}
