//! SNS and EventBridge have two retries, and both may fall inside the lease of a call that died at
//! once. The first retry waits for its own deadline, the second past the end of the lease.

use std::time::{Duration, Instant};

use lambda_idempotency_local::AsyncConfig;
use lambda_idempotency_tests::events::{event, notification, order_with};
use serde_json::{Value, json};

use crate::support::{World, history, scripted_orders};

const TIMEOUT: Duration = Duration::from_secs(8);
/// From the start of the one that died: its deadline, and a second of lease grace.
const LEASE: Duration = Duration::from_secs(9);

/// Delivers an order that takes its process with it soon after its start, the first time.
async fn outlives_its_lease(id: &str, event: &Value) {
    let retries = AsyncConfig { retry_delays: vec![Duration::from_millis(200); 2] };
    let function = scripted_orders().timeout(TIMEOUT);
    let world = World::with(function, |local| local.asynchronous(retries)).await;
    let begun = Instant::now();
    let report = world.send(event).await;
    let history = history(&report);
    let (first, rest) = history.split_first().unwrap();
    let (last, between) = rest.split_last().unwrap();
    assert_eq!((*first, last.0, last.2), ((id, 1, "crashed"), id, "executed"));
    // On a slow machine a retry begins later: it sees the lease end, with no time left for the work.
    let went_back = |told: &str| ["busy", "returned"].contains(&told);
    assert!(between.iter().all(|(_, _, told)| went_back(told)), "{history:?}");
    assert!(begun.elapsed() > LEASE, "it was taken over within the lease");
    let told = report.records().last().unwrap().told.clone().unwrap();
    assert_eq!(told.lost_attempts, 1);
    assert!(report.dead_letters.is_empty());
    world.assert_placed_once(["o-1"]);
}

fn deadly() -> Value {
    order_with("o-1", json!({ "dieTimes": 1 }))
}

#[tokio::test]
async fn a_notification_whose_process_died_early_is_still_processed() {
    outlives_its_lease("n-1", &notification("n-1", &deadly())).await;
}

#[tokio::test]
async fn an_event_whose_process_died_early_is_still_processed() {
    outlives_its_lease("e-1", &event("e-1", &deadly())).await;
}
