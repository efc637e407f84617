//! Mutex mode: handlers of a key do not overlap, each delivery calls one, and nothing is kept of it.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::Clock as _,
    failure::Failure,
    outbox::{Message, PublishError},
    outcome::Outcome,
    policy::{Mode, OnTimeout},
    record::Status,
    store::{Guard, StoreErrorKind},
};
use lambda_idempotency_engine::{call::Call, steps::StepError};
use lambda_idempotency_testkit::faults::{Fault, GuardKind};

use crate::{
    in_process::SECOND,
    support::{Rec, World, assert_took, declining, failing, labels, ok, rec, slow},
};

fn world() -> World {
    let mut world = World::new();
    world.policy.mode = Mode::Mutex;
    world
}

/// A handler that works for a second, and notes if another is at work.
fn alone(label: &'static str) -> Rec {
    rec(label, move |world: World, _| async move {
        assert_eq!(world.ledger.executed("at work"), world.ledger.executed("at rest"), "overlap");
        world.ledger.record("at work", label);
        world.clock.sleep(SECOND).await;
        world.ledger.record("at rest", label);
        Ok(())
    })
}

#[tokio::test]
async fn each_delivery_runs_and_leaves_no_record() {
    let world = world();
    for _ in 0..3 {
        assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
        assert_eq!(world.stored("a").await, None);
    }
    assert_eq!(world.ledger.executed("a"), 3);
    assert_eq!(world.requests(), 6, "a claim and a deletion each");
}

#[tokio::test]
async fn copies_in_a_batch_run_one_after_the_other() {
    let world = world();
    let before = world.clock.now();
    assert_eq!(world.deliver(vec![alone("a"), alone("a"), alone("a")]).await, ["executed"; 3]);
    assert_took(&world, before, 3 * SECOND);
    assert_eq!(world.stored("a").await, None);
}

#[tokio::test]
async fn a_failure_frees_the_key_and_is_forgotten() {
    let mut world = world();
    world.policy.max_failed_attempts = Some(1);
    let permanent = || rec("b", |_, _| async { Err(Failure::permanent("no")) });
    let panics = rec("c", |_: World, _| async { panic!("no luck") });
    let batch = vec![failing("a"), permanent(), panics, declining("d")];
    let outcomes = world.clock.drive(world.invoke(batch)).await;
    assert_eq!(labels(&outcomes), ["failed", "failed", "failed", "declined"]);
    let is_permanent =
        |outcome: &Outcome| matches!(outcome, Outcome::Failed { permanent: true, .. });
    assert!(!outcomes.iter().any(is_permanent), "{outcomes:?}");
    for label in ["a", "b", "c", "d"] {
        assert_eq!(world.stored(label).await, None, "{label}");
    }
    let told = rec("a", |_, call: Call| async move {
        assert_eq!((call.failed_attempts(), call.lost_attempts()), (0, 0));
        Ok(())
    });
    assert_eq!(world.deliver(vec![told, permanent()]).await, ["executed", "failed"]);
}

#[tokio::test]
async fn a_permanent_failure_is_one_for_who_takes_care_of_the_record_at_once() {
    let world = world();
    let permanent = || rec("a", |_, _| async { Err(Failure::permanent("no")) }).passing();
    let batch = vec![permanent().group("g"), ok("b").group("g")];
    let outcomes = world.clock.drive(world.invoke(batch)).await;
    assert!(matches!(outcomes[0], Outcome::Failed { permanent: true, .. }), "{outcomes:?}");
    assert_eq!(outcomes[1].label(), "executed");
    assert_eq!(world.stored("a").await, None);
}

#[tokio::test]
async fn a_handler_that_is_stopped_keeps_its_key_until_the_lease_ends() {
    for on_timeout in [OnTimeout::Return, OnTimeout::FailPermanently] {
        let mut world = world();
        world.policy.on_timeout = on_timeout;
        let hangs = slow("a", 3600 * SECOND);
        assert_eq!(world.deliver(vec![hangs]).await, ["timed_out"]);
        let left = world.stored("a").await.unwrap();
        assert_eq!((left.status, left.is_given_up()), (Status::InProgress, true));
        assert_eq!(world.deliver(vec![ok("b"), declining("c")]).await, ["executed", "declined"]);
        world.clock.advance(4 * SECOND);
        let told = rec("a", |_, call: Call| async move {
            assert_eq!(call.lost_attempts(), 1, "its effect may have happened");
            Ok(())
        });
        assert_eq!(world.deliver(vec![told]).await, ["executed"]);
        assert_eq!(world.stored("a").await, None);
    }
}

#[tokio::test]
async fn a_deletion_whose_answer_is_lost_is_sent_again_and_frees_no_other_key() {
    let world = world();
    world.store.inject(Fault::lose_answer().guarded_by(GuardKind::OwnedBy));
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
    assert_eq!((world.stored("a").await, world.requests()), (None, 3));
    let writes = world.writes().into_iter();
    let deletions: Vec<_> = writes.filter(|write| write.record.is_none()).collect();
    assert_eq!(deletions.len(), 2);
    assert!(deletions.iter().all(|write| matches!(write.guard, Guard::OwnedBy(_))));
}

#[tokio::test]
async fn a_key_that_cannot_be_freed_is_free_when_the_lease_ends() {
    let world = world();
    let refused = Fault::refuse(StoreErrorKind::Unavailable).guarded_by(GuardKind::OwnedBy);
    world.store.inject(refused.always());
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"], "the handler returned Ok");
    assert_eq!(world.stored("a").await.unwrap().status, Status::InProgress);
    world.store.heal();
    world.clock.advance(Duration::from_secs(33));
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
    assert_eq!(world.stored("a").await, None);
}

#[tokio::test]
async fn what_would_have_to_be_kept_is_refused() {
    let world = world();
    let steps = rec("a", |_, call: Call| async move {
        let error = call.step("charge", |_| async { Ok(1) }).await.unwrap_err();
        assert!(error.message().contains("`.mode(Mode::Mutex)`"), "{error:?}");
        assert!(matches!(error.error().downcast_ref(), Some(StepError::Mutex { .. })), "{error:?}");
        assert_eq!(call.publish(Message::new("q", "1")), Err(PublishError::Mutex));
        Ok(())
    });
    assert_eq!(world.deliver(vec![steps]).await, ["executed"]);
}

#[tokio::test]
async fn each_attempt_has_subkeys_of_its_own() {
    let world = world();
    for _ in 0..2 {
        let notes = rec("a", |world: World, call: Call| async move {
            assert_eq!(call.subkey("charge"), call.subkey("charge"));
            world.ledger.record(call.subkey("charge"), "");
            Ok(())
        });
        assert_eq!(world.deliver(vec![notes]).await, ["executed"]);
    }
    assert!(world.ledger.doubled().iter().all(|effect| effect == "a"), "the work may repeat");
}
