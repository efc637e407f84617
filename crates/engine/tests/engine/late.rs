//! Handlers that would start or continue after their lease expired, because the process was suspended
//! (`SIGSTOP`, a frozen sandbox) or its processor was busy.

use std::{
    pin::{Pin, pin},
    time::Duration,
};

use futures_util::future::{Either, select};
use lambda_idempotency_core::{
    clock::Clock as _,
    policy::{Lease, OnTimeout},
};
use lambda_idempotency_engine::batch::Engine;
use lambda_idempotency_testkit::deadlines::BrokenRule;

use crate::support::{Rec, World, labels, ok, rec, slow};

const SECOND: Duration = Duration::from_secs(1);

/// A record whose handler occupies the processor for this long, so that no other handler is polled.
fn busy(label: &'static str, takes: Duration) -> Rec {
    rec(label, move |world: World, _| async move {
        world.clock.advance(takes);
        Ok(())
    })
}

/// Drives an invocation until its handlers run. Then its process is suspended.
async fn begin(world: &World, invocation: &mut Pin<&mut impl Future>) {
    let a_moment = world.clock.sleep(Duration::from_millis(100));
    let begun = world.clock.drive(select(invocation.as_mut(), a_moment)).await;
    assert!(matches!(begun, Either::Right(_)), "its handlers do not end");
}

#[tokio::test]
async fn a_handler_does_not_start_after_its_lease_expired() {
    let mut world = World { timeout: Some(60 * SECOND), ..World::new() };
    world.policy.lease = Lease::Renewed { length: 10 * SECOND };
    let outcomes = world.deliver(vec![busy("a", 15 * SECOND), ok("b")]).await;
    assert_eq!(outcomes, ["executed", "returned"]);
    world.ledger.assert_never("b");
    assert_eq!(world.stored("b").await, None, "undone: it was never started");
    assert_eq!(world.deliver(vec![ok("b")]).await, ["executed"]);
}

#[tokio::test]
async fn a_record_not_started_in_time_is_returned_and_its_key_is_free() {
    for kept_busy in [Duration::from_millis(29_300), Duration::from_millis(29_500)] {
        let mut world = World::new();
        world.policy.on_timeout = OnTimeout::FailPermanently;
        // A store that applies what is late as well, as it may.
        let engine = Engine::new(world.store.clone()).with_clock(world.clock.clone());
        let records = vec![busy("a", kept_busy), ok("b")];
        let outcomes = world.clock.drive(world.invoke_by(&engine, records)).await;
        assert_eq!(labels(&outcomes)[1], "returned", "{kept_busy:?}");
        world.ledger.assert_never("b");
        assert_eq!(world.stored("b").await, None, "{kept_busy:?}");
    }
}

/// The process does nothing until its invocation is over. A store that then takes no call keeps the
/// claim, whose lease is over as well.
#[tokio::test]
async fn a_record_not_started_by_the_end_of_the_invocation_starts_at_its_next_delivery() {
    let world = World { tolerates: &[BrokenRule::CalledTooLate], ..World::new() };
    let outcomes = world.deliver(vec![busy("a", 40 * SECOND), ok("b")]).await;
    assert_eq!(outcomes, ["completion_lost", "returned"]);
    world.ledger.assert_never("b");
    assert_eq!(world.deliver(vec![ok("b")]).await, ["executed"]);
}

#[tokio::test]
async fn a_result_that_is_ready_after_a_suspension_counts_until_the_lease_ends() {
    let world = World::new();
    let mut stopped = pin!(world.invoke(vec![slow("a", 5 * SECOND)]));
    begin(&world, &mut stopped).await;
    world.clock.advance(29 * SECOND + Duration::from_millis(300));
    assert_eq!(labels(&world.clock.drive(stopped).await), ["executed"]);
    world.ledger.assert_once("a");
}
