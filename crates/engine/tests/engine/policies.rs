//! What users choose: which failures are permanent, what a timeout and an outage mean.

use std::time::Duration;

use lambda_idempotency_core::{
    failure::Failure,
    outcome::Outcome,
    policy::{OnFailure, OnOutage, OnPermanentFailure, OnTimeout},
    record::Status,
    store::StoreErrorKind,
};
use lambda_idempotency_testkit::faults::Fault;

use crate::support::{Rec, World, declining, failing, labels, ok, rec, slow};

const SECOND: Duration = Duration::from_secs(1);

/// A record whose handler fails with an error that says nothing about trying again.
fn plain(label: &'static str) -> Rec {
    rec(label, |_, _| async { Err(Failure::from("no luck")) })
}

#[tokio::test]
async fn a_failure_that_says_nothing_is_tried_again_by_default() {
    let world = World::new();
    assert_eq!(world.deliver(vec![plain("a")]).await, ["failed"]);
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
}

#[tokio::test]
async fn a_failure_that_says_nothing_is_remembered_on_request() {
    let mut world = World::new();
    world.policy.on_failure = OnFailure::FailPermanently;
    assert_eq!(world.deliver(vec![plain("a"), failing("b")]).await, ["failed", "failed"]);
    let outcomes = world.deliver(vec![ok("a"), ok("b")]).await;
    assert_eq!(outcomes, ["permanently_failed", "executed"], "b said that it shall be tried again");
    world.ledger.assert_never("a");
}

#[tokio::test]
async fn failures_are_counted_over_redeliveries_until_the_key_is_parked() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(3);
    let mut permanent = Vec::new();
    for _ in 0..3 {
        let outcomes = world.clock.drive(world.invoke(vec![failing("a")])).await;
        let [Outcome::Failed { permanent: now, .. }] = &*outcomes else { panic!("{outcomes:?}") };
        permanent.push(*now);
    }
    assert_eq!(permanent, [false, false, true], "whoever operates this is told which was the last");
    for _ in 0..2 {
        assert_eq!(
            world.deliver(vec![ok("a")]).await,
            ["permanently_failed"],
            "for the dead-letter queue"
        );
    }
    world.ledger.assert_never("a");
    assert_eq!(world.stored("a").await.unwrap().failed_attempts, 3);
}

#[tokio::test]
async fn a_record_that_is_turned_away_counts_no_failure_and_leaves_no_trace() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(1);
    world.policy.on_failure = OnFailure::FailPermanently;
    for _ in 0..3 {
        assert_eq!(world.deliver(vec![declining("a")]).await, ["declined"]);
        assert_eq!(world.stored("a").await, None);
    }
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn turning_a_record_away_forgets_no_earlier_failure() {
    let world = World::new();
    assert_eq!(world.deliver(vec![failing("a")]).await, ["failed"]);
    assert_eq!(world.deliver(vec![declining("a")]).await, ["declined"]);
    assert_eq!(world.stored("a").await.unwrap().failed_attempts, 1);
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
}

#[tokio::test]
async fn what_is_parked_is_acknowledged_on_request() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(1);
    world.policy.on_permanent_failure = OnPermanentFailure::Acknowledge;
    let outcomes = world.clock.drive(world.invoke(vec![failing("a")])).await;
    assert!(!outcomes[0].is_acknowledged(), "the call that failed tells its source so");
    let outcomes = world.clock.drive(world.invoke(vec![ok("a")])).await;
    assert!(outcomes[0].is_acknowledged(), "{outcomes:?}");
}

#[tokio::test]
async fn owners_that_disappear_do_not_park_a_key() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(2);
    for _ in 0..4 {
        assert_eq!(world.deliver(vec![slow("a", 60 * SECOND)]).await, ["timed_out"]);
        world.clock.advance(10 * SECOND);
    }
    let record = world.stored("a").await.unwrap();
    assert_eq!(
        (record.status, record.failed_attempts, record.lost_attempts),
        (Status::InProgress, 0, 3)
    );
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
}

#[tokio::test]
async fn a_permanent_failure_that_cannot_be_recorded_is_not_claimed() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(1);
    world.store.inject(
        Fault::refuse(StoreErrorKind::Denied).that_writes(Status::PermanentlyFailed).always(),
    );
    let outcomes = world.clock.drive(world.invoke(vec![failing("a")])).await;
    assert!(matches!(&outcomes[0], Outcome::Failed { permanent: false, .. }), "{outcomes:?}");
}

#[tokio::test]
async fn a_timeout_parks_its_key_on_request() {
    let mut world = World::new();
    world.policy.on_timeout = OnTimeout::FailPermanently;
    let outcomes = world.clock.drive(world.invoke(vec![slow("a", 60 * SECOND), ok("b")])).await;
    assert_eq!(labels(&outcomes), ["timed_out", "executed"]);
    assert!(matches!(&outcomes[0], Outcome::TimedOut { permanent: true }));
    assert_eq!(world.stored("a").await.unwrap().status, Status::PermanentlyFailed);
    assert_eq!(world.deliver(vec![ok("a")]).await, ["permanently_failed"]);
    world.ledger.assert_never("a");
}

#[tokio::test]
async fn a_timeout_that_cannot_be_parked_keeps_its_lease() {
    let mut world = World::new();
    world.policy.on_timeout = OnTimeout::FailPermanently;
    let patient = rec("a", |world: World, _| async move {
        world.store.outage();
        std::future::pending().await
    });
    let outcomes = world.clock.drive(world.invoke(vec![patient])).await;
    assert!(matches!(&outcomes[0], Outcome::TimedOut { permanent: false }), "{outcomes:?}");
    world.store.heal();
    world.clock.advance(5 * SECOND);
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"], "once its lease has ended");
}

#[tokio::test]
async fn an_outage_sends_records_back_by_default() {
    let world = World::new();
    world.store.outage();
    assert_eq!(world.deliver(vec![ok("a")]).await, ["unavailable"]);
    world.ledger.assert_never("a");
}

#[tokio::test]
async fn an_outage_is_worked_through_without_protection_on_request() {
    let mut world = World::new();
    world.policy.on_outage = OnOutage::RunUnprotected;
    world.store.outage();
    let keeps_its_key = rec("a", |_, call| async move {
        assert_eq!(call.key_hash(), Some("a"), "subkeys stay the same");
        Ok(())
    });
    let outcomes = world.clock.drive(world.invoke(vec![keeps_its_key, failing("b")])).await;
    assert_eq!(labels(&outcomes), ["unprotected", "failed"]);
    let Outcome::Unprotected { outage: Some(error), .. } = &outcomes[0] else { panic!() };
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "whoever operates this is told why");
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn a_refusal_is_no_outage() {
    let mut world = World::new();
    world.policy.on_outage = OnOutage::RunUnprotected;
    for kind in [StoreErrorKind::Denied, StoreErrorKind::Misconfigured, StoreErrorKind::Corrupt] {
        world.store.inject(Fault::refuse(kind));
        assert_eq!(world.deliver(vec![ok("a")]).await, ["unavailable"], "{kind:?}");
    }
    world.ledger.assert_never("a");
}
