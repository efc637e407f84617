//! What is not a step, and results that cannot be kept: the handler gets an error that says so.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Clock,
    effects::CollectError,
    memory::MemoryEffects,
    outbox::{Message, PublishError},
    policy::Mode,
    store::StoreErrorKind,
};
use lambda_idempotency_engine::{call::Call, steps::StepError};
use lambda_idempotency_testkit::faults::Fault;

use crate::steps::{step_error, stepping, with_steps};
use crate::support::{START, World, assert_took, rec};

const SECOND: Duration = Duration::from_secs(1);

/// Else a later attempt, which does not call the step, would commit without the effect.
#[tokio::test]
async fn an_effect_is_collected_beside_a_step_and_not_in_its_work() {
    let mut world = World::new();
    world.policy.mode = Mode::Transactional;
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
        let (waited, beside) = tokio::join!(waits, beside);
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
async fn a_store_that_refuses_a_step_is_named_at_once() {
    for kind in [StoreErrorKind::Denied, StoreErrorKind::TooLarge] {
        let world = World::new();
        world.store.inject(Fault::refuse(kind).for_writes(with_steps).always());
        let outcomes = world.clock.drive(world.invoke(vec![stepping("a", 1)])).await;
        let error = step_error(&outcomes[0]).unwrap();
        assert!(matches!(error, StepError::NotKept { source, .. } if source.kind() == kind));
        assert_took(&world, START, Duration::ZERO);
        // Its release was another write, with the step.
        world.store.heal();
        assert_eq!(world.deliver(vec![stepping("a", 1)]).await, ["executed"]);
        assert_eq!((world.steps("one"), world.steps("two")), (1, 1));
    }
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
