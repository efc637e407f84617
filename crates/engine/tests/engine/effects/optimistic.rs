//! Optimistic mode: no claim, and the completion is inserted together with the effects.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    failure::Failure,
    outcome::Outcome,
    policy::{Mode, OnTimeout},
    record::{Fingerprint, IdempotencyRecord, Owner, Status},
    store::{Guard, StoreErrorKind},
};
use lambda_idempotency_engine::{batch::Engine, call::Call};
use lambda_idempotency_testkit::{clock::ManualClock, faults::Fault};

use super::{SECOND, collect, collecting, commits, refused};
use crate::support::{START, World, assert_took, declining, failing, key, ok, rec};

fn world() -> World {
    let mut world = World::new();
    world.policy.mode = Mode::Optimistic;
    world
}

/// A completed record of another worker.
fn completed(expires_at: u64) -> IdempotencyRecord {
    let expires_at = Timestamp::from_secs(expires_at);
    let mut record = IdempotencyRecord::new(Status::Completed, expires_at);
    (record.owner, record.result) = (Some(Owner::from_bits(5)), Some("7".into()));
    record
}

/// How often the handler of a label returned.
fn returns(world: &World, label: &str) -> usize {
    world.ledger.executed(label)
}

#[tokio::test]
async fn a_fresh_record_is_one_write_with_its_effects() {
    let world = world();
    assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"]);
    assert_eq!((world.requests(), world.effects("a")), (1, 1));
    let sent = world.commits();
    assert_eq!((sent.len(), &sent[0].guard), (1, &Guard::Absent));
    let stored = world.stored("a").await.unwrap();
    assert_eq!((stored.status, stored.settled_at()), (Status::Completed, Some(START)));
    assert_eq!(world.deliver(vec![collecting("b"), ok("c")]).await, ["executed"; 2]);
    assert_eq!(world.stored("c").await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn a_duplicate_that_was_not_received_before_runs_and_applies_nothing() {
    let world = world();
    assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"]);
    let outcomes = world.clock.drive(world.invoke(vec![collecting("a")])).await;
    assert!(matches!(&outcomes[0], Outcome::Superseded { result: Some(_), .. }), "{outcomes:?}");
    assert_eq!((returns(&world, "a"), world.effects("a")), (2, 1));
}

#[tokio::test]
async fn a_record_that_was_received_before_is_read_first() {
    let world = world();
    assert_eq!(world.deliver(vec![collecting("a").receives(1)]).await, ["executed"]);
    assert_eq!(world.deliver(vec![collecting("a").receives(2)]).await, ["replayed"]);
    assert_eq!((world.store.read_calls(), returns(&world, "a"), world.effects("a")), (1, 1, 1));
    assert_eq!(world.deliver(vec![collecting("b").receives(2)]).await, ["executed"]);
}

#[tokio::test]
async fn an_expired_record_is_replaced_whether_it_was_read_or_not() {
    for receives in [1, 2] {
        let world = world();
        world.store.inner().insert(key("a"), completed(900_000));
        let record = collecting("a").receives(receives);
        assert_eq!(world.deliver(vec![record]).await, ["executed"]);
        assert_eq!(world.effects("a"), 1);
        let last = world.commits().pop().unwrap();
        assert!(matches!(last.guard, Guard::Unchanged(_)), "{last:?}");
        assert_eq!(last.record.unwrap().expires_at, world.stored("a").await.unwrap().expires_at);
    }
}

#[tokio::test]
async fn an_expired_record_that_is_swept_meanwhile_is_inserted_anew() {
    let world = world();
    world.store.inner().insert(key("a"), completed(900_000));
    let swept = rec("a", |world: World, call| async move {
        world.store.inner().sweep(world.clock.now());
        Ok(collect(&world, &call, "a")?)
    });
    assert_eq!(world.deliver(vec![swept.receives(2)]).await, ["executed"]);
    assert_eq!(world.effects("a"), 1);
}

#[tokio::test]
async fn an_attempt_that_fails_or_declines_writes_nothing() {
    let world = world();
    let fails = rec("a", |world: World, call| async move {
        collect(&world, &call, "a")?;
        Err(Failure::transient("no luck"))
    });
    let panics = rec("b", |_: World, _| async { panic!("no luck") });
    let outcomes = world.deliver(vec![fails, panics, declining("c"), failing("d")]).await;
    assert_eq!(outcomes, ["failed", "failed", "declined", "failed"]);
    assert_eq!((world.requests(), world.effects("a")), (0, 0));
    assert_eq!(world.deliver(vec![collecting("a").receives(2)]).await, ["executed"]);
    assert_eq!(world.effects("a"), 1);
}

#[tokio::test]
async fn a_handler_that_is_stopped_writes_nothing() {
    let world = world();
    let hangs = rec("a", |world: World, call| async move {
        collect(&world, &call, "a")?;
        world.clock.sleep(3600 * SECOND).await;
        Ok(())
    });
    assert_eq!(world.deliver(vec![hangs]).await, ["timed_out"]);
    assert_eq!((world.requests(), world.effects("a")), (0, 0));
}

#[tokio::test]
async fn a_permanent_failure_is_recorded_and_excludes_the_effects() {
    let permanent = || rec("a", |_: World, _| async { Err(Failure::permanent("declined")) });
    let mut world = world();
    let outcomes = world.clock.drive(world.invoke(vec![permanent()])).await;
    assert!(matches!(outcomes[0], Outcome::Failed { permanent: true, .. }), "{outcomes:?}");
    assert_eq!(world.stored("a").await.unwrap().status, Status::PermanentlyFailed);
    assert_eq!(world.deliver(vec![collecting("a").receives(2)]).await, ["permanently_failed"]);
    // It runs before its record is read, and is answered as if it had been claimed.
    assert_eq!(world.deliver(vec![collecting("a")]).await, ["permanently_failed"]);
    assert_eq!(world.effects("a"), 0);

    world.policy.on_timeout = OnTimeout::FailPermanently;
    let hangs = rec("b", |world: World, _| async move {
        world.clock.sleep(60 * SECOND).await;
        Ok(())
    });
    assert_eq!(world.deliver(vec![hangs]).await, ["timed_out"]);
    assert_eq!(world.stored("b").await.unwrap().status, Status::PermanentlyFailed);
}

/// A copy of it was completed meanwhile.
#[tokio::test]
async fn a_permanent_failure_does_not_replace_a_completion() {
    let world = world();
    let late = rec("a", |world: World, _| async move {
        world.store.inner().insert(key("a"), completed(9_000_000));
        Err(Failure::permanent("declined"))
    });
    let outcomes = world.clock.drive(world.invoke(vec![late])).await;
    assert!(matches!(&outcomes[0], Outcome::Superseded { result: Some(_), .. }), "{outcomes:?}");
    assert_eq!(world.stored("a").await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn another_payload_under_the_key_is_a_mismatch_and_applies_nothing() {
    for receives in [1, 2] {
        let world = world();
        let mut theirs = completed(9_000_000);
        theirs.fingerprint = Some(Fingerprint::new("theirs"));
        world.store.inner().insert(key("a"), theirs);
        let ours = || collecting("a").fingerprint("ours").receives(receives);
        assert_eq!(world.deliver(vec![ours()]).await, ["mismatch"]);
        assert_eq!(world.effects("a"), 0);
    }
}

#[tokio::test]
async fn a_key_that_another_worker_has_claimed_is_busy() {
    let world = world();
    let mut theirs = completed(9_000_000);
    (theirs.status, theirs.result) = (Status::InProgress, None);
    theirs.lease_until = Some(world.clock.now().plus(60 * SECOND));
    world.store.inner().insert(key("a"), theirs.clone());
    for receives in [1, 2] {
        assert_eq!(world.deliver(vec![collecting("a").receives(receives)]).await, ["busy"]);
    }
    world.clock.advance(120 * SECOND);
    assert_eq!(world.deliver(vec![collecting("a").receives(3)]).await, ["executed"]);
    assert_eq!(world.effects("a"), 1);
}

/// The request without an answer may still be applied, and nothing keeps it from that.
#[tokio::test]
async fn a_refused_effect_after_a_lost_answer_is_not_said_to_have_failed() {
    let world = world();
    world.store.inject(Fault::refuse(StoreErrorKind::Unavailable).for_writes(commits()));
    let outcomes = world.clock.drive(world.invoke(vec![refused("a", 9)])).await;
    assert!(
        matches!(&outcomes[0], Outcome::Uncommitted { error } if error.may_have_applied()),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn a_commit_that_the_store_refuses_fails_at_once() {
    for kind in [StoreErrorKind::Denied, StoreErrorKind::Misconfigured, StoreErrorKind::Refused] {
        let world = world();
        // What is refused might be accepted without its result.
        let requests = if kind == StoreErrorKind::Refused { 2 } else { 1 };
        world.store.inject(Fault::refuse(kind).for_writes(commits()).times(requests));
        let before = world.clock.now();
        assert_eq!(world.deliver(vec![collecting("a")]).await, ["failed"]);
        assert_took(&world, before, Duration::ZERO);
        assert_eq!(world.requests(), requests);
        assert_eq!(world.deliver(vec![collecting("a").receives(2)]).await, ["executed"]);
    }
}

#[tokio::test]
async fn a_completion_without_effects_that_is_not_recorded_is_acknowledged() {
    let world = world();
    world.store.outage();
    assert_eq!(world.deliver(vec![ok("a")]).await, ["completion_lost"]);
}

/// Nothing could keep its result.
#[tokio::test]
async fn a_step_is_refused() {
    let world = world();
    let steps =
        rec("a", |_: World, call: Call| async move { call.step("s", |_| async { Ok(()) }).await });
    let outcomes = world.clock.drive(world.invoke(vec![steps])).await;
    let Outcome::Failed { failure, .. } = &outcomes[0] else { panic!("{outcomes:?}") };
    assert!(
        failure.message().contains("use `.mode(Mode::Transactional)`"),
        "{}",
        failure.message()
    );
}

/// Its commit replaced an expired record. It was applied, its answer was lost, and an operator has deleted the completion before
/// it was sent again: a new commit would apply the effects twice.
#[tokio::test]
async fn a_commit_in_doubt_whose_record_was_deleted_is_not_committed_anew() {
    let world = world();
    world.store.inner().insert(key("a"), completed(900_000));
    world.store.inject(Fault::lose_answer().for_writes(commits()));
    let deletes = async {
        world.clock.sleep(SECOND / 20).await;
        assert_eq!((world.commits().len(), world.effects("a")), (1, 1), "applied, not sent again");
        world.store.inner().sweep(Timestamp::from_secs(9_000_000));
    };
    let invocation = world.invoke(vec![collecting("a").receives(2)]);
    let (outcomes, ()) = world.clock.drive(futures_util::future::join(invocation, deletes)).await;
    assert!(
        matches!(&outcomes[0], Outcome::Uncommitted { error } if error.may_have_applied()),
        "{outcomes:?}"
    );
    assert_eq!(world.effects("a"), 1);
}

/// The delivery is not acknowledged when the record is deleted, so the next one would find a new key as well. DynamoDB recognises
/// the request.
#[tokio::test]
async fn deleting_the_record_of_a_commit_in_doubt_makes_its_key_new_once() {
    for mode in [Mode::Optimistic, Mode::Transactional] {
        let mut world = world();
        world.policy.mode = mode;
        world.store.inject(Fault::lose_answer().for_writes(commits()));
        let deletes = async {
            world.clock.sleep(SECOND / 20).await;
            assert_eq!((world.commits().len(), world.effects("a")), (1, 1), "applied");
            world.store.inner().sweep(Timestamp::from_secs(9_000_000));
        };
        let invocation = world.invoke(vec![collecting("a")]);
        world.clock.drive(futures_util::future::join(invocation, deletes)).await;
        world.deliver(vec![collecting("a").receives(2)]).await;
        assert_eq!(world.effects("a"), 2, "{mode:?}");
        assert_eq!(world.deliver(vec![collecting("a").receives(3)]).await, ["replayed"]);
    }
}

/// A clock that is a millisecond later each time that it is read.
struct Ticking(ManualClock);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        self.0.advance(Duration::from_millis(1));
        self.0.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(duration)
    }
}

/// The process was suspended, and its successor may be running by now. The store applies what is late as well, as it may.
#[tokio::test]
async fn a_permanent_failure_after_the_lease_is_not_recorded() {
    let mut world = World::without_latency();
    world.policy.mode = Mode::Optimistic;
    let engine = Engine::new(world.store.clone()).with_clock(Ticking(world.clock.clone()));
    let late = rec("a", |world: World, _| async move {
        world.clock.advance(40 * SECOND);
        Err(Failure::permanent("declined"))
    });
    let outcomes = world.clock.drive(world.invoke_by(&engine, vec![late])).await;
    assert!(matches!(outcomes[0], Outcome::Failed { permanent: false, .. }), "{outcomes:?}");
    assert_eq!(world.stored("a").await, None);
    assert_eq!(world.deliver(vec![collecting("a").receives(2)]).await, ["executed"]);
}
