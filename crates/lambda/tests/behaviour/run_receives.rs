//! `run` in a program that polls a queue itself, and says how often it received each message.

use std::time::Duration;

use lambda_idempotency::{Call, Failure, Run, RunContext, RunError};
use lambda_idempotency_core::clock::Clock as _;
use lambda_idempotency_testkit::crashing::drop_after;
use serde_json::json;

use crate::support::{World, place};

/// What a handler learns: how often its payload was received, and how many attempts were lost.
type Learnt = (Option<u32>, u32);

/// A call by a process that knows nothing of the calls before.
async fn run(world: &World, id: &str, receives: u32) -> Result<Run<Learnt>, RunError> {
    let idempotency = world.idempotency();
    let (operation, payload) = (place(), json!({ "id": id }));
    let context = RunContext::without_deadline().with_receives(receives);
    let handler = async |call: Call| Ok::<_, Failure>((call.receives(), call.lost_attempts()));
    world.clock.drive(idempotency.run(&operation, &payload, &context, handler)).await
}

/// A call whose process dies in the handler; then its lease ends.
async fn run_and_die(world: &World, id: &str, receives: u32) {
    let idempotency = world.idempotency();
    let (operation, payload) = (place(), json!({ "id": id }));
    let deadline = world.clock.now().plus(Duration::from_secs(30));
    let context = RunContext::from(&deadline).with_receives(receives);
    let forever = |_: Call| std::future::pending::<Result<Learnt, Failure>>();
    let running = idempotency.run(&operation, &payload, &context, forever);
    assert!(drop_after(1, running).await.is_none());
    world.clock.advance(Duration::from_secs(40));
}

/// The reads and writes of the store since the last time.
fn calls(world: &World) -> (usize, usize) {
    let calls = (world.store.read_calls(), world.store.write_calls());
    world.store.forget();
    calls
}

#[tokio::test]
async fn what_was_received_before_is_read_before_it_is_claimed() {
    let world = World::new();
    for (receives, new, duplicate) in
        [(0, (0, 2), (0, 1)), (1, (0, 2), (0, 1)), (2, (1, 2), (1, 0)), (7, (1, 2), (1, 0))]
    {
        let id = receives.to_string();
        let first = run(&world, &id, receives).await.unwrap();
        assert_eq!(first.result, ((receives > 0).then_some(receives), 0));
        assert_eq!((first.replayed, calls(&world)), (false, new), "new, {receives}");
        let again = run(&world, &id, receives).await.unwrap();
        assert_eq!((again.replayed, calls(&world)), (true, duplicate), "again, {receives}");
    }
}

/// Not even one that changes from call to call.
#[tokio::test]
async fn a_wrong_number_changes_no_answer() {
    for numbers in [[0, 9, 0, 2], [9, 1, 2, 0], [u32::MAX, 1, u32::MAX, 3]] {
        let world = World::new();
        let mut replayed = Vec::new();
        for receives in numbers {
            replayed.push(run(&world, "a", receives).await.unwrap().replayed);
        }
        assert_eq!(replayed, [false, true, true, true], "{numbers:?}");
    }
}

/// Its losses put it into quarantine, where the number counts.
#[tokio::test]
async fn a_payload_that_was_lost_runs_whatever_the_number() {
    for receives in [0, 1, 2, 50, u32::MAX] {
        let world = World::instant();
        for _ in 0..3 {
            run_and_die(&world, "a", receives).await;
        }
        let last = run(&world, "a", receives).await.unwrap();
        assert_eq!((last.result.1, last.replayed), (3, false), "{receives}");
    }
}
