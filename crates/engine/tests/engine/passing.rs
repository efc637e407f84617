//! Records that will never be processed, where somebody takes care of them: the records behind them in their group do not
//! wait.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::Clock as _,
    failure::Failure,
    outcome::Outcome,
    policy::OnOutage,
    record::{Owner, Status},
    store::{Guard, RecordVersion, Store as _, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_testkit::faults::Fault;

use crate::support::{Rec, START, World, assert_took, failing, hanging, key, labels, ok, rec};

const SECOND: Duration = Duration::from_secs(1);

/// A record whose handler fails permanently.
pub(crate) fn hopeless(label: &'static str) -> Rec {
    rec(label, |_, _| async { Err(Failure::permanent("never again")) })
}

/// The record, and one behind it in its group.
fn group(first: Rec) -> Vec<Rec> {
    vec![first.group("g"), ok("b").group("g")]
}

#[tokio::test]
async fn a_group_passes_a_permanent_failure() {
    for (lets_pass, then) in [(false, "returned"), (true, "executed")] {
        let world = World::new();
        let first = |record: Rec| group(if lets_pass { record.passing() } else { record });
        assert_eq!(world.deliver(first(hopeless("a"))).await, ["failed", then]);
        assert_eq!(world.stored("a").await.unwrap().status, Status::PermanentlyFailed);
        let then = if lets_pass { "replayed" } else { then };
        assert_eq!(world.deliver(first(ok("a"))).await, ["permanently_failed", then]);
    }
}

#[tokio::test]
async fn a_group_passes_a_mismatch_and_a_rejected_record() {
    let world = World::new();
    assert_eq!(world.deliver(vec![ok("a").fingerprint("1")]).await, ["executed"]);
    let other = ok("a").fingerprint("2").passing();
    assert_eq!(world.deliver(group(other)).await, ["mismatch", "executed"]);
    let world = World::new();
    assert_eq!(world.deliver(group(ok("a").rejected().passing())).await, ["rejected", "executed"]);
    let world = World::new();
    assert_eq!(world.deliver(group(ok("a").rejected())).await, ["rejected", "returned"]);
}

#[tokio::test]
async fn a_group_waits_for_what_may_still_be_processed() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(2);
    assert_eq!(world.deliver(group(failing("a").passing())).await, ["failed", "returned"]);
    let unrecorded = Fault::refuse(StoreErrorKind::Denied).that_writes(Status::PermanentlyFailed);
    world.store.inject(unrecorded.always());
    assert_eq!(world.deliver(group(failing("a").passing())).await, ["failed", "returned"]);
    world.store.heal();
    world.clock.advance(40 * SECOND);
    assert_eq!(world.deliver(group(failing("a").passing())).await, ["failed", "executed"]);
}

/// Another worker took the key over meanwhile, and it may succeed.
#[tokio::test]
async fn a_group_waits_for_a_failure_whose_lease_was_lost() {
    let world = World::new();
    let overtaken = rec("a", |world: World, _| async move {
        let mut record = world.stored("a").await.unwrap();
        record.owner = Some(Owner::from_bits(7));
        world.store.inner().insert(key("a"), record);
        Err(Failure::permanent("never again"))
    });
    let outcomes = world.clock.drive(world.invoke(group(overtaken.passing()))).await;
    assert!(matches!(&outcomes[0], Outcome::Failed { permanent: false, .. }), "{outcomes:?}");
    assert_eq!(outcomes[1].label(), "returned");
}

/// Nothing records it, so it is permanent only for who takes care of the record.
#[tokio::test]
async fn an_unprotected_failure_is_permanent_if_the_record_lets_pass() {
    for lets_pass in [false, true] {
        let world = World::new();
        let record = hopeless("a").unprotected();
        let batch = group(if lets_pass { record.passing() } else { record });
        let outcomes = world.clock.drive(world.invoke(batch)).await;
        let Outcome::Failed { permanent, .. } = outcomes[0] else { panic!("{outcomes:?}") };
        assert_eq!(permanent, lets_pass);
        assert_eq!(outcomes[1].label(), if lets_pass { "executed" } else { "returned" });
    }
    let retried = failing("c").unprotected().passing();
    assert_eq!(World::new().deliver(group(retried)).await, ["failed", "returned"]);
}

/// The record runs alone and without a claim, so other records must not wait for its settlement.
#[tokio::test]
async fn a_group_passes_a_quarantined_record_that_fails_permanently() {
    for is_down in [false, true] {
        let mut world = World::new();
        let forever = hanging("a");
        world.dies(vec![forever]).await;
        world.clock.advance(40 * SECOND);
        if is_down {
            world.policy.on_outage = OnOutage::RunUnprotected;
            let claims = Fault::refuse(StoreErrorKind::Unavailable).that_writes(Status::InProgress);
            world.store.inject(claims.always());
        }
        let then = if is_down { "unprotected" } else { "executed" };
        assert_eq!(world.deliver(group(hopeless("a").passing())).await, ["failed", then]);
        assert_took(&world, START, 40 * SECOND);
    }
}

/// The cache still holds the completion that an operator has just deleted.
#[tokio::test]
async fn a_mismatch_with_the_cache_alone_is_none_for_a_record_that_lets_pass() {
    let world = World::new();
    let engine = world.engine();
    let first = world.invoke_by(&engine, vec![ok("a").fingerprint("1")]);
    assert_eq!(labels(&world.clock.drive(first).await), ["executed"]);
    let seen = world.stored("a").await.unwrap();
    let delete = Write::new(key("a"), Guard::Unchanged(RecordVersion::of(&seen)), None);
    let verdicts = world.store.inner().write(&[delete], world.clock.now().plus(SECOND)).await;
    assert!(matches!(verdicts[..], [Verdict::Written]), "{verdicts:?}");
    let second = world.invoke_by(&engine, vec![ok("a").fingerprint("2").passing()]);
    assert_eq!(labels(&world.clock.drive(second).await), ["executed"]);
}
