//! Effects that are committed with their completion.

mod answers;
mod optimistic;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::Clock,
    effects::{CollectError, RefusalReason, RefusedEffect},
    failure::Failure,
    memory::MemoryEffects,
    outcome::Outcome,
    policy::Mode,
    record::Status,
    store::{Store as _, Verdict, Write},
};
use lambda_idempotency_engine::call::Call;
use lambda_idempotency_testkit::faults::Fault;

use crate::support::{Rec, World, labels, ok, rec, treating};

const SECOND: Duration = Duration::from_secs(1);

fn world() -> World {
    let mut world = World::new();
    world.policy.mode = Mode::Transactional;
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
        self.writes().into_iter().filter(|write| write.effects.is_some()).collect()
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
    let declines = collecting("d").declines();
    let outcomes = world.deliver(vec![fails, panics, hangs, declines]).await;
    assert_eq!(outcomes, ["failed", "failed", "timed_out", "declined"]);
    assert!(world.commits().is_empty());
    assert_eq!(["a", "b", "c", "d"].map(|label| world.effects(label)), [0; 4]);
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
    plain.policy.mode = Mode::Transactional;
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
    world.policy.max_failed_attempts = Some(1);
    let outcomes = world.clock.drive(world.invoke(vec![refused("a", 9)])).await;
    assert!(matches!(outcomes[0], Outcome::Failed { permanent: true, .. }), "{outcomes:?}");
    assert_eq!(world.stored("a").await.unwrap().status, Status::PermanentlyFailed);
    assert_eq!(world.deliver(vec![refused("a", 0)]).await, ["permanently_failed"]);
    assert_eq!(world.effects("a"), 0);
}

#[tokio::test]
async fn a_call_with_effects_shortens_how_long_its_key_answers() {
    for mode in [Mode::Transactional, Mode::Optimistic] {
        let mut world = world();
        world.policy.mode = mode;
        let short = rec("a", |world: World, call: Call| async move {
            call.retain_for(1200 * SECOND);
            Ok(collect(&world, &call, "a")?)
        });
        assert_eq!(world.deliver(vec![short]).await, ["executed"]);
        let stored = world.stored("a").await.unwrap();
        let answers = stored.expires_at.since(stored.settled_at().unwrap());
        assert!((1200 * SECOND..=1201 * SECOND).contains(&answers), "{mode:?}: {answers:?}");
    }
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_sent_again_and_applied_once() {
    for mode in [Mode::Transactional, Mode::Optimistic] {
        let mut world = world();
        world.policy.mode = mode;
        world.store.inject(Fault::lose_answer().for_writes(commits()).times(3));
        assert_eq!(world.deliver(vec![collecting("a")]).await, ["executed"], "{mode:?}");
        let sent = world.commits();
        assert_eq!((world.effects("a"), sent.len()), (1, 4), "{mode:?}");
        assert!(sent.windows(2).all(|two| two[0] == two[1]), "the same write each time: {sent:?}");
    }
}

/// Delivers `a` to a store that stops effects, which take so long, at the deadline of its call.
async fn deliver_slow(world: &World, takes: Duration) -> Outcome {
    let store = treating(world, move |world, writes, until| {
        Box::pin(async move {
            world.clock.sleep(Duration::from_millis(5)).await;
            if writes.iter().all(|write| write.effects.is_none()) {
                return world.store.write(writes, until).await;
            }
            let left = until.since(world.clock.now());
            world.clock.sleep(takes.min(left)).await;
            if takes <= left {
                return world.store.write(writes, until).await;
            }
            let refused = RefusedEffect::new(RefusalReason::TooSlow).at(0);
            writes.iter().map(|_| Verdict::EffectRefused(refused.clone())).collect()
        })
    });
    world.clock.drive(world.invoke_on(store, vec![collecting("a")])).await.remove(0)
}

#[tokio::test]
async fn a_slow_effect_gets_a_longer_call_and_is_committed() {
    let mut world = world();
    world.timeout = Some(60 * SECOND);
    let outcome = deliver_slow(&world, 15 * SECOND).await;
    assert!(matches!(outcome, Outcome::Executed { .. }), "{outcome:?}");
    assert_eq!(world.effects("a"), 1);
}

#[tokio::test]
async fn an_effect_for_which_no_call_has_time_is_a_failed_attempt_and_the_last_one_is_permanent() {
    let mut world = world();
    world.policy.max_failed_attempts = Some(2);
    for (attempt, last) in [(1, false), (2, true)] {
        let outcome = deliver_slow(&world, 60 * SECOND).await;
        let Outcome::Failed { failure, failed_attempts, permanent } = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!((failed_attempts, permanent), (attempt, last));
        assert!(failure.message().contains("effect 1 takes longer"), "{}", failure.message());
    }
    let stored = world.stored("a").await.unwrap();
    assert_eq!((stored.status, stored.lost_attempts), (Status::PermanentlyFailed, 0));
    assert_eq!(world.effects("a"), 0);
}
