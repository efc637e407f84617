//! Effects that are committed with their completion.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    effects::{CollectError, RefusalReason, RefusedEffect},
    failure::Failure,
    memory::MemoryEffects,
    outcome::{Outcome, ResultKept},
    policy::{Lease, OnFailure},
    record::{IdempotencyRecord, Owner, Status},
    store::{StoreErrorKind, Write},
};
use lambda_idempotency_engine::call::Call;
use lambda_idempotency_testkit::faults::{Call as StoreCall, Fault, GuardKind};

use crate::support::{Rec, World, declining, key, labels, ok, rec};

const SECOND: Duration = Duration::from_secs(1);

fn world() -> World {
    let mut world = World::new();
    world.policy.transactional = true;
    world
}

/// Collects an effect: a note in the ledger.
fn collect(world: &World, call: &Call, note: &str) -> Result<(), CollectError> {
    let (ledger, note) = (Arc::clone(&world.ledger), format!("effect: {note}"));
    call.collect(|effects: &mut MemoryEffects| effects.add(move || ledger.record(&*note, "")))
}

/// A record whose handler collects one effect, under its label.
fn collecting(label: &'static str) -> Rec {
    rec(label, move |world, call| async move { Ok(collect(&world, &call, label)?) })
}

/// The same, with a second effect, which the store refuses the first `times`.
fn refused(label: &'static str, times: u32) -> Rec {
    rec(label, move |world, call| async move {
        collect(&world, &call, label)?;
        let holds = call.failed_attempts() >= times;
        call.collect(|effects: &mut MemoryEffects| effects.add_if(move || holds, || ()))?;
        Ok(())
    })
}

fn commits() -> impl Fn(&Write) -> bool + Send + Sync + 'static {
    |write| write.effects.is_some()
}

impl World {
    fn effects(&self, label: &str) -> usize {
        self.ledger.executed(&format!("effect: {label}"))
    }

    /// The commits that were sent.
    fn commits(&self) -> Vec<Write> {
        let writes = self.store.history().into_iter().filter_map(|call| match call {
            StoreCall::Write { writes, .. } => Some(writes),
            _ => None,
        });
        writes.flatten().filter(|write| write.effects.is_some()).collect()
    }
}

#[tokio::test]
async fn effects_are_committed_with_the_completion_and_once() {
    let world = world();
    assert_eq!(world.deliver(vec![collecting("a"), ok("b")]).await, ["executed"; 2]);
    assert_eq!(world.effects("a"), 1);
    assert_eq!(world.stored("a").await.unwrap().status, Status::Completed);
    assert_eq!(world.commits().len(), 1, "without effects there is nothing to commit");
    assert_eq!(world.deliver(vec![collecting("a")]).await, ["replayed"]);
    assert_eq!(world.effects("a"), 1);
}

#[tokio::test]
async fn nothing_happens_before_the_handler_has_returned() {
    let world = world();
    let early = rec("a", |world: World, call| async move {
        collect(&world, &call, "a")?;
        world.clock.sleep(SECOND).await;
        assert_eq!(world.effects("a"), 0);
        Ok(())
    });
    assert_eq!(world.deliver(vec![early]).await, ["executed"]);
    assert_eq!(world.effects("a"), 1);
}

#[tokio::test]
async fn effects_of_a_handler_that_did_not_return_are_dropped() {
    let world = world();
    let fails = rec("a", |world: World, call| async move {
        collect(&world, &call, "a")?;
        Err(Failure::transient("no luck"))
    });
    let panics = rec("b", |world: World, call| async move {
        collect(&world, &call, "b")?;
        panic!("no luck")
    });
    let hangs = rec("c", |world: World, call| async move {
        collect(&world, &call, "c")?;
        world.clock.sleep(60 * SECOND).await;
        Ok(())
    });
    let outcomes = world.deliver(vec![fails, panics, hangs]).await;
    assert_eq!(outcomes, ["failed", "failed", "timed_out"]);
    assert!(world.commits().is_empty());
    assert_eq!(["a", "b", "c"].map(|label| world.effects(label)), [0; 3]);
}

/// What it had collected by then may be a half of what belongs together.
#[tokio::test]
async fn a_handler_that_catches_a_panic_of_its_own_collecting_fails() {
    let world = world();
    let catches = rec("a", |world: World, call: Call| async move {
        let half = || {
            call.collect(|effects: &mut MemoryEffects| {
                let ledger = Arc::clone(&world.ledger);
                effects.add(move || ledger.record("effect: a", ""));
                panic!("half done")
            })
        };
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(half));
        assert!(caught.map(|collected: Result<(), CollectError>| collected).is_err());
        Ok(())
    });
    assert_eq!(world.deliver(vec![catches]).await, ["failed"]);
    assert_eq!((world.commits().len(), world.effects("a")), (0, 0));
    assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"]);
    assert_eq!(world.effects("a"), 1);
}

