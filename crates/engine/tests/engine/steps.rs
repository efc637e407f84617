//! Steps: parts of a handler that run once per key over all attempts.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    effects::CollectError,
    failure::Failure,
    memory::MemoryEffects,
    outbox::{Message, PublishError},
    outcome::Outcome,
    policy::{Lease, OnOutage, OnTimeout},
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, StoreErrorKind, Write},
};
use lambda_idempotency_engine::{
    call::Call,
    steps::{MAX_STEP_BYTES, StepError},
};
use lambda_idempotency_testkit::faults::{Call as StoreCall, Fault};

use crate::support::{Rec, START, World, declining, key, labels, ok, rec};

const SECOND: Duration = Duration::from_secs(1);

/// Runs a step that notes its effect in the ledger, and returns the step's name.
async fn step(world: &World, call: &Call, name: &str) -> Result<String, Failure> {
    let (ledger, effect) = (Arc::clone(&world.ledger), format!("step: {name}"));
    call.step(name, |key| async move {
        ledger.record(&*effect, key);
        Ok(effect)
    })
    .await
}

/// A record with the steps `one` and `two`, which fails after them the first `fails` times.
fn stepping(label: &'static str, fails: u32) -> Rec {
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
fn with_steps(write: &Write) -> bool {
    let record = write.record.as_ref();
    record.is_some_and(|record| record.owner.is_some() && record.steps.is_some())
}

impl World {
    fn steps(&self, name: &str) -> usize {
        self.ledger.executed(&format!("step: {name}"))
    }

    fn writes(&self) -> Vec<Write> {
        let writes = self.store.history().into_iter().filter_map(|call| match call {
            StoreCall::Write { writes, .. } => Some(writes),
            _ => None,
        });
        writes.flatten().collect()
    }
}

fn step_error(outcome: &Outcome) -> Option<&StepError> {
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
async fn what_follows_a_step_begins_when_the_store_has_its_result() {
    let world = World::yielding();
    let looks = rec("a", |world: World, call: Call| async move {
        step(&world, &call, "one").await?;
        let stored = world.stored("a").await.unwrap().steps;
        assert_eq!(stored.as_deref(), Some("{\"one\":\"step: one\"}"));
        Ok(())
    });
    assert_eq!(world.deliver(vec![looks]).await, ["executed"]);
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
async fn a_step_that_failed_can_be_called_again_in_the_same_attempt() {
    let world = World::new();
    let again = rec("a", |world: World, call: Call| async move {
        let failed =
            call.step::<(), _, _>("one", |_| async { Err(Failure::transient("no")) }).await;
        assert!(failed.is_err());
        step(&world, &call, "one").await.map(|_| ())
    });
    assert_eq!(world.deliver(vec![again]).await, ["executed"]);
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
        let (one, two) =
            futures_util::join!(step(&world, &call, "one"), step(&world, &call, "two"));
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
    let mut world = World::yielding();
    world.policy.lease = Lease::Renewed { length: 9 * SECOND };
    let slow_answer = Fault::delay_answer(world.clock.clone(), SECOND / 2).for_writes(with_steps);
    world.store.inject(slow_answer.always());
    let both = rec("a", |world: World, call: Call| async move {
        let later = async {
            world.clock.sleep(SECOND / 4).await;
            step(&world, &call, "two").await
        };
        let (one, two) = futures_util::join!(step(&world, &call, "one"), later);
        one?;
        two?;
        Err(Failure::transient("no luck"))
    });
    assert_eq!(world.deliver(vec![both]).await, ["failed"]);
    assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["executed"]);
    assert_eq!((world.steps("one"), world.steps("two")), (1, 1));
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
            assert_eq!(seen.lease_until, record.lease_until, "no time has passed");
        }
        assert_eq!(ends.len(), 2);
        assert!(ends.iter().all(|(before, after)| before < after), "{ends:?}");
        assert_eq!(ends[0].1, ends[1].0);
    }
}

#[tokio::test]
async fn a_step_whose_answer_was_lost_is_written_again() {
    for lost in 1..4 {
        for lease in [Lease::Invocation, Lease::Renewed { length: 9 * SECOND }] {
            let mut world = World::new();
            world.policy.lease = lease;
            world.store.inject(Fault::lose_answer().for_writes(with_steps).times(lost));
            assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["failed"]);
            assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["executed"]);
            assert_eq!((world.steps("one"), world.steps("two")), (1, 1));
        }
    }
}

