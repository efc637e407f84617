//! Keys that another worker holds.

use std::time::Duration;

use lambda_idempotency_core::{clock::Clock, failure::Failure, policy::OnConflict};

use crate::support::{START, World, assert_took, labels, ok, rec, slow};

const SECOND: Duration = Duration::from_secs(1);

/// A worker that claims the key of `label` and is killed while its handler runs.
async fn dies_with(world: &World, label: &'static str) {
    let forever = rec(label, |_, _| std::future::pending::<Result<(), Failure>>());
    world.dies(vec![forever]).await;
}

#[tokio::test]
async fn a_queue_record_waits_for_a_lease_that_ends_soon() {
    let world = World::new();
    dies_with(&world, "a").await;
    // 30 s of timeout, 1 s of lease grace, 1 s of clock skew.
    world.clock.advance(30 * SECOND + Duration::from_millis(500));
    let again = rec("a", |_, call| async move {
        assert_eq!((call.failed_attempts(), call.lost_attempts()), (0, 1));
        Ok(())
    });
    assert_eq!(world.deliver(vec![again]).await, ["executed"]);
}

#[tokio::test]
async fn waiting_ends_at_its_limit_and_at_the_deadline() {
    let mut world = World::new();
    dies_with(&world, "a").await;
    world.policy.on_conflict = OnConflict::Wait { up_to: 5 * SECOND };
    assert_eq!(world.deliver(vec![ok("a")]).await, ["busy"]);
    assert_took(&world, START, 5 * SECOND);
    // After 0.1, 0.3, 0.7, 1.5, 2.5, 3.5, 4.5 and 5 s.
    assert_eq!(world.store.read_calls(), 8, "it is looked at ever more rarely");
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    world.timeout = Some(10 * SECOND);
    assert_eq!(world.deliver(vec![ok("a")]).await, ["busy"]);
    assert!(world.clock.now() < START.plus(15 * SECOND));
}

#[tokio::test]
async fn after_a_wait_a_handler_that_cannot_finish_does_not_start() {
    let mut world = World::new();
    dies_with(&world, "a").await;
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    // The lease ends 32 s after the start, and 2.25 s before handlers are stopped.
    world.clock.advance(10 * SECOND);
    world.timeout = Some(25 * SECOND);
    assert_eq!(world.deliver(vec![ok("a")]).await, ["returned"]);
    world.ledger.assert_never("a");
    let next = rec("a", |_, call| async move {
        assert_eq!(call.lost_attempts(), 1, "the returned delivery claimed nothing");
        Ok(())
    });
    assert_eq!(world.deliver(vec![next]).await, ["executed"], "no lease holds the key");
}

#[tokio::test]
async fn after_a_wait_the_observed_handler_duration_decides() {
    let mut world = World::new();
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    for (takes, outcome) in [(Duration::from_millis(1500), "executed"), (4 * SECOND, "returned")] {
        let world = World { policy: world.policy.clone(), ..World::new() };
        assert_eq!(world.deliver(vec![slow("pace", takes)]).await, ["executed"]);
        dies_with(&world, "a").await;
        world.clock.advance(10 * SECOND);
        // The lease ends 3.15 s before handlers are stopped: more than a tenth of the timeout.
        let waits = World { timeout: Some(26 * SECOND), ..world.clone() };
        assert_eq!(waits.deliver(vec![slow("a", takes)]).await, [outcome], "{takes:?}");
        assert_eq!(
            world.deliver(vec![slow("a", takes)]).await[0].starts_with("re"),
            outcome == "executed"
        );
    }
}

#[tokio::test]
async fn a_result_is_awaited_even_if_there_is_no_time_to_do_the_work() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    assert_eq!(world.deliver(vec![slow("pace", 20 * SECOND)]).await, ["executed"]);
    let (_, second) = world
        .clock
        .drive(async {
            let later = async {
                world.clock.sleep(Duration::from_millis(10)).await;
                world.invoke(vec![ok("a"), ok("b")]).await
            };
            tokio::join!(world.invoke(vec![slow("a", 20 * SECOND)]), later)
        })
        .await;
    assert_eq!(labels(&second), ["replayed", "executed"]);
}

/// Its own worker stopped it and returned it, and the lease stands.
#[tokio::test]
async fn a_key_whose_handler_was_stopped_is_busy_until_its_lease_ends() {
    for receives in [0, 2] {
        let world = World::new();
        assert_eq!(world.deliver(vec![slow("a", 40 * SECOND)]).await, ["timed_out"]);
        world.clock.advance(SECOND);
        let outcomes = world.deliver(vec![ok("a").receives(receives)]).await;
        assert_eq!(outcomes, ["executed"], "the lease was about to end, so it was waited for");
    }
}
