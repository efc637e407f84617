//! Two processes with equal keys: only the one that claims a key first calls the handler.

use std::time::Duration;

use lambda_idempotency_local::{Apply, Fault, Gate, Outcome, SqsConfig};
use lambda_idempotency_tests::{
    CLAIMS,
    events::{batch, message, order},
};

use crate::support::{World, orders, outcomes};

/// A high receive limit, so that no message is dead-lettered because its key was busy.
fn patient_queue() -> SqsConfig {
    SqsConfig {
        visibility: Some(Duration::from_millis(200)),
        max_receive_count: 1000,
        ..SqsConfig::default()
    }
}

/// Both processes are about to claim the same ten keys; then both continue.
#[tokio::test]
async fn of_two_claims_at_the_same_moment_one_wins() {
    let world = World::with(orders(), |local| local.sandboxes(2).sqs(patient_queue())).await;
    let gate = Gate::new();
    let hold = Fault::hold(Apply::Before, &gate).table(CLAIMS).times(2);
    world.dynamodb().faults().add(hold);
    let names: Vec<String> = (0..10).map(|number| format!("o-{number}")).collect();
    let copies = ["a", "b"].iter().flat_map(|copy| {
        names.iter().map(move |name| message(&format!("{name}-{copy}"), &order(name)))
    });
    let event = batch(copies);
    let start = async {
        gate.reached_by(2).await;
        assert_eq!(world.in_flight().len(), 2);
        gate.open();
    };
    let (report, ()) = tokio::join!(world.send(&event), start);
    assert_eq!(report.count(&Outcome::Executed), 10, "{:?}", outcomes(&report));
    // There may be more: a message may be visible again before its first delivery ended.
    assert!(report.count(&Outcome::Replayed) >= 10, "{:?}", outcomes(&report));
    assert!(report.is_complete());
    world.assert_placed_once(names.iter().map(String::as_str));
}

#[tokio::test]
async fn two_processes_place_each_order_once_in_each_round() {
    let world = World::with(orders(), |local| local.sandboxes(2).sqs(patient_queue())).await;
    let mut names = Vec::new();
    for round in 0..4 {
        let fresh: Vec<String> = (0..12).map(|number| format!("o-{round}-{number}")).collect();
        // Ten copies of each order, far apart, so that they are in different batches.
        let copies = (0..10).flat_map(|copy| {
            fresh.iter().map(move |name| message(&format!("{name}-{copy}"), &order(name)))
        });
        let report = world.send(&batch(copies)).await;
        assert_eq!(report.count(&Outcome::Executed), fresh.len(), "{:?}", outcomes(&report));
        assert!(report.is_complete());
        names.extend(fresh);
    }
    world.assert_placed_once(names.iter().map(String::as_str));
}
