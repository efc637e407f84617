//! What the store answers to a commit, and what follows from it.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    memory::MemoryEffects,
    outcome::{Outcome, ResultKept},
    policy::{Lease, OnConflict},
    record::Status,
    store::{Store as _, StoreErrorKind, Verdict},
};
use lambda_idempotency_testkit::faults::{Call as StoreCall, Fault, GuardKind};

use super::{SECOND, collect, collecting, commits, world};
use crate::support::{World, assert_took, ok, rec};

/// The answers to commits are lost, but not those to other writes.
#[tokio::test]
async fn a_commit_that_is_given_up_and_was_applied_is_acknowledged() {
    let world = world();
    world.store.inject(Fault::lose_answer().for_writes(commits()).always());
    assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"]);
    assert_eq!(world.effects("a"), 1);
    assert_eq!(world.stored("a").await.unwrap().status, Status::Completed);
}

/// It was not applied. Effects elsewhere may be on their way, so the key stays held as after a timeout.
#[tokio::test]
async fn a_record_that_was_returned_uncommitted_waits_for_its_lease() {
    let mut world = world();
    world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(commits()).always());
    let outcomes = world.clock.drive(world.invoke(vec![collecting("a")])).await;
    assert!(matches!(&outcomes[0], Outcome::Uncommitted { error } if !error.may_have_applied()));
    assert_eq!(world.effects("a"), 0);
    world.store.heal();
    let stored = world.stored("a").await.unwrap();
    let ends = stored.lease_until.unwrap().plus(world.policy.clock_skew);
    assert!(world.clock.now() < ends, "the lease outlasts its invocation");
    assert_eq!((stored.lost_attempts, stored.consecutive_losses), (1, 0));
    world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let told = rec("a", move |world: World, call| async move {
        assert_took(&world, ends, Duration::from_millis(1));
        assert_eq!(call.lost_attempts(), 1);
        Ok(collect(&world, &call, "a")?)
    });
    assert_eq!(world.deliver(vec![told]).await, ["executed"]);
    assert_eq!(world.effects("a"), 1);
}

#[tokio::test]
async fn nothing_starts_in_its_group_behind_an_uncommitted_record() {
    let world = world();
    world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(commits()).always());
    let batch = vec![collecting("a").group("g"), ok("b").group("g")];
    assert_eq!(world.deliver(batch).await, ["uncommitted", "returned"]);
    world.ledger.assert_never("b");
}

#[tokio::test]
async fn nothing_is_committed_where_the_record_is_gone() {
    let world = world();
    let swept = rec("a", |world: World, call| async move {
        collect(&world, &call, "a")?;
        world.store.inner().sweep(Timestamp::from_secs(9_000_000));
        Ok(())
    });
    assert_eq!(world.deliver(vec![swept]).await, ["fenced"]);
    assert!(world.stored("a").await.is_none());
    assert_eq!(world.effects("a"), 0);
    assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"]);
    assert_eq!(world.effects("a"), 1);
}

/// What is refused might be accepted without its result.
fn refusals(kind: StoreErrorKind) -> Fault {
    let times = if kind == StoreErrorKind::Refused { 2 } else { 1 };
    Fault::refuse(kind).for_writes(commits()).times(times)
}

/// Nothing was done, so it is not worth the rest of the invocation. The handler returned, and nobody objected to its
/// effects, so the failure is not permanent.
#[tokio::test]
async fn a_commit_that_the_store_refuses_fails_at_once_and_frees_its_key() {
    for kind in [StoreErrorKind::Denied, StoreErrorKind::Misconfigured, StoreErrorKind::Refused] {
        let mut world = world();
        world.policy.max_failed_attempts = Some(1);
        world.store.inject(refusals(kind));
        let before = world.clock.now();
        let outcomes = world.clock.drive(world.invoke(vec![collecting("a").passing()])).await;
        assert!(
            matches!(&outcomes[0], Outcome::Failed { permanent: false, .. }),
            "{kind:?}: {outcomes:?}"
        );
        assert_took(&world, before, Duration::ZERO);
        assert!(world.stored("a").await.unwrap().is_given_up());
        assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"], "{kind:?}");
        assert_eq!(world.effects("a"), 1);
    }
}