#[tokio::test]
async fn a_late_copy_of_a_step_brings_no_earlier_steps_back() {
    for later in 0..4 {
        let world = World::new();
        world.store.inject(Fault::duplicate(later).for_writes(with_steps));
        assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["failed"]);
        assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["executed"], "{later}");
        assert_eq!((world.steps("one"), world.steps("two")), (1, 1), "{later}");
    }
}

#[tokio::test]
async fn a_handler_that_fails_while_a_step_is_written_releases_with_it() {
    let world = World::yielding();
    world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(with_steps).always());
    let gives_up = rec("a", |world: World, call: Call| async move {
        let hurry = world.clock.sleep(SECOND);
        tokio::select! {
            _ = step(&world, &call, "one") => panic!("the store refuses it"),
            () = hurry => Err(Failure::transient("no patience")),
        }
    });
    assert_eq!(world.deliver(vec![gives_up]).await, ["failed"]);
    world.store.heal();
    assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["executed"]);
    assert_eq!(world.steps("one"), 1);
}

#[tokio::test]
async fn a_handler_that_is_stopped_leaves_its_steps() {
    let mut world = World::new();
    world.timeout = Some(5 * SECOND);
    let hangs = rec("a", |world: World, call: Call| async move {
        step(&world, &call, "one").await?;
        world.clock.sleep(60 * SECOND).await;
        Ok(())
    });
    assert_eq!(world.deliver(vec![hangs]).await, ["timed_out"]);
    world.clock.advance(10 * SECOND);
    assert_eq!(world.deliver(vec![stepping("a", 0)]).await, ["executed"]);
    assert_eq!((world.steps("one"), world.steps("two")), (1, 1));
}

#[tokio::test]
async fn a_renewal_and_a_takeover_carry_steps_on() {
    let mut world = World::new();
    world.policy.lease = Lease::Renewed { length: 3 * SECOND };
    let dies = rec("a", |world: World, call: Call| async move {
        step(&world, &call, "one").await?;
        world.clock.sleep(7 * SECOND).await;
        // As if its process died: nothing is heard of it again.
        let mut lapsed = world.stored("a").await.unwrap();
        assert!(lapsed.steps.is_some() && lapsed.lease_until > Some(START.plus(7 * SECOND)));
        lapsed.owner = Some(Owner::from_bits(7));
        world.store.inner().insert(key("a"), lapsed);
        world.clock.sleep(60 * SECOND).await;
        Ok(())
    });
    assert_eq!(world.deliver(vec![dies]).await, ["fenced"]);
    world.clock.advance(10 * SECOND);
    let warned = rec("a", |world: World, call: Call| async move {
        assert_eq!(call.lost_attempts(), 1);
        step(&world, &call, "one").await.map(|_| ())
    });
    assert_eq!(world.deliver(vec![warned]).await, ["executed"]);
    assert_eq!(world.steps("one"), 1);
}

#[tokio::test]
async fn a_step_of_a_worker_that_lost_its_key_is_not_kept() {
    let world = World::new();
    let fenced = rec("a", |world: World, call: Call| async move {
        let mut theirs = IdempotencyRecord::new(Status::InProgress, START.plus(600 * SECOND));
        theirs.owner = Some(Owner::from_bits(5));
        theirs.lease_until = Some(world.clock.now().plus(60 * SECOND));
        world.store.inner().insert(key("a"), theirs);
        step(&world, &call, "one").await?;
        panic!("it went on after a step that is not kept")
    });
    assert_eq!(world.deliver(vec![fenced]).await, ["fenced"]);
    assert_eq!(world.stored("a").await.unwrap().steps, None);
}

#[tokio::test]
async fn an_attempt_that_was_not_begun_or_declined_keeps_steps() {
    let world = World::new();
    assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["failed"]);
    assert_eq!(world.deliver(vec![declining("a")]).await, ["declined"]);
    assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["executed"]);
    assert_eq!(world.steps("one"), 1);
    let declines =
        rec(
            "b",
            |world: World, call: Call| async move { step(&world, &call, "b").await.map(|_| ()) },
        );
    assert_eq!(world.deliver(vec![declines.declines()]).await, ["declined"]);
    assert_eq!(world.deliver(vec![declining("b")]).await, ["declined"]);
    assert!(world.stored("b").await.unwrap().steps.is_some());
}

