//! Many calls of `run` at once in one process: few connections, and none that stops the others.
//!
//! The database is on another thread, behind the proxy that counts. Nothing is asserted of times, and no request of these
//! processes runs into a time limit, however slow the machine is.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, Credentials, Region, StalledStreamProtectionConfig, timeout::TimeoutConfig,
};
use futures_util::future::join_all;
use lambda_idempotency::{
    Call, DynamoDbStore, Idempotency, Operation, RunContext, RunError, clock::Timestamp,
    policy::Lease,
};
use lambda_idempotency_core::clock::{Clock as _, SystemClock};
use lambda_idempotency_local::{Apply, DynamoDb, Fault, Proxy, StoreRequest, Table};
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

/// A database on a thread of its own, whose responses are so many milliseconds late.
fn database(delay: u64) -> (Runtime, DynamoDb, Proxy) {
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
    (database, dynamodb, proxy)
}

/// Far longer than a request, a connection or all calls take.
const LONG: Duration = Duration::from_secs(600);

/// The deadline of a call.
fn far() -> Timestamp {
    SystemClock.now().plus(LONG)
}

/// So many calls of `run` at once, by a process with this runtime, with milliseconds for each response and handler.
fn count(calls: usize, delay: u64, work: u64, function: &Runtime) -> Counts {
    let (_database, _dynamodb, proxy) = database(delay);
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
            idempotency.run(operation, &payload, &far(), handler).await
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

/// A client that waits for each connection as long as it takes.
pub(crate) fn client(proxy: &Proxy) -> Client {
    let waits = TimeoutConfig::builder().connect_timeout(LONG).build();
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-west-1"))
        .endpoint_url(proxy.url())
        .timeout_config(waits)
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
        .build();
    Client::from_conf(config)
}

pub(crate) fn idempotency(proxy: &Proxy) -> Idempotency {
    let store = DynamoDbStore::builder(client(proxy), TABLE).attempt_timeout(LONG);
    Idempotency::new(store.build().unwrap()).without_log()
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

/// A tenth of the calls. A store has at most 12 requests at a time, and a slow machine opens some connections more: a request
/// begins before the connection of the one before it is free again.
const FEW: usize = 100;

#[track_caller]
fn assert_few(delay: u64, work: u64, runtime: fn() -> Runtime) {
    let counts = count(1000, delay, work, &runtime());
    assert_eq!((counts.failed, counts.requests), (0, 2000), "{counts:?}");
    assert!(counts.at_once < FEW && counts.connections < FEW as u64, "{counts:?}");
}

#[test]
fn a_thousand_calls_of_run_have_few_connections_on_one_thread() {
    assert_few(5, 0, one_thread);
}

#[test]
fn a_thousand_calls_of_run_have_few_connections_on_several_threads() {
    assert_few(0, 20, several_threads);
}

/// Twenty calls have handlers that wait until all are claimed, whose leases are renewed, and the answers of some writes are
/// lost.
#[test]
fn among_a_thousand_calls_of_run_none_is_fenced_and_none_gives_up_claiming() {
    let (_database, dynamodb, proxy) = database(60);
    let lost = Fault::hang_up(Apply::After).skip(300).times(2);
    dynamodb.faults().add(lost);
    let idempotency = &idempotency(&proxy);
    let renewed = Lease::Renewed { length: Duration::from_secs(15) };
    let operation = &Operation::new("place-order").key("orderId").lease(renewed);
    let claimed = &AtomicUsize::new(0);
    let done = one_thread().block_on(async {
        let run = |n: usize| async move {
            let payload = json!({ "orderId": n });
            let handler = async |_: Call| {
                claimed.fetch_add(1, Ordering::Relaxed);
                while n < 20 && claimed.load(Ordering::Relaxed) < 1000 {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Ok::<_, Infallible>(n)
            };
            idempotency.run(operation, &payload, &far(), handler).await
        };
        join_all((0..1000).map(run)).await
    });
    let lost: Vec<(usize, &RunError)> =
        done.iter().enumerate().filter_map(|(n, run)| Some((n, run.as_ref().err()?))).collect();
    assert!(lost.is_empty(), "{} of 1000: {:?}", lost.len(), lost.last());
    assert!(done.iter().all(|run| run.as_ref().is_ok_and(|run| run.recorded)));
}

/// As one batch, they share requests of 25: 40 for the claims, and as few for the completions that are ready together.
#[test]
fn a_thousand_payloads_of_run_many_need_less_than_a_request_each() {
    let (_database, _dynamodb, proxy) = database(5);
    let operation = Operation::new("place-order").key("orderId");
    let payloads = (0..1000).map(|n| json!({ "orderId": n }));
    let function = async |_: serde_json::Value, _: Call| Ok::<_, Infallible>(1);
    let context = RunContext::without_deadline();
    let idempotency = idempotency(&proxy);
    let running = idempotency.run_many(&operation, payloads, &context, function);
    let runs = one_thread().block_on(running);
    assert!(runs.len() == 1000 && runs.iter().all(|run| run.as_ref().is_ok_and(|r| r.recorded)));
    let requests = proxy.take_requests().len();
    assert!(requests < 1000, "{requests} requests");
    assert!(proxy.connections() < FEW as u64, "{} connections", proxy.connections());
}
