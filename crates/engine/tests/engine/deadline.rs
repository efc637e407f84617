//! The end of the invocation.

use std::time::Duration;

use lambda_idempotency_core::{clock::Clock, record::Status};

use crate::support::{START, World, ok, rec, slow};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_handler_that_runs_at_the_margin_is_dropped_and_keeps_its_lease() {
    let world = World::new();
    let outcomes = world.deliver(vec![slow("a", 60 * SECOND), ok("b")]).await;
    assert_eq!(outcomes, ["timed_out", "executed"]);
    assert!(world.clock.now() < START.plus(30 * SECOND), "in time for an answer");
    let record = world.stored("a").await.unwrap();
    assert_eq!(record.status, Status::InProgress);
    assert_eq!(record.lease_until, Some(START.plus(31 * SECOND)), "its effect may be on its way");
    world.ledger.assert_never("a");
}

#[tokio::test]
async fn after_a_timeout_the_next_call_is_told() {
    let world = World::new();
    world.deliver(vec![slow("a", 60 * SECOND)]).await;
    world.clock.advance(10 * SECOND);
    let again = rec("a", |_, call| async move {
        assert_eq!(call.lost_attempts(), 1);
        Ok(())
    });
    assert_eq!(world.deliver(vec![again]).await, ["executed"]);
}

#[tokio::test]
async fn what_cannot_be_expected_to_finish_is_not_started() {
    let mut world = World::new();
    world.policy.concurrency = 1;
    let labels = ["a", "b", "c", "d", "e"];
    let outcomes = world.deliver(labels.map(|label| slow(label, 9 * SECOND)).into()).await;
    assert_eq!(outcomes, ["executed", "executed", "executed", "returned", "returned"]);
    assert_eq!(world.stored("d").await, None, "put back");
    assert_eq!(world.deliver(vec![slow("d", SECOND), ok("e")]).await, ["executed"; 2]);
}

#[tokio::test]
async fn the_first_record_always_starts() {
    let mut world = World::new();
    world.policy.concurrency = 1;
    for _ in 0..3 {
        let outcomes = world.deliver(vec![slow("a", 60 * SECOND), ok("b")]).await;
        assert_eq!(
            outcomes[0], "timed_out",
            "a record that is always too slow is tried, not starved"
        );
        world.clock.advance(10 * SECOND);
    }
}

#[tokio::test]
async fn a_short_timeout_has_short_margins() {
    let mut world = World::new();
    world.timeout = Some(SECOND);
    assert_eq!(world.deliver(vec![slow("a", Duration::from_millis(800))]).await, ["executed"]);
}

#[tokio::test]
async fn without_a_deadline_nothing_is_dropped() {
    let world = World { timeout: None, ..World::new() };
    let patient = rec("a", |world: World, call| async move {
        assert_eq!(call.handler_deadline(), None);
        world.clock.sleep(Duration::from_hours(1)).await;
        Ok(())
    });
    assert_eq!(world.deliver(vec![patient]).await, ["executed"]);
}

#[tokio::test]
async fn a_claim_that_waited_for_longer_than_its_lease_does_not_start() {
    let mut world = World { timeout: None, ..World::new() };
    world.policy.concurrency = 1;
    world.policy.fallback_lease = 10 * SECOND;
    let outcomes = world.deliver(vec![slow("a", 15 * SECOND), ok("b")]).await;
    assert_eq!(outcomes, ["executed", "returned"]);
    world.ledger.assert_never("b");
    assert_eq!(world.deliver(vec![ok("b")]).await, ["executed"], "nothing is locked");
}