/// The second of the same requests may be refused because the first has done what it asks for.
#[tokio::test]
async fn a_refused_effect_of_a_commit_that_was_applied_after_all_is_not_a_failure() {
    for most in [None, Some(1)] {
        let mut world = world();
        world.policy.max_failed_attempts = most;
        // Its own effect ends its condition.
        let once = rec("a", |world: World, call| async move {
            collect(&world, &call, "a")?;
            let ledger = Arc::clone(&world.ledger);
            call.collect(|effects: &mut MemoryEffects| {
                effects.add_if(move || ledger.executed("effect: a") == 0, || ());
            })?;
            Ok(())
        });
        world.store.inject(Fault::lose_answer().for_writes(commits()).times(2));
        assert_eq!(world.deliver(vec![once]).await, ["executed"]);
        assert_eq!(world.effects("a"), 1);
        assert_eq!(world.stored("a").await.unwrap().status, Status::Completed);
    }
}

#[tokio::test]
async fn after_a_refusal_a_commit_in_doubt_can_be_applied_no_more() {
    let world = world();
    world.store.inject(Fault::refuse(StoreErrorKind::Unavailable).for_writes(commits()));
    world.store.inject(Fault::refuse(StoreErrorKind::Denied).for_writes(commits()).nth(2));
    let outcomes = world.clock.drive(world.invoke(vec![collecting("a")])).await;
    assert!(
        matches!(&outcomes[0], Outcome::Uncommitted { error } if !error.may_have_applied()),
        "{outcomes:?}"
    );
    assert!(world.stored("a").await.unwrap().is_given_up());
    let late = world.commits().remove(0);
    let verdicts = world.store.inner().write(&[late], world.clock.now()).await;
    assert!(matches!(&verdicts[0], Verdict::Found(Some(_))), "{verdicts:?}");
    assert_eq!(world.effects("a"), 0);
}

#[tokio::test]
async fn a_lease_is_not_renewed_while_its_commit_is_sent() {
    let mut world = world();
    world.policy.lease = Lease::Renewed { length: 3 * SECOND };
    world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(commits()).times(8));
    let slow = rec("a", |world: World, call| async move {
        world.clock.sleep(5 * SECOND / 2).await;
        collect(&world, &call, "a")?;
        Ok(())
    });
    assert_eq!(world.deliver(vec![slow]).await, ["executed"]);
    let kinds: Vec<_> = world
        .store
        .history()
        .iter()
        .filter_map(|call| match call {
            StoreCall::Write { writes, .. } => Some(GuardKind::from(&writes[0].guard)),
            _ => None,
        })
        .collect();
    let first = kinds.iter().position(|kind| *kind == GuardKind::OwnedBy).unwrap();
    assert!(kinds[..first].contains(&GuardKind::Unchanged), "it was renewed before: {kinds:?}");
    assert!(kinds[first..].iter().all(|kind| *kind == GuardKind::OwnedBy), "{kinds:?}");
}

/// Commits are throttled, while claims are granted. The process survived all of these handlers.
#[tokio::test]
async fn records_that_were_returned_uncommitted_run_together_when_commits_succeed_again() {
    let world = world();
    let slow = |label: &'static str| {
        rec(label, move |world: World, call| async move {
            world.clock.sleep(16 * SECOND).await;
            Ok(collect(&world, &call, label)?)
        })
    };
    let all = ["a", "b", "c", "d"];
    world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(commits()).always());
    for receives in 1..=3 {
        let batch = all.map(|label| slow(label).receives(receives)).into();
        assert_eq!(world.deliver(batch).await, ["uncommitted"; 4], "receive {receives}");
        world.clock.advance(10 * SECOND);
    }
    world.store.heal();
    let batch = all.map(|label| slow(label).receives(4)).into();
    assert_eq!(world.deliver(batch).await, ["executed"; 4]);
    assert_eq!(all.map(|label| world.effects(label)), [1; 4]);
}

/// The refusal says nothing of the first request, which stored the result.
#[tokio::test]
async fn a_result_of_a_commit_in_doubt_that_is_refused_when_it_is_sent_again_is_not_said_to_be_left_out()
 {
    let world = world();
    world.store.inject(Fault::lose_answer().for_writes(commits()));
    world.store.inject(Fault::refuse(StoreErrorKind::Refused).for_writes(commits()).nth(2));
    let outcomes = world.clock.drive(world.invoke(vec![collecting("a")])).await;
    assert!(
        matches!(&outcomes[0], Outcome::Executed { result: Some(_), kept: ResultKept::Whole, .. }),
        "{outcomes:?}"
    );
    assert!(world.stored("a").await.unwrap().result.is_some());
    assert_eq!(world.effects("a"), 1);
}
