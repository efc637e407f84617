//! SNS and EventBridge have two retries, and both may come while the lease of a lost attempt holds the
//! key. The first retry waits until its own deadline, the second until after the lease ended.

use std::time::{Duration, Instant};

use futures_util::future::join;
use lambda_idempotency_tests::events::{event, notification, order_with};
use serde_json::{Value, json};

use crate::support::{World, history, scripted_orders};

const TIMEOUT: Duration = Duration::from_secs(8);
/// The lease of the lost attempt, from its start: its deadline and a second of lease grace.
const LEASE: Duration = Duration::from_secs(9);

#[tokio::test]
async fn a_notification_and_an_event_whose_process_died_early_are_still_processed() {
    let dies = order_with("o-1", json!({ "dieTimes": 1 }));
    join(
        is_processed_after_the_lease("n-1", &notification("n-1", &dies)),
        is_processed_after_the_lease("e-1", &event("e-1", &dies)),
    )
    .await;
}

/// Delivers an order whose first attempt ends its process soon after its start.
async fn is_processed_after_the_lease(id: &str, event: &Value) {
    let retries = vec![Duration::from_millis(200); 2];
    let function = scripted_orders().timeout(TIMEOUT);
    let world = World::with(function, |local| local.retry_delays(retries)).await;
    let start = Instant::now();
    let report = world.send(event).await;
    let history = history(&report);
    let (first, rest) = history.split_first().unwrap();
    let (last, between) = rest.split_last().unwrap();
    assert_eq!((*first, last.0, last.2), ((id, 1, "crashed"), id, "executed"));
    // On a slow machine a retry begins later: when the lease ends, it has no time left for the work.
    let is_returned = |outcome: &str| ["busy", "returned"].contains(&outcome);
    assert!(between.iter().all(|(_, _, outcome)| is_returned(outcome)), "{history:?}");
    assert!(start.elapsed() > LEASE, "the key was taken over before the lease ended");
    let line = report.records().last().unwrap().line.clone().unwrap();
    assert_eq!(line.lost_attempts, 1);
    assert!(report.dead_letters.is_empty());
    world.assert_placed_once(["o-1"]);
}
