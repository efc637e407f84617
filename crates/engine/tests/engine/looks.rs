//! Records that are received again are looked at first. DynamoDB throttles reads and writes separately,
//! so a look that fails must not decide what becomes of a record.

use std::time::Duration;

use lambda_idempotency_core::{clock::Clock as _, policy::OnOutage, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::Fault;

use crate::{
    quarantine::{SECOND, dies_with},
    support::{ROUND_TRIP, World, key, noting, ok, rec},
};

pub(crate) fn throttled_reads() -> Fault {
    Fault::refuse(StoreErrorKind::Throttled).on_reads().always()
}

#[tokio::test]
async fn a_look_that_fails_is_not_an_outage_in_which_completed_work_runs_again() {
    let mut world = World::new();
    world.policy.on_outage = OnOutage::RunUnprotected;
    assert_eq!(world.deliver(vec![ok("a").receives(1)]).await, ["executed"]);
    world.store.inject(throttled_reads());
    assert_eq!(world.deliver(vec![ok("a").receives(2)]).await, ["replayed"]);
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn a_look_that_is_not_answered_delays_other_records_by_a_second_at_most() {
    let world = World::new();
    let begun = world.clock.now();
    world
        .store
        .inject(Fault::delay(world.clock.clone(), Duration::from_secs(60)).on_reads().always());
    let (fresh, started) = noting("b");
    let batch = vec![ok("a").receives(2), fresh.receives(1)];
    assert_eq!(world.deliver(batch).await, ["executed"; 2]);
    let waited = started.get().unwrap().since(begun);
    assert!(waited <= Duration::from_secs(1) + 2 * ROUND_TRIP, "{waited:?}");
}

/// What is claimed without a look may be no suspect. It starts at once then: a suspect that killed the
/// process would take its claim along.
#[tokio::test]
async fn a_record_that_was_claimed_because_its_look_failed_starts_before_suspects() {
    let world = World::new();
    dies_with(&world, &["a"]).await;
    let hidden = Fault::refuse(StoreErrorKind::Throttled).on_reads().for_key(&key("b")).always();
    world.store.inject(hidden);
    let first = rec("b", |world: World, _| async move {
        world.clock.sleep(SECOND).await;
        world.ledger.assert_never("a");
        Ok(())
    });
    let suspect = rec("a", |world: World, _| async move {
        world.ledger.assert_once("b");
        Ok(())
    });
    let batch = vec![suspect.receives(2), first.receives(2), ok("c").receives(1)];
    assert_eq!(world.deliver(batch).await, ["executed"; 3]);
}
