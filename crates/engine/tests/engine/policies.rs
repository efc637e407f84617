//! The policies that users choose: which failures are permanent, and what follows a timeout or an
//! outage.

use std::time::Duration;

use lambda_idempotency_core::{
    outcome::Outcome,
    policy::{OnOutage, OnTimeout},
    record::Status,
    store::StoreErrorKind,
};
use lambda_idempotency_testkit::faults::Fault;

use crate::support::{World, declining, failing, labels, ok, rec, slow};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn failed_attempts_are_counted_over_redeliveries_until_the_key_fails_permanently() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(3);
    let mut permanent = Vec::new();
    for _ in 0..3 {
        let outcomes = world.clock.drive(world.invoke(vec![failing("a")])).await;
        let [Outcome::Failed { permanent: now, .. }] = &*outcomes else { panic!("{outcomes:?}") };
        permanent.push(*now);
    }
    assert_eq!(permanent, [false, false, true], "the outcome says which attempt was the last");
    for _ in 0..2 {
        assert_eq!(
            world.deliver(vec![ok("a")]).await,
            ["permanently_failed"],
            "returned, so that the source moves it to its dead-letter queue"
        );
    }
    world.ledger.assert_never("a");
    assert_eq!(world.stored("a").await.unwrap().failed_attempts, 3);
}

#[tokio::test]
async fn a_declined_record_counts_no_failed_attempt_and_stores_nothing() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(1);
    for _ in 0..3 {
        assert_eq!(world.deliver(vec![declining("a")]).await, ["declined"]);
        assert_eq!(world.stored("a").await, None);
    }
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn lost_attempts_do_not_count_as_failed_attempts() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(2);
    for _ in 0..4 {
        assert_eq!(world.deliver(vec![slow("a", 60 * SECOND)]).await, ["timed_out"]);
        world.clock.advance(10 * SECOND);
    }
    let record = world.stored("a").await.unwrap();
    assert_eq!(
        (record.status, record.failed_attempts, record.lost_attempts),
        (Status::InProgress, 0, 4)
    );
    assert_eq!(record.consecutive_losses, 0, "each was stopped in time, and said so");
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
}

#[tokio::test]
async fn a_timeout_is_permanent_on_request() {
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
async fn a_timeout_that_cannot_be_recorded_as_permanent_keeps_its_lease() {
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
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"], "after its lease has ended");
}

#[tokio::test]
async fn an_outage_runs_records_unprotected_on_request() {
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
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "the outcome names the reason");
    world.ledger.assert_once("a");
}

/// Nor is a result that cannot be read: the work was done, and to run its handler again would do it twice.
#[tokio::test]
async fn a_refusal_is_not_an_outage() {
    let mut world = World::new();
    world.policy.on_outage = OnOutage::RunUnprotected;
    let kinds = [
        StoreErrorKind::Denied,
        StoreErrorKind::Misconfigured,
        StoreErrorKind::Corrupt,
        StoreErrorKind::Contended,
        StoreErrorKind::ResultUnavailable,
    ];
    for kind in kinds {
        world.store.inject(Fault::refuse(kind).always());
        assert_eq!(world.deliver(vec![ok("a")]).await, ["unavailable"], "{kind:?}");
        world.store.heal();
    }
    world.ledger.assert_never("a");
}
