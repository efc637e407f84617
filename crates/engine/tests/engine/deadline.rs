//! The end of the invocation.

use std::{pin::pin, time::Duration};

use futures_util::future::{Either, select};
use lambda_idempotency_core::{
    clock::Clock,
    policy::{Lease, OnTimeout},
    record::Status,
};

use lambda_idempotency_testkit::faults::{Fault, GuardKind};

use crate::support::{START, World, hanging, key, labels, ok, rec, slow};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

#[tokio::test]
async fn a_handler_that_runs_at_its_deadline_is_dropped_and_keeps_its_lease() {
    for (time_after, end) in [(0, 30), (2, 29)] {
        let world = World { time_after: time_after * SECOND, ..World::new() };
        let outcomes = world.deliver(vec![slow("a", 60 * SECOND), ok("b")]).await;
        assert_eq!(outcomes, ["timed_out", "executed"]);
        assert!(world.clock.now() < START.plus(end * SECOND), "time is left for the response");
        let record = world.stored("a").await.unwrap();
        assert_eq!(record.status, Status::InProgress);
        let lease_until = Some(START.plus(31 * SECOND));
        assert_eq!(record.lease_until, lease_until, "its effect may still happen");
        world.ledger.assert_never("a");
    }
}

/// Whatever follows after the batch: the work is done, and there is time to say so.
#[tokio::test]
async fn a_handler_that_keeps_its_thread_beyond_its_deadline_is_completed() {
    for (time_after, blocks) in [(0, 29_400), (2, 27_900), (2, 28_500), (2, 29_700)] {
        let world = World { time_after: time_after * SECOND, ..World::new() };
        let blocking = rec("a", move |world: World, _| async move {
            world.clock.advance(Duration::from_millis(blocks));
            Ok(())
        });
        assert_eq!(world.deliver(vec![blocking]).await, ["executed"], "{blocks}");
        assert_eq!(world.stored("a").await.unwrap().status, Status::Completed, "{blocks}");
    }
}

#[tokio::test]
async fn a_handler_that_is_not_expected_to_finish_is_not_started() {
    let mut world = World::new();
    world.policy.concurrency = 1;
    let labels = ["a", "b", "c", "d", "e"];
    let outcomes = world.deliver(labels.map(|label| slow(label, 9 * SECOND)).into()).await;
    assert_eq!(outcomes, ["executed", "executed", "executed", "returned", "returned"]);
    assert_eq!(world.stored("d").await, None, "undone");
    assert_eq!(world.deliver(vec![slow("d", SECOND), ok("e")]).await, ["executed"; 2]);
}

#[tokio::test]
async fn without_a_deadline_a_handler_runs_until_the_fallback_timeout() {
    for (timeout, outcome) in [(2, "executed"), (1, "timed_out")] {
        let mut world = World { timeout: None, ..World::new() };
        world.policy.fallback_timeout = timeout * HOUR;
        let stop = START.plus(timeout * HOUR - Duration::from_millis(750));
        let patient = rec("a", move |world: World, call| async move {
            assert_eq!(call.handler_deadline(), Some(stop));
            world.clock.sleep(HOUR + SECOND).await;
            Ok(())
        });
        assert_eq!(world.deliver(vec![patient]).await, [outcome]);
        assert!(world.clock.now() <= START.plus(HOUR + 2 * SECOND), "the lease is not waited for");
    }
}

/// The lease is counted from when the claim is sent, and the store takes its time to grant it.
#[tokio::test]
async fn without_a_deadline_a_handler_that_hangs_fails_permanently_and_is_paid_once() {
    for lease in [Lease::Invocation, Lease::Renewed { length: 6 * SECOND }] {
        let mut world = World { timeout: None, ..World::new() };
        world.policy.fallback_timeout = 60 * SECOND;
        world.policy.on_timeout = OnTimeout::FailPermanently;
        world.policy.lease = lease;
        for (begins, outcome) in [(1, "timed_out"), (1, "permanently_failed")] {
            let pays = rec("a", |world: World, _| async move {
                world.ledger.record("paid", "");
                std::future::pending().await
            });
            assert_eq!(world.deliver(vec![pays]).await, [outcome], "{lease:?}");
            assert_eq!(world.ledger.executed("paid"), begins, "{lease:?}");
            world.clock.advance(60 * SECOND);
        }
    }
}

#[tokio::test]
async fn without_a_deadline_a_handler_without_a_claim_is_stopped_at_the_fallback_timeout() {
    let mut world = World { timeout: None, ..World::new() };
    world.policy.fallback_timeout = HOUR;
    let hangs = hanging("a").unprotected();
    let limit = world.clock.sleep(200 * HOUR);
    let running = pin!(world.invoke(vec![hangs, ok("b")]));
    let ended = world.clock.drive(select(running, limit)).await;
    let Either::Left((outcomes, _)) = ended else { panic!("it was never stopped") };
    assert_eq!(labels(&outcomes), ["timed_out", "executed"]);
    let took = world.clock.now().since(START);
    assert!((HOUR - SECOND..HOUR).contains(&took), "{took:?}");

    let in_time = slow("c", HOUR - 2 * SECOND).unprotected();
    assert_eq!(world.deliver(vec![in_time]).await, ["unprotected"]);
}

/// A handler keeps the processor until shortly before the answer is due, while a claim has no answer.
#[tokio::test]
async fn a_claim_in_doubt_is_undone_when_its_answer_comes_after_the_handler_deadline() {
    let world = World::yielding();
    let blocking = rec("a", |world: World, _| async move {
        world.clock.sleep(SECOND).await;
        world.clock.advance(Duration::from_millis(28_400));
        Ok(())
    });
    let lost = Fault::delay_answer(world.clock.clone(), 5 * SECOND);
    world.store.inject(lost.for_key(&key("b")).guarded_by(GuardKind::Absent));
    let first = slow("c", Duration::from_millis(990)).group("g");
    let outcomes = world.deliver(vec![blocking, first, ok("b").group("g")]).await;
    assert_eq!(outcomes, ["executed", "executed", "unavailable"]);
    assert_eq!(world.stored("b").await, None, "undone");
}
