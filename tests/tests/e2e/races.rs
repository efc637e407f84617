//! Equal keys in two processes, and in many invocations of one process, as on Lambda Managed Instances
//! (`AWS_LAMBDA_MAX_CONCURRENCY`): only the one that claims a key first calls the handler.

use std::time::Duration;

use lambda_idempotency_local::{Apply, Fault, Gate, Invocation, Outcome, SqsConfig};
use lambda_idempotency_tests::{
    CLAIMS, ORDERS,
    events::{batch, batch_of, message, order},
};
use serde_json::Value;

use crate::support::{World, orders, outcomes, returned};

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

const AT_ONCE: usize = 8;

async fn world() -> World {
    World::of(orders().concurrency(AT_ONCE)).await
}

/// The next `orders` orders wait at this gate until it is opened.
fn hold(world: &World, orders: u64) -> Gate {
    let gate = Gate::new();
    world.dynamodb().faults().add(Fault::hold(Apply::Before, &gate).table(ORDERS).times(orders));
    gate
}

fn outcomes_of(invocations: &[Invocation]) -> Vec<String> {
    let records = invocations.iter().flat_map(|invocation| &invocation.records);
    records.map(|line| line.outcome.as_str().to_owned()).collect()
}

#[tokio::test]
async fn different_orders_are_placed_concurrently() {
    let world = world().await;
    let gate = hold(&world, AT_ONCE as u64);
    let names: Vec<String> = (0..AT_ONCE).map(|number| format!("o-{number}")).collect();
    let events: Vec<Value> = names.iter().map(|name| batch_of([order(name)])).collect();
    let open_when_all_wait = async {
        gate.reached_by(AT_ONCE as u64).await;
        gate.open();
    };
    let (all, ()) = tokio::join!(world.invoke_at_once(&events), open_when_all_wait);
    for invocation in all.unwrap().invocations {
        assert!(returned(&invocation.result).is_empty());
        assert_eq!(invocation.records.len(), 1, "each invocation logs only its own record");
        assert_eq!(invocation.records[0].outcome.as_str(), "executed");
    }
    world.assert_placed_once(names.iter().map(String::as_str));
}

#[tokio::test]
async fn of_many_invocations_with_one_order_one_places_it() {
    let world = world().await;
    let gate = hold(&world, 1);
    // The producer published the order many times.
    let published = (0..AT_ONCE).map(|copy| message(&format!("m-{copy}"), &order("o-1")));
    let events: Vec<Value> = published.map(|message| batch([message])).collect();
    let meanwhile = async {
        gate.reached().await;
        // Time for the other invocations to find the key claimed.
        tokio::time::sleep(Duration::from_millis(300)).await;
        gate.open();
    };
    let (all, ()) = tokio::join!(world.invoke_at_once(&events), meanwhile);
    let all = all.unwrap();
    // The others find the key claimed, and their messages return to the queue, unless they come late.
    let mut outcomes = outcomes_of(&all.invocations);
    outcomes.retain(|outcome| !["busy", "replayed"].contains(&outcome.as_str()));
    assert_eq!(outcomes, ["executed"]);
    let again = world.invoke_at_once(&events).await.unwrap().invocations;
    assert_eq!(outcomes_of(&again), ["replayed"; AT_ONCE]);
    world.assert_placed_once(["o-1"]);
}