/// Else a later attempt, which does not call the step, would commit without the effect.
#[tokio::test]
async fn an_effect_is_collected_beside_a_step_and_not_in_its_work() {
    let mut world = World::new();
    world.policy.transactional = true;
    let effect = |world: &World, call: &Call| {
        let ledger = Arc::clone(&world.ledger);
        call.collect(|effects: &mut MemoryEffects| effects.add(move || ledger.record("effect", "")))
    };
    let hides = rec("a", move |world: World, call: Call| async move {
        let hidden = call.step("one", |_| async { Ok(effect(&world, &call)?) }).await;
        let refused = hidden.unwrap_err();
        assert_eq!(refused.error().downcast_ref(), Some(&CollectError::InStep));
        // A closure that is called at once, before there is a future, is in the step as well.
        let early =
            call.step("two", |_| std::future::ready(effect(&world, &call).map_err(Into::into)));
        assert!(early.await.is_err());
        // What the handler does between two polls of a step is not in it.
        let waits = call.step("three", |_| async {
            world.clock.sleep(SECOND).await;
            Ok(())
        });
        let beside = async { effect(&world, &call) };
        let (waited, beside) = futures_util::join!(waits, beside);
        waited?;
        beside?;
        Ok(())
    });
    assert_eq!(world.deliver(vec![hides]).await, ["executed"]);
    assert_eq!(world.ledger.executed("effect"), 1);
}

#[tokio::test]
async fn a_message_is_published_beside_a_step_and_not_in_its_work() {
    let (call, published) = Call::test("o-1").with_publisher();
    let message = || Message::new("parcels", "{}");
    let hidden = call.step("one", |_| async { Ok(call.publish(message())?) }).await;
    assert_eq!(hidden.unwrap_err().error().downcast_ref(), Some(&PublishError::InStep));
    assert!(published.published().is_empty());
    call.publish(message()).unwrap();
    assert_eq!(published.published().len(), 1);
}

/// An operator who has the key tried again must not have its steps repeated.
#[tokio::test]
async fn a_key_that_failed_permanently_keeps_its_steps() {
    let mut world = World::new();
    let fails = || {
        rec("a", |world: World, call: Call| async move {
            step(&world, &call, "one").await?;
            Err(Failure::permanent("no luck"))
        })
    };
    assert_eq!(world.deliver(vec![fails()]).await, ["failed"]);
    let mut failed = world.stored("a").await.unwrap();
    assert_eq!(failed.status, Status::PermanentlyFailed);
    // As `records redrive` does it.
    (failed.status, failed.owner, failed.result) = (Status::InProgress, None, None);
    failed.last_owner = Some(Owner::from_bits(7));
    failed.lease_until = Some(Timestamp::from_millis(1));
    world.store.inner().insert(key("a"), failed);
    assert_eq!(world.deliver(vec![stepping("a", 0)]).await, ["executed"]);
    assert_eq!((world.steps("one"), world.steps("two")), (1, 1));

    world.policy.on_timeout = OnTimeout::FailPermanently;
    world.timeout = Some(5 * SECOND);
    let hangs = rec("b", |world: World, call: Call| async move {
        step(&world, &call, "b").await?;
        world.clock.sleep(60 * SECOND).await;
        Ok(())
    });
    assert_eq!(world.deliver(vec![hangs]).await, ["timed_out"]);
    assert!(world.stored("b").await.unwrap().steps.is_some());
}

#[tokio::test]
async fn a_step_whose_result_cannot_be_written_is_not_run_twice_in_an_attempt() {
    let world = World::new();
    let unwritable = rec("a", |world: World, call: Call| async move {
        let run = || async {
            let result = call.step("one", |_| async {
                world.ledger.record("step: one", "");
                Ok(std::collections::BTreeMap::from([((1, 2), 3)]))
            });
            result.await.map(drop)
        };
        let first = run().await.unwrap_err();
        let first: &StepError = first.error().downcast_ref().unwrap();
        assert!(matches!(first, StepError::Unserializable { .. }));
        run().await
    });
    let outcomes = world.clock.drive(world.invoke(vec![unwritable])).await;
    assert!(matches!(step_error(&outcomes[0]).unwrap(), StepError::Twice { .. }));
    assert_eq!(world.steps("one"), 1);
}