#[tokio::test]
async fn a_handler_that_declines_has_no_effects() {
    let world = world();
    let declines = collecting("a").declines();
    assert_eq!(world.deliver(vec![declines, declining("b")]).await, ["declined"; 2]);
    assert_eq!((world.commits().len(), world.effects("a")), (0, 0));
}

#[tokio::test]
async fn what_is_collected_after_the_handler_is_refused() {
    let (world, kept) = (world(), Arc::new(Mutex::new(None)));
    let leaks = Arc::clone(&kept);
    let leaky = rec("a", |world: World, call: Call| async move {
        collect(&world, &call, "a")?;
        *leaks.lock().unwrap() = Some(call);
        Ok(())
    });
    assert_eq!(world.deliver(vec![leaky]).await, ["executed"]);
    let late = kept.lock().unwrap().take().unwrap();
    assert_eq!(collect(&world, &late, "b"), Err(CollectError::HandlerEnded));
    assert_eq!((world.effects("a"), world.effects("b")), (1, 0));
}

#[tokio::test]
async fn without_a_claim_or_where_nothing_is_committed_nothing_is_collected() {
    let mut plain = World::new();
    assert_eq!(plain.deliver(vec![collecting("a")]).await, ["failed"]);
    plain.policy.transactional = true;
    assert_eq!(plain.deliver(vec![collecting("b").unprotected()]).await, ["failed"]);
    assert_eq!(plain.deliver(vec![ok("c").unprotected()]).await, ["unprotected"]);
    assert_eq!((plain.effects("a"), plain.effects("b")), (0, 0));
}

#[tokio::test]
async fn a_refused_effect_is_the_failure_of_the_handler() {
    let world = world();
    let records = vec![refused("a", 1), collecting("b")];
    let outcomes = world.clock.drive(world.invoke(records)).await;
    assert_eq!(labels(&outcomes), ["failed", "executed"]);
    let Outcome::Failed { failure, failed_attempts: 1, permanent: false } = &outcomes[0] else {
        panic!("{outcomes:?}")
    };
    let expected = RefusedEffect::new(RefusalReason::ConditionFailed).at(1);
    assert_eq!(failure.error().downcast_ref(), Some(&expected));
    let released = world.stored("a").await.unwrap();
    assert!(released.is_given_up() && released.failed_attempts == 1);
    let error_type = released.error_type.unwrap();
    assert_eq!(&*error_type, "an effect whose condition did not hold");
    assert_eq!((world.effects("a"), world.effects("b")), (0, 1));
    assert_eq!(world.deliver(vec![refused("a", 1)]).await, ["executed"]);
    assert_eq!(world.effects("a"), 1);
}

#[tokio::test]
async fn a_refused_effect_fails_permanently_where_failures_do() {
    let mut world = world();
    world.policy.on_failure = OnFailure::FailPermanently;
    let outcomes = world.clock.drive(world.invoke(vec![refused("a", 9)])).await;
    assert!(matches!(outcomes[0], Outcome::Failed { permanent: true, .. }), "{outcomes:?}");
    assert_eq!(world.stored("a").await.unwrap().status, Status::PermanentlyFailed);
    assert_eq!(world.deliver(vec![refused("a", 0)]).await, ["permanently_failed"]);
    let diverted = vec![refused("b", 9).aside()];
    assert_eq!(world.deliver(diverted).await, ["diverted"], "its sink commits nothing");
    assert_eq!((world.effects("a"), world.effects("b")), (0, 0));
}

#[tokio::test]
async fn nothing_behind_a_refused_effect_starts_in_its_group() {
    let world = world();
    let group = |record: Rec| record.group("g");
    let records = vec![group(collecting("a")), group(refused("b", 1)), group(collecting("c"))];
    assert_eq!(world.deliver(records).await, ["executed", "failed", "returned"]);
    let records = vec![group(refused("b", 1)), group(collecting("c"))];
    assert_eq!(world.deliver(records).await, ["executed"; 2]);
    assert_eq!(["a", "b", "c"].map(|label| world.effects(label)), [1; 3]);
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_sent_again_and_applied_once() {
    for lost in 1..4 {
        let world = world();
        world.store.inject(Fault::lose_answer().for_writes(commits()).times(lost));
        assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"]);
        assert_eq!((world.effects("a"), world.commits().len()), (1, lost + 1));
    }
}

#[tokio::test]
async fn a_commit_is_the_same_write_each_time() {
    let world = world();
    world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(commits()).times(3));
    assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"]);
    let sent = world.commits();
    assert_eq!(sent.len(), 4);
    assert!(sent.windows(2).all(|two| two[0] == two[1]), "{sent:?}");
}

