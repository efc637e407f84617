//! Completion, release, and losing the lease.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::Clock,
    failure::Failure,
    outcome::{Outcome, ResultKept},
    record::Status,
    store::{Store, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_testkit::faults::{Fault, GuardKind};

use crate::support::{
    World, assert_took, completes, failing, key, labels, ok, rec, slow, throttled, treating,
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn handlers_that_finish_during_a_completion_share_the_next_call() {
    let world = World::new();
    let clock = world.clock.clone();
    let delay = Fault::delay(clock, SECOND / 2).guarded_by(GuardKind::OwnedBy).always();
    world.store.inject(delay);
    let pause = Duration::from_millis(100);
    let records = vec![ok("a"), slow("b", pause), slow("c", 2 * pause), slow("d", 3 * pause)];
    assert_eq!(world.deliver(records).await, ["executed"; 4]);
    assert_eq!(world.store.write_calls(), 3, "one claim, then a, then b to d");
}

#[tokio::test]
async fn a_throttled_completion_does_not_cost_other_completions() {
    let world = World::new();
    // `d` finishes with `a`, and shares its first call.
    let records = vec![ok("a"), slow("b", SECOND / 2), slow("c", 5 * SECOND), ok("d")];
    let hot = |write: &Write| {
        let done = write.record.as_ref().is_some_and(|r| r.status == Status::Completed);
        done && write.key == key("a")
    };
    let store = throttled(&world, hot);
    let outcomes = world.clock.drive(world.invoke_on(store, records)).await;
    assert_eq!(labels(&outcomes), ["completion_lost", "executed", "executed", "executed"]);
    for label in ["b", "c", "d"] {
        assert_eq!(world.stored(label).await.unwrap().status, Status::Completed);
    }
}

#[tokio::test]
async fn a_completion_that_cannot_be_recorded_is_acknowledged_and_reported() {
    let world = World::new();
    world
        .store
        .inject(Fault::refuse(StoreErrorKind::Unavailable).that_writes(Status::Completed).always());
    let outcomes = world.clock.drive(world.invoke(vec![ok("a"), failing("b")])).await;
    assert_eq!(labels(&outcomes), ["completion_lost", "failed"]);
    assert!(outcomes[0].is_acknowledged());
    assert!(matches!(&outcomes[0], Outcome::CompletionLost { result: Some(_), .. }));
}

#[tokio::test]
async fn a_release_that_fails_does_not_hide_the_failure() {
    let world = World::new();
    world.store.inject(Fault::refuse(StoreErrorKind::Denied).guarded_by(GuardKind::OwnedBy));
    let outcomes = world.clock.drive(world.invoke(vec![failing("a")])).await;
    assert!(matches!(&outcomes[0], Outcome::Failed { failed_attempts: 1, .. }));
}

/// Nor is one kept that cannot be stored now, where results are elsewhere.
#[tokio::test]
async fn a_result_too_large_to_keep_is_left_out_of_the_completion() {
    for (kind, expected) in [
        (StoreErrorKind::TooLarge, ResultKept::TooLarge),
        (StoreErrorKind::ResultUnavailable, ResultKept::Unavailable),
    ] {
        let world = World::new();
        let result = Fault::refuse(kind)
            .for_writes(|write| write.record.as_ref().is_some_and(|record| record.result.is_some()))
            .always();
        world.store.inject(result);
        let outcomes = world.clock.drive(world.invoke(vec![ok("a")])).await;
        let Outcome::Executed { result: Some(_), kept, .. } = &outcomes[0] else {
            panic!("{outcomes:?}")
        };
        assert_eq!(*kept, expected);
        assert_eq!(kept.to_string().contains("offload_above"), kind == StoreErrorKind::TooLarge);
        assert_eq!(world.deliver(vec![ok("a")]).await, ["replayed"]);
    }
}

/// Each write of the record would be refused first.
#[tokio::test]
async fn a_kept_record_for_which_there_was_no_room_is_not_sent_again() {
    let world = World::new();
    let carries =
        |write: &Write| write.record.as_ref().is_some_and(|record| record.payload.is_some());
    world.store.inject(Fault::refuse(StoreErrorKind::TooLarge).for_writes(carries).always());
    let outcomes = world.deliver(vec![failing("a").kept("{}"), ok("b").kept("{}")]).await;
    assert_eq!(outcomes, ["failed", "executed"]);
    let sent = world.writes().iter().filter(|write| carries(write)).count();
    assert_eq!(sent, 2, "with the claims");
}

/// A character that its server cannot hold, for instance. An error that passes may be answered in the same way, so it is tried
/// once more.
#[tokio::test]
async fn a_result_that_the_store_refuses_twice_is_left_out_of_the_completion() {
    for fails in [false, true] {
        let world = World::new();
        let result = Fault::refuse(StoreErrorKind::Refused)
            .for_writes(|write| write.record.as_ref().is_some_and(|record| record.result.is_some()))
            .always();
        world.store.inject(result);
        let failing = || rec("a", |_, _| async { Err(Failure::permanent("no luck")) });
        let record = || if fails { failing() } else { ok("a") };
        let before = world.clock.now();
        let outcomes = world.clock.drive(world.invoke(vec![record()])).await;
        match &outcomes[0] {
            Outcome::Executed { result: Some(_), kept: ResultKept::Refused, .. } => assert!(!fails),
            Outcome::Failed { permanent: true, .. } => assert!(fails),
            other => panic!("{other:?}"),
        }
        assert_took(&world, before, 2 * SECOND);
        let later = if fails { "permanently_failed" } else { "replayed" };
        assert_eq!(world.deliver(vec![record()]).await, [later]);
    }
}

#[tokio::test]
async fn a_settlement_is_tried_again_on_time_while_another_handler_runs() {
    let world = World::new();
    let refuse = Fault::refuse(StoreErrorKind::Throttled).that_writes(Status::Completed);
    world.store.inject(refuse);
    let other = rec("a", |world: World, _| async move {
        world.clock.sleep(Duration::from_millis(700)).await;
        let completed = world.stored("b").await.unwrap().status == Status::Completed;
        assert!(completed, "tried at 0.5 s and at 0.6 s");
        Ok(())
    });
    assert_eq!(world.deliver(vec![other, slow("b", SECOND / 2)]).await, ["executed"; 2]);
}

#[tokio::test]
async fn a_completion_whose_record_is_gone_each_time_is_given_up_after_three_more() {
    let world = World::new();
    let forgetful = treating(&world, |world, writes, until| {
        Box::pin(async move {
            let verdicts = world.store.write(writes, until).await;
            let gone = |(write, verdict)| match completes(write) {
                true => Verdict::Found(None),
                false => verdict,
            };
            writes.iter().zip(verdicts).map(gone).collect()
        })
    });
    let invocation = world.invoke_on(forgetful, vec![ok("a")]);
    assert_eq!(labels(&world.clock.drive(invocation).await), ["completion_lost"]);
    assert_eq!(world.store.write_calls(), 1 + 1 + 3, "a claim, a completion and three more");
}
