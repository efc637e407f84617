//! One process with many concurrent invocations, as on Lambda Managed Instances:
//! `lambda_runtime::run_concurrent` with `AWS_LAMBDA_MAX_CONCURRENCY`.

use std::{collections::BTreeSet, time::Duration};

use lambda_idempotency_local::{Apply, Fault, Gate, Invocation};
use lambda_idempotency_tests::{
    ORDERS,
    events::{batch, batch_of, message, order},
};
use serde_json::Value;

use crate::support::{World, orders, returned};

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

#[tokio::test]
async fn batches_that_overlap_place_each_order_once() {
    let world = world().await;
    let names: Vec<String> = (0..20).map(|number| format!("o-{number}")).collect();
    let mut sent = BTreeSet::new();
    for round in 0..3 {
        // Each invocation gets ten of the twenty orders, each in a different order.
        let steps = [1, 3, 7, 9, 11, 13, 17, 19].iter().enumerate();
        let batches: Vec<Vec<&str>> = steps
            .map(|(at, step)| (0..10).map(|n| &*names[(at + round * 5 + n * step) % 20]).collect())
            .collect();
        let events: Vec<Value> =
            batches.iter().map(|batch| batch_of(batch.iter().map(|name| order(name)))).collect();
        // What is busy returns to the queue, which delivers it again.
        let mut left = events;
        while !left.is_empty() {
            let done = world.invoke_at_once(&left).await.unwrap().invocations;
            assert!(done.iter().all(|invocation| invocation.records.len() == 10));
            let mut returns =
                done.iter().map(|invocation| !returned(&invocation.result).is_empty());
            left.retain(|_| returns.next() == Some(true));
        }
        sent.extend(batches.into_iter().flatten());
    }
    world.assert_placed_once(sent);
}