/// It was applied: the next delivery finds that out.
#[tokio::test]
async fn a_commit_without_an_answer_is_returned_and_its_next_delivery_replayed() {
    let world = world();
    world.store.inject(Fault::lose_answer().for_writes(commits()).always());
    let outcomes = world.clock.drive(world.invoke(vec![collecting("a")])).await;
    assert_eq!(labels(&outcomes), ["uncommitted"]);
    assert!(!outcomes[0].is_acknowledged());
    assert!(matches!(&outcomes[0], Outcome::Uncommitted { error } if error.may_have_applied()));
    world.store.heal();
    assert_eq!(world.deliver(vec![collecting("a")]).await, ["replayed"]);
    assert_eq!(world.effects("a"), 1);
}

/// It was not applied: the next delivery runs again, when the lease has ended.
#[tokio::test]
async fn a_commit_that_was_not_applied_is_returned_and_its_next_delivery_runs() {
    let world = world();
    world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(commits()).always());
    let outcomes = world.clock.drive(world.invoke(vec![collecting("a")])).await;
    assert_eq!(labels(&outcomes), ["uncommitted"]);
    assert!(matches!(&outcomes[0], Outcome::Uncommitted { error } if !error.may_have_applied()));
    assert_eq!(world.effects("a"), 0);
    world.store.heal();
    world.clock.advance(10 * SECOND);
    assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"]);
    assert_eq!(world.effects("a"), 1);
}

/// The key stays held, and nothing says that nobody works on it.
#[tokio::test]
async fn a_record_that_was_returned_uncommitted_waits_for_its_lease() {
    let world = world();
    world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(commits()).always());
    assert_eq!(world.deliver(vec![collecting("a")]).await, ["uncommitted"]);
    world.store.heal();
    let outcomes = world.deliver(vec![collecting("a")]).await;
    assert!(["busy", "executed"].contains(&outcomes[0]), "{outcomes:?}");
}

