//! Steps: parts of a handler that run once per key over all attempts.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::Clock,
    failure::Failure,
    outcome::Outcome,
    policy::{Lease, OnOutage},
    store::{Guard, StoreErrorKind, Write},
};
use lambda_idempotency_engine::{call::Call, steps::StepError};
use lambda_idempotency_testkit::faults::Fault;

use crate::support::{Rec, World, assert_took, labels, ok, rec};

const SECOND: Duration = Duration::from_secs(1);

/// Runs a step that notes its effect in the ledger, and returns the step's name.
pub(crate) async fn step(world: &World, call: &Call, name: &str) -> Result<String, Failure> {
    let (ledger, effect) = (Arc::clone(&world.ledger), format!("step: {name}"));
    call.step(name, |key| async move {
        ledger.record(&*effect, key);
        Ok(effect)
    })
    .await
}

/// A record with the steps `one` and `two`, which fails after them the first `fails` times.
pub(crate) fn stepping(label: &'static str, fails: u32) -> Rec {
    rec(label, move |world, call| async move {
        assert_eq!(step(&world, &call, "one").await?, "step: one");
        assert_eq!(step(&world, &call, "two").await?, "step: two");
        if call.failed_attempts() < fails {
            return Err(Failure::transient("no luck"));
        }
        Ok(())
    })
}

/// The writes that carry steps with a lease: of steps, and of renewals after them.
pub(crate) fn with_steps(write: &Write) -> bool {
    let record = write.record.as_ref();
    record.is_some_and(|record| record.owner.is_some() && record.steps.is_some())
}

impl World {
    pub(crate) fn steps(&self, name: &str) -> usize {
        self.ledger.executed(&format!("step: {name}"))
    }
}

pub(crate) fn step_error(outcome: &Outcome) -> Option<&StepError> {
    match outcome {
        Outcome::Failed { failure, .. } => failure.error().downcast_ref(),
        _ => None,
    }
}

#[tokio::test]
async fn a_step_runs_once_over_all_attempts_and_answers_the_later_ones() {
    let world = World::new();
    for expected in ["failed", "failed", "executed", "replayed"] {
        assert_eq!(world.deliver(vec![stepping("a", 2)]).await, [expected]);
        assert_eq!((world.steps("one"), world.steps("two")), (1, 1));
    }
}

#[tokio::test]
async fn each_step_is_one_write_and_the_completion_drops_them() {
    let world = World::new();
    assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["failed"]);
    let released = world.stored("a").await.unwrap();
    let steps = "{\"one\":\"step: one\",\"two\":\"step: two\"}";
    assert_eq!((released.is_given_up(), released.steps.as_deref()), (true, Some(steps)));
    assert_eq!(world.writes().len(), 4, "the claim, two steps, the release");
    assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["executed"]);
    assert_eq!(world.writes().len(), 7, "a claim that meets the record, and a completion");
    assert_eq!(world.stored("a").await.unwrap().steps, None);
}

#[tokio::test]
async fn a_step_has_the_same_key_in_each_attempt() {
    let world = World::new();
    let keys = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..2 {
        let seen = Arc::clone(&keys);
        let fails = rec("a", move |_, call: Call| async move {
            let subkey = call.subkey("charge");
            call.step::<(), _, _>("charge", |key| async move {
                seen.lock().unwrap().push((key, subkey));
                Err(Failure::transient("no answer"))
            })
            .await
        });
        assert_eq!(world.deliver(vec![fails]).await, ["failed"]);
    }
    let keys = keys.lock().unwrap();
    assert!(keys.len() == 2 && keys.iter().all(|(key, subkey)| key == subkey));
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn a_step_that_failed_runs_again() {
    let world = World::new();
    let fails = |times: u32| {
        rec("a", move |world: World, call: Call| async move {
            let failed = call.failed_attempts() < times;
            let within: Result<(), _> = call
                .step("one", |_| async move {
                    world.ledger.record("step: one", "");
                    if failed { Err(Failure::transient("no luck")) } else { Ok(()) }
                })
                .await;
            within
        })
    };
    for expected in ["failed", "executed"] {
        assert_eq!(world.deliver(vec![fails(1)]).await, [expected]);
    }
    assert_eq!(world.steps("one"), 2);
}

#[tokio::test]
async fn two_steps_of_one_name_are_an_error_at_the_second() {
    let world = World::new();
    let twice = || {
        rec("a", |world: World, call: Call| async move {
            step(&world, &call, "one").await?;
            step(&world, &call, "one").await.map(|_| ())
        })
    };
    for _ in 0..2 {
        let outcomes = world.clock.drive(world.invoke(vec![twice()])).await;
        assert!(
            matches!(step_error(&outcomes[0]).unwrap(), StepError::Twice { name } if &**name == "one")
        );
        assert_eq!(world.steps("one"), 1);
    }
}

#[tokio::test]
async fn steps_at_the_same_time_share_a_write() {
    let world = World::new();
    let both = rec("a", |world: World, call: Call| async move {
        let (one, two) = tokio::join!(step(&world, &call, "one"), step(&world, &call, "two"));
        one?;
        two?;
        Ok(())
    });
    assert_eq!(world.deliver(vec![both]).await, ["executed"]);
    let stored = world.writes().into_iter().filter(with_steps).collect::<Vec<_>>();
    assert_eq!(stored.len(), 1, "{stored:?}");
}

#[tokio::test]
async fn a_step_that_ends_while_another_is_written_is_written_after_it() {
    for lease in [Lease::Invocation, Lease::Renewed { length: 9 * SECOND }] {
        let mut world = World::yielding();
        world.policy.lease = lease;
        let slow_answer = Fault::delay_answer(world.clock.clone(), SECOND / 2);
        world.store.inject(slow_answer.for_writes(with_steps).always());
        let both = rec("a", |world: World, call: Call| async move {
            let later = async {
                world.clock.sleep(SECOND / 4).await;
                step(&world, &call, "two").await
            };
            let (one, two) = tokio::join!(step(&world, &call, "one"), later);
            one?;
            two?;
            Err(Failure::transient("no luck"))
        });
        assert_eq!(world.deliver(vec![both]).await, ["failed"]);
        assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["executed"]);
        assert_eq!((world.steps("one"), world.steps("two")), (1, 1));
    }
}

