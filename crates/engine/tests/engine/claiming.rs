//! Claims, replays and the requests that they cost.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    capabilities::Capabilities,
    clock::{BoxFuture, Clock, Timestamp},
    failure::Failure,
    record::{IdempotencyRecord, Status},
    store::{Guard, Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;
use lambda_idempotency_testkit::{
    clock::ManualClock,
    faults::{Fault, GuardKind},
};

use crate::support::{World, failing, labels, ok, rec};

const LABELS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

#[tokio::test]
async fn a_fresh_batch_runs_and_completes_each_record() {
    let world = World::new();
    let outcomes = world.deliver(LABELS.map(ok).into()).await;
    assert_eq!(outcomes, ["executed"; 10]);
    world.ledger.assert_each_once(LABELS);
    assert_eq!(world.stored("a").await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn a_fresh_batch_is_one_claim_and_one_completion() {
    let world = World::new();
    world.deliver(LABELS.map(ok).into()).await;
    assert_eq!((world.store.write_calls(), world.store.read_calls()), (2, 0));
}

#[tokio::test]
async fn duplicates_are_answered_by_one_call_and_run_nothing() {
    let world = World::new();
    world.deliver(LABELS.map(ok).into()).await;
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
async fn a_failed_record_is_tried_again_with_its_counts() {
    let world = World::new();
    assert_eq!(world.deliver(vec![failing("a"), ok("b")]).await, ["failed", "executed"]);
    assert_eq!(world.deliver(vec![failing("a"), ok("b")]).await, ["failed", "replayed"]);
    let again = rec("a", |_, call| async move {
        assert_eq!((call.failed_attempts(), call.lost_attempts()), (2, 0));
        Ok(())
    });
    assert_eq!(world.deliver(vec![again]).await, ["executed"]);
}

#[tokio::test]
async fn a_permanent_failure_is_not_tried_again() {
    let world = World::new();
    let permanent = || rec("a", |_, _| async { Err(Failure::permanent("never")) });
    assert_eq!(world.deliver(vec![permanent()]).await, ["failed"]);
    assert_eq!(world.deliver(vec![ok("a")]).await, ["permanently_failed"]);
    world.ledger.assert_never("a");
}

#[tokio::test]
async fn after_the_maximum_of_failed_attempts_a_key_fails_permanently() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(2);
    assert_eq!(world.deliver(vec![failing("a")]).await, ["failed"]);
    assert_eq!(world.deliver(vec![failing("a")]).await, ["failed"]);
    assert_eq!(world.deliver(vec![ok("a")]).await, ["permanently_failed"]);
}

#[tokio::test]
async fn a_panic_fails_its_record_alone() {
    let world = World::new();
    let panics = rec("a", |_, _| async { panic!("rehearsed") });
    assert_eq!(world.deliver(vec![panics, ok("b")]).await, ["failed", "executed"]);
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
}

#[tokio::test]
async fn a_lost_claim_answer_is_recognised_by_its_token() {
    // The store's client retries, so the record that the engine gets as `Found` may be its own claim.
    let world = World::new();
    world.store.inject(Fault::duplicate(0).guarded_by(GuardKind::Absent));
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn a_claim_in_doubt_is_undone() {
    let world = World::new();
    world.store.inject(Fault::lose_answer().guarded_by(GuardKind::Absent));
    assert_eq!(world.deliver(vec![ok("a"), ok("b")]).await, ["unavailable"; 2]);
    assert_eq!(world.deliver(vec![ok("a"), ok("b")]).await, ["executed"; 2], "both keys are free");
}

/// A store that answers no write before its call deadline, and keeps the writes and their deadlines.
struct Silent(ManualClock, Mutex<Vec<(Write, Timestamp)>>);

impl Store for Silent {
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let asked = writes.iter().map(|write| (write.clone(), call_deadline));
            self.1.lock().unwrap().extend(asked);
            self.0.sleep(call_deadline.since(self.0.now())).await;
            let error = StoreError::new(StoreErrorKind::Unavailable, "silent");
            vec![Verdict::Unknown(error); writes.len()]
        })
    }

    fn read<'a>(
        &'a self,
        _keys: &'a [Key],
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        unreachable!("no record is known, so none is read")
    }
}

#[tokio::test]
async fn undoing_a_claim_in_doubt_has_its_own_call_deadline() {
    let world = World::new();
    let store = Arc::new(Silent(world.clock.clone(), Mutex::default()));
    let outcomes = world.clock.drive(world.invoke_on(Arc::clone(&store), vec![ok("a")])).await;
    assert_eq!(labels(&outcomes), ["unavailable"]);
    let asked = store.1.lock().unwrap();
    let [.., (_, claiming), (undo, last)] = &asked[..] else { panic!("{asked:?}") };
    assert!(matches!(undo.guard, Guard::OwnedBy(_)) && undo.record.is_none());
    assert!(last > claiming, "the call deadline of the claim has passed when the undo is written");
}

#[tokio::test]
async fn an_outage_during_claims_runs_nothing() {
    let world = World::new();
    world.store.outage();
    assert_eq!(world.deliver(LABELS.map(ok).into()).await, ["unavailable"; 10]);
    assert_eq!(world.ledger.total(), 0);
    world.store.heal();
    assert_eq!(world.deliver(LABELS.map(ok).into()).await, ["executed"; 10]);
}

#[tokio::test]
async fn one_throttled_claim_does_not_harm_the_others() {
    let world = World::new();
    let throttled = crate::support::key("b");
    world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_key(&throttled));
    let outcomes = world.deliver(vec![ok("a"), ok("b"), ok("c")]).await;
    assert_eq!(outcomes, ["executed", "unavailable", "executed"]);
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