#[tokio::test]
async fn a_commit_is_never_replaced_by_a_plain_completion() {
    let world = world();
    world.store.inject(Fault::lose_answer().for_writes(commits()).times(2));
    world.deliver(vec![collecting("a")]).await;
    let plain = world.store.history().into_iter().any(|call| match call {
        StoreCall::Write { writes, .. } => writes.iter().any(|write| {
            write.effects.is_none()
                && write.record.as_ref().is_some_and(|record| record.status == Status::Completed)
        }),
        _ => false,
    });
    assert!(!plain);
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

#[tokio::test]
async fn nothing_is_committed_once_another_worker_has_the_key() {
    for status in [Status::InProgress, Status::Completed] {
        let world = world();
        let stalls = rec("a", move |world: World, call| async move {
            collect(&world, &call, "a")?;
            let mut theirs = IdempotencyRecord::new(status, Timestamp::from_secs(9_000_000));
            theirs.owner = Some(Owner::from_bits(5));
            theirs.lease_until = Some(world.clock.now().plus(60 * SECOND));
            world.store.inner().insert(key("a"), theirs);
            Ok(())
        });
        let expected = if status == Status::Completed { "superseded" } else { "fenced" };
        assert_eq!(world.deliver(vec![stalls]).await, [expected]);
        assert_eq!((world.stored("a").await.unwrap().status, world.effects("a")), (status, 0));
    }
}

/// Nothing was done, so it is not worth the rest of the invocation.
#[tokio::test]
async fn a_commit_that_the_store_refuses_fails_at_once_and_frees_its_key() {
    for kind in [StoreErrorKind::Denied, StoreErrorKind::Misconfigured, StoreErrorKind::Refused] {
        let world = world();
        world.store.inject(Fault::refuse(kind).for_writes(commits()));
        let before = world.clock.now();
        assert_eq!(world.deliver(vec![collecting("a")]).await, ["failed"], "{kind:?}");
        assert_eq!(world.clock.now(), before);
        assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"], "{kind:?}");
        assert_eq!(world.effects("a"), 1);
    }
}

/// The handler returned, and nobody objected to its effects.
#[tokio::test]
async fn a_commit_that_the_store_refuses_is_no_permanent_failure() {
    for most in [None, Some(1)] {
        for kind in [StoreErrorKind::Denied, StoreErrorKind::Misconfigured, StoreErrorKind::Refused]
        {
            let mut world = world();
            match most {
                None => world.policy.on_failure = OnFailure::FailPermanently,
                Some(_) => world.policy.max_failed_attempts = most,
            }
            world.store.inject(Fault::refuse(kind).for_writes(commits()));
            let outcomes = world.clock.drive(world.invoke(vec![collecting("a").aside()])).await;
            assert!(
                matches!(&outcomes[0], Outcome::Failed { permanent: false, .. }),
                "{kind:?}: {outcomes:?}"
            );
            assert!(world.stored("a").await.unwrap().is_given_up());
            assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"], "{kind:?}");
            assert_eq!(world.effects("a"), 1);
        }
    }
}

/// The second of the same requests may be refused because the first has done what it asks for.
#[tokio::test]
async fn a_refused_effect_of_a_commit_that_was_applied_after_all_is_no_failure() {
    for fails in [OnFailure::Return, OnFailure::FailPermanently] {
        let mut world = world();
        world.policy.on_failure = fails;
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
async fn a_refusal_after_a_lost_answer_keeps_the_key_held() {
    let world = world();
    world.store.inject(Fault::refuse(StoreErrorKind::Unavailable).for_writes(commits()));
    world.store.inject(Fault::refuse(StoreErrorKind::Denied).for_writes(commits()).nth(2));
    let outcomes = world.clock.drive(world.invoke(vec![collecting("a")])).await;
    assert!(
        matches!(&outcomes[0], Outcome::Uncommitted { error } if error.may_have_applied()),
        "{outcomes:?}"
    );
    assert!(world.stored("a").await.unwrap().owner.is_some(), "the first may still be applied");
}

#[tokio::test]
async fn a_commit_that_the_network_repeats_is_applied_once() {
    for later in 0..3 {
        let world = world();
        world.store.inject(Fault::duplicate(later).for_writes(commits()));
        let records = vec![collecting("a"), refused("b", 1)];
        assert_eq!(world.deliver(records).await, ["executed", "failed"]);
        assert_eq!(world.deliver(vec![refused("b", 1)]).await, ["executed"]);
        assert_eq!((world.effects("a"), world.effects("b")), (1, 1), "{later}");
    }
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

#[tokio::test]
async fn a_result_too_large_to_keep_does_not_cost_the_effects() {
    let world = world();
    let result = Fault::refuse(StoreErrorKind::TooLarge)
        .for_writes(|write| write.record.as_ref().is_some_and(|record| record.result.is_some()));
    world.store.inject(result.always());
    let outcomes = world.clock.drive(world.invoke(vec![collecting("a")])).await;
    assert!(
        matches!(&outcomes[0], Outcome::Executed { kept: ResultKept::TooLarge, .. }),
        "{outcomes:?}"
    );
    assert_eq!(world.effects("a"), 1);
}

#[tokio::test]
async fn each_record_of_a_batch_has_a_commit_of_its_own() {
    let world = world();
    let records = vec![collecting("a"), refused("b", 1), collecting("c"), collecting("a"), ok("d")];
    let outcomes = world.deliver(records).await;
    assert_eq!(outcomes, ["executed", "failed", "executed", "coalesced", "executed"]);
    assert_eq!(["a", "b", "c"].map(|label| world.effects(label)), [1, 0, 1]);
}

#[tokio::test]
async fn copies_of_an_unknown_commit_are_returned_with_it() {
    let world = world();
    world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(commits()).always());
    let outcomes = world.deliver(vec![collecting("a"), collecting("a")]).await;
    assert_eq!(outcomes, ["uncommitted"; 2]);
}

#[tokio::test]
async fn a_follower_in_the_same_process_is_answered_from_the_commit() {
    let world = world();
    let engine = world.engine();
    let slow = rec("a", |world: World, call| async move {
        world.clock.sleep(SECOND).await;
        collect(&world, &call, "a")?;
        Ok(())
    });
    let both = futures_util::future::join(
        world.invoke_by(&engine, vec![slow]),
        world.invoke_by(&engine, vec![collecting("a")]),
    );
    let (leader, follower) = world.clock.drive(both).await;
    assert_eq!((labels(&leader), labels(&follower)), (vec!["executed"], vec!["replayed"]));
    assert_eq!(world.effects("a"), 1);
}