#[tokio::test]
async fn each_write_with_steps_has_a_later_expiry() {
    for lease in [Lease::Invocation, Lease::Renewed { length: 9 * SECOND }] {
        let mut world = World::new();
        world.policy.lease = lease;
        assert_eq!(world.deliver(vec![stepping("a", 0)]).await, ["executed"]);
        let mut ends = Vec::new();
        for write in world.writes().into_iter().filter(with_steps) {
            let Guard::Unchanged(seen) = &write.guard else { panic!("{write:?}") };
            let record = write.record.unwrap();
            ends.push((seen.expires_at, record.expires_at));
        }
        assert_eq!(ends.len(), 2);
        assert!(ends.iter().all(|(before, after)| before < after), "{ends:?}");
        assert_eq!(ends[0].1, ends[1].0);
    }
}

#[tokio::test]
async fn without_a_claim_a_step_runs_in_each_attempt() {
    let mut world = World::new();
    for _ in 0..2 {
        let outcomes = world.deliver(vec![stepping("a", 0).unprotected()]).await;
        assert_eq!(outcomes, ["unprotected"]);
    }
    assert_eq!(world.steps("one"), 2);
    world.policy.on_outage = OnOutage::RunUnprotected;
    world.store.inject(Fault::refuse(StoreErrorKind::Unavailable).always());
    assert_eq!(world.deliver(vec![stepping("b", 0)]).await, ["unprotected"]);
    assert_eq!(world.steps("one"), 3);
}

#[tokio::test]
async fn a_step_in_a_task_of_its_own_is_kept() {
    let world = World::new();
    let spawned = rec("a", |world: World, call: Call| async move {
        let (one, inner) = (call.clone(), world.clone());
        #[expect(clippy::disallowed_methods, reason = "users may spawn, and then wait for it")]
        let task = tokio::spawn(async move { step(&inner, &one, "one").await.map(|_| ()) });
        task.await.unwrap()?;
        Err(Failure::transient("no luck"))
    });
    assert_eq!(world.deliver(vec![spawned]).await, ["failed"]);
    assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["executed"]);
    assert_eq!(world.steps("one"), 1);
}

#[tokio::test]
async fn records_of_a_batch_have_steps_of_their_own() {
    let world = World::new();
    let records = || vec![stepping("a", 1), stepping("b", 0), stepping("a", 1), ok("c")];
    let outcomes = world.clock.drive(world.invoke(records())).await;
    assert_eq!(labels(&outcomes), ["failed", "executed", "failed", "executed"]);
    assert_eq!((world.steps("one"), world.steps("two")), (2, 2));
    let outcomes = world.deliver(records()).await;
    assert_eq!(outcomes, ["executed", "replayed", "coalesced", "replayed"]);
    assert_eq!((world.steps("one"), world.steps("two")), (2, 2));
}

/// The renewal of its lease is due after seconds.
#[tokio::test]
async fn a_step_does_not_wait_until_its_lease_is_due_for_renewal() {
    let mut world = World::new();
    world.policy.lease = Lease::Renewed { length: 9 * SECOND };
    let begun = world.clock.now();
    assert_eq!(world.deliver(vec![stepping("a", 0)]).await, ["executed"]);
    assert_took(&world, begun, Duration::ZERO);
}
