//! Many calls of `run` at once in one process: they share requests and connections.
//!
//! The database is on another thread, behind the proxy that counts. Nothing is asserted of times.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use futures_util::future::join_all;
use lambda_idempotency::{Call, DynamoDbStore, Idempotency, Operation, RunContext};
use lambda_idempotency_local::{DynamoDb, Fault, Proxy, StoreRequest, Table};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

pub(crate) const TABLE: &str = "idempotency";

/// What the proxy saw.
#[derive(Debug)]
struct Counts {
    requests: usize,
    /// The most at a time.
    at_once: usize,
    connections: u64,
    /// The calls that failed, or whose completion is not recorded.
    failed: usize,
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn several_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// So many calls of `run` at once, by a process with this runtime, with milliseconds for each response and handler.
fn count(calls: usize, delay: u64, work: u64, function: &Runtime) -> Counts {
    let database = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (dynamodb, proxy) = database.block_on(async {
        let dynamodb = DynamoDb::start().await.unwrap();
        dynamodb.create_table(&Table::new(TABLE, "id").ttl("expiration")).unwrap();
        let proxy = dynamodb.proxy().await.unwrap();
        (dynamodb, proxy)
    });
    if delay > 0 {
        dynamodb.faults().add(Fault::delay(Duration::from_millis(delay)));
    }
    let idempotency = &idempotency(&proxy);
    let operation = &Operation::new("place-order").key("orderId");
    let done = function.block_on(async {
        let run = |n: usize| async move {
            let payload = json!({ "orderId": n });
            let handler = async |_: Call| {
                if work > 0 {
                    tokio::time::sleep(Duration::from_millis(work)).await;
                }
                Ok::<_, Infallible>(n)
            };
            idempotency.run(operation, &payload, RunContext::without_deadline(), handler).await
        };
        join_all((0..calls).map(run)).await
    });
    let failed = done.iter().filter(|one| !one.as_ref().is_ok_and(|run| run.recorded)).count();
    let requests = proxy.take_requests();
    Counts {
        requests: requests.len(),
        at_once: at_once(&requests),
        connections: proxy.connections(),
        failed,
    }
}

pub(crate) fn idempotency(proxy: &Proxy) -> Idempotency {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-west-1"))
        .endpoint_url(proxy.url())
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .build();
    Idempotency::new(DynamoDbStore::new(Client::from_conf(config), TABLE)).without_log()
}

/// The most requests at a time.
fn at_once(requests: &[StoreRequest]) -> usize {
    let mut changes: Vec<(Instant, isize)> = Vec::new();
    for request in requests {
        changes.push((request.began, 1));
        changes.push((request.began + request.took, -1));
    }
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    usize::try_from(most).unwrap()
}

/// A request that begins while the connection of another is on its way back to the pool opens one more, and under load a
/// completion does not wait for others for long: so there can be more of them than requests at a time.
const MOST_CONNECTIONS: u64 = 40;

#[track_caller]
fn assert_few(delay: u64, work: u64, runtime: fn() -> Runtime) {
    let counts = count(1000, delay, work, &runtime());
    assert_eq!(counts.failed, 0, "{counts:?}");
    // 0.08 each where nothing else runs; a call makes two by itself.
    assert!(counts.requests <= 150, "{counts:?}");
    assert!(counts.connections <= MOST_CONNECTIONS, "{counts:?}");
}

#[test]
fn a_thousand_calls_of_run_share_requests_on_one_thread() {
    assert_few(5, 0, one_thread);
}

#[test]
fn a_thousand_calls_of_run_share_requests_on_several_threads() {
    assert_few(0, 20, several_threads);
}

/// Prints the counts for other numbers of calls, delays and handlers.
#[test]
#[ignore = "prints a table"]
fn counts_of_many_calls() {
    for calls in [100, 1000] {
        for delay in [0, 5, 50] {
            for work in [0, 20] {
                for (name, runtime) in
                    [("one", one_thread as fn() -> Runtime), ("several", several_threads)]
                {
                    let Counts { requests, at_once, connections, failed } =
                        count(calls, delay, work, &runtime());
                    println!(
                        "{calls} calls, responses {delay} ms later, {work} ms of work, {name}: {requests} requests, {at_once} at \
                         once, {connections} connections, {failed} failed"
                    );
                }
            }
        }
    }
}
