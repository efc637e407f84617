//! Claims, replays and the requests that they cost.

use std::time::Duration;

use lambda_idempotency_core::{record::Status, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::{Fault, GuardKind};

use crate::support::{World, ok};

const LABELS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

#[tokio::test]
async fn a_fresh_batch_is_a_claim_and_a_completion_and_its_duplicates_are_one_call() {
    let world = World::new();
    assert_eq!(world.deliver(LABELS.map(ok).into()).await, ["executed"; 10]);
    assert_eq!((world.store.write_calls(), world.store.read_calls()), (2, 0));
    assert_eq!(world.stored("a").await.unwrap().status, Status::Completed);
    world.store.forget();
    let outcomes = world.deliver(LABELS.map(ok).into()).await;
    assert_eq!(outcomes, ["replayed"; 10]);
    assert_eq!((world.store.write_calls(), world.store.read_calls()), (1, 0));
    world.ledger.assert_each_once(LABELS);
}

#[tokio::test]
async fn an_empty_batch_calls_nothing() {
    let world = World::new();
    assert!(world.deliver(vec![]).await.is_empty());
    assert_eq!(world.store.write_calls(), 0);
}

#[tokio::test]
async fn after_the_retention_the_work_is_done_again() {
    let world = World::new();
    world.deliver(vec![ok("a")]).await;
    world.clock.advance(Duration::from_hours(24));
    assert_eq!(world.deliver(vec![ok("a")]).await, ["replayed"], "at its last instant it counts");
    world.clock.advance(Duration::from_secs(3));
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
    assert_eq!(world.ledger.executed("a"), 2);
}

#[tokio::test]
async fn a_claim_in_doubt_is_undone() {
    let world = World::new();
    world.store.inject(Fault::lose_answer().guarded_by(GuardKind::Absent));
    assert_eq!(world.deliver(vec![ok("a"), ok("b")]).await, ["unavailable"; 2]);
    assert_eq!(world.deliver(vec![ok("a"), ok("b")]).await, ["executed"; 2], "both keys are free");
}

#[tokio::test]
async fn a_large_batch_is_claimed_in_few_calls() {
    let world = World::new();
    let labels: Vec<&'static str> =
        (0..1000).map(|n| &*Box::leak(format!("k{n}").into_boxed_str())).collect();
    let outcomes = world.deliver(labels.iter().map(|label| ok(label)).collect()).await;
    assert_eq!(outcomes, vec!["executed"; 1000]);
    assert!(world.store.write_calls() <= 30, "{} calls", world.store.write_calls());
}

/// It would be the same until the time for claims is over, and the other records with it.
#[tokio::test]
async fn a_claim_that_is_refused_slowly_is_not_sent_again() {
    let world = World::new();
    let claims = || Fault::delay(world.clock.clone(), Duration::from_millis(800));
    world.store.inject(claims().guarded_by(GuardKind::Absent));
    let denied = Fault::refuse(StoreErrorKind::Denied).guarded_by(GuardKind::Absent);
    world.store.inject(denied.always());
    assert_eq!(world.deliver(vec![ok("a"), ok("b")]).await, ["unavailable"; 2]);
    assert_eq!(world.store.write_calls(), 1);
}
