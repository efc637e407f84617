//! Records that are received again are looked at first. DynamoDB throttles reads and writes separately,
//! so a look that fails must not decide what becomes of a record.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use lambda_idempotency_core::{clock::Clock as _, policy::OnOutage, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::Fault;

use crate::support::{World, ok, rec};

fn throttled_reads() -> Fault {
    Fault::refuse(StoreErrorKind::Throttled).on_reads().always()
}

#[tokio::test]
async fn a_record_is_claimed_without_a_look_if_the_look_fails() {
    let world = World::new();
    world.store.inject(throttled_reads());
    assert_eq!(world.deliver(vec![ok("a").receives(2)]).await, ["executed"]);
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
    let started = Arc::new(OnceLock::new());
    let noted = Arc::clone(&started);
    let fresh = rec("b", move |world: World, _| async move {
        noted.get_or_init(|| world.clock.now());
        Ok(())
    });
    let batch = vec![ok("a").receives(2), fresh.receives(1)];
    assert_eq!(world.deliver(batch).await, ["executed"; 2]);
    let waited = started.get().unwrap().since(begun);
    assert!(waited <= Duration::from_secs(1), "{waited:?}");
}