#[tokio::test]
async fn steps_of_another_payload_are_a_mismatch() {
    let world = World::new();
    let one = |fails| stepping("a", fails).fingerprint("f");
    assert_eq!(world.deliver(vec![one(1)]).await, ["failed"]);
    let other = || ok("a").payload("other").fingerprint("g");
    assert_eq!(world.deliver(vec![other()]).await, ["mismatch"]);
    assert_eq!(world.deliver(vec![one(1)]).await, ["executed"]);
    assert_eq!(world.deliver(vec![other()]).await, ["mismatch"]);
    let fails = rec("b", |_, _| async { Err(Failure::transient("no luck")) }).fingerprint("f");
    assert_eq!(world.deliver(vec![fails]).await, ["failed"]);
    let without_steps = ok("b").payload("other").fingerprint("g");
    assert_eq!(world.deliver(vec![without_steps]).await, ["executed"]);
}

/// The work whose steps are kept is not final, and nothing of its record stays the same from attempt to attempt.
#[tokio::test]
async fn a_mismatch_with_unfinished_steps_is_put_aside_again_after_another_attempt() {
    let world = World::new();
    let one = || stepping("a", 9).fingerprint("f");
    let other = || ok("a").payload("other").fingerprint("g").aside();
    for times in 1..=2 {
        assert_eq!(world.deliver(vec![one()]).await, ["failed"]);
        assert_eq!(world.deliver(vec![other()]).await, ["diverted"]);
        assert_eq!(world.deliver(vec![other()]).await, ["replayed"]);
        assert_eq!(world.ledger.executed("aside: a"), times);
    }
}

#[tokio::test]
async fn a_store_that_refuses_a_step_is_named_at_once() {
    for kind in [StoreErrorKind::Denied, StoreErrorKind::TooLarge] {
        let world = World::new();
        world.store.inject(Fault::refuse(kind).for_writes(with_steps).always());
        let outcomes = world.clock.drive(world.invoke(vec![stepping("a", 1)])).await;
        let error = step_error(&outcomes[0]).unwrap();
        assert!(matches!(error, StepError::NotKept { source, .. } if source.kind() == kind));
        assert_eq!(world.clock.now(), START);
        // Its release was another write, with the step.
        world.store.heal();
        assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["executed"]);
        assert_eq!((world.steps("one"), world.steps("two")), (1, 1));
    }
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_and_says_what_happened() {
    let world = World::new();
    let large = rec("a", |_, call: Call| async move {
        call.step("large", |_| async { Ok("x".repeat(MAX_STEP_BYTES)) }).await.map(|_| ())
    });
    let outcomes = world.clock.drive(world.invoke(vec![large])).await;
    let error = step_error(&outcomes[0]).unwrap();
    assert!(matches!(error, StepError::TooLarge { bytes, .. } if *bytes > MAX_STEP_BYTES));
    assert!(error.to_string().starts_with("the step `large` has run, but "), "{error}");
}

#[tokio::test]
async fn a_result_of_an_earlier_version_is_an_error_without_its_content_and_runs_nothing() {
    let world = World::new();
    assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["failed"]);
    let newer = rec("a", |_, call: Call| async move {
        call.step::<u32, _, _>("one", |_| async { panic!("it has run") }).await.map(|_| ())
    });
    let outcomes = world.clock.drive(world.invoke(vec![newer])).await;
    let error = step_error(&outcomes[0]).unwrap().to_string();
    assert!(error.contains("`one`") && error.contains("`u32`"), "{error}");
    assert!(!error.contains("step: one"), "{error}");
}

#[tokio::test]
async fn a_result_that_does_not_survive_json_is_found_at_the_first_attempt() {
    let world = World::new();
    let lossy = rec("a", |_, call: Call| async move {
        call.step("nan", |_| async { Ok(f64::NAN) }).await.map(|_| ())
    });
    let outcomes = world.clock.drive(world.invoke(vec![lossy])).await;
    assert!(matches!(step_error(&outcomes[0]).unwrap(), StepError::Mismatch { .. }));
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
async fn a_step_after_its_handler_has_ended_is_not_run() {
    let (world, kept) = (World::new(), Arc::new(Mutex::new(None)));
    let leaks = Arc::clone(&kept);
    let leaky = rec("a", |_, call: Call| async move {
        *leaks.lock().unwrap() = Some(call);
        Ok(())
    });
    assert_eq!(world.deliver(vec![leaky]).await, ["executed"]);
    let late = kept.lock().unwrap().take().unwrap();
    let error = step(&world, &late, "one").await.unwrap_err();
    assert!(matches!(error.error().downcast_ref(), Some(StepError::HandlerEnded { .. })));
    assert_eq!(world.steps("one"), 0);
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
