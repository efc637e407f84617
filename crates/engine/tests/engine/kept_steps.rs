//! Which steps a later attempt finds: after lost answers, renewals, takeovers, failures, and for another payload.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    failure::Failure,
    policy::OnTimeout,
    record::{Owner, Status},
    store::StoreErrorKind,
};
use lambda_idempotency_engine::call::Call;
use lambda_idempotency_testkit::faults::Fault;

use crate::steps::{step, stepping, with_steps};
use crate::support::{World, declining, key, ok, rec};

const SECOND: Duration = Duration::from_secs(1);

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

/// The step ends when the handler fails: the store learns of both by the same write.
#[tokio::test]
async fn a_step_that_ends_in_the_poll_in_which_its_handler_fails_does_not_run_again() {
    let world = World::new();
    let fails = rec("a", |world: World, call: Call| async move {
        let other = async { Err::<(), _>(Failure::transient("no luck")) };
        tokio::try_join!(biased; step(&world, &call, "one"), other)?;
        Ok(())
    });
    assert_eq!(world.deliver(vec![fails]).await, ["failed"]);
    assert_eq!(world.steps("one"), 1);
    assert_eq!(world.deliver(vec![stepping("a", 0)]).await, ["executed"]);
    assert_eq!((world.steps("one"), world.steps("two")), (1, 1));
}
