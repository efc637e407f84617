//! Several records of one key in one batch.

use lambda_idempotency_core::{failure::Failure, policy::OnOutage};

use crate::support::{World, failing, ok, rec};

#[tokio::test]
async fn copies_share_one_attempt() {
    let world = World::new();
    let outcomes = world.deliver(vec![ok("a"), ok("b"), ok("a"), ok("a")]).await;
    assert_eq!(outcomes, ["executed", "executed", "coalesced", "coalesced"]);
    world.ledger.assert_each_once(["a", "b"]);
    assert_eq!(world.store.write_calls(), 2);
}

#[tokio::test]
async fn copies_of_a_completed_record_are_replayed() {
    let world = World::new();
    world.deliver(vec![ok("a")]).await;
    assert_eq!(world.deliver(vec![ok("a"), ok("a")]).await, ["replayed"; 2]);
}

#[tokio::test]
async fn another_payload_under_the_key_counts_as_a_later_delivery() {
    let world = World::new();
    let outcomes = world.deliver(vec![ok("a"), ok("a").payload("other")]).await;
    assert_eq!(outcomes, ["executed", "replayed"]);
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn another_fingerprint_under_the_key_is_a_mismatch() {
    let world = World::new();
    let outcomes = world
        .deliver(vec![
            ok("a").fingerprint("5"),
            ok("a").fingerprint("6"),
            ok("a").fingerprint("5").payload("other note"),
        ])
        .await;
    assert_eq!(outcomes, ["executed", "mismatch", "coalesced"]);
    assert_eq!(world.deliver(vec![ok("a").fingerprint("6")]).await, ["mismatch"]);
}

/// A known limit: the stored fingerprint is that of the last claim, so the first event is a mismatch.
#[tokio::test]
async fn a_released_key_may_go_to_another_fingerprint() {
    let world = World::new();
    assert_eq!(world.deliver(vec![failing("a").fingerprint("5")]).await, ["failed"]);
    assert_eq!(world.deliver(vec![ok("a").fingerprint("6")]).await, ["executed"]);
    assert_eq!(world.deliver(vec![ok("a").fingerprint("5")]).await, ["mismatch"]);
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn if_the_first_copy_fails_all_copies_fail() {
    let world = World::new();
    assert_eq!(world.deliver(vec![failing("a"), failing("a")]).await, ["failed"; 2]);
    assert_eq!(world.stored("a").await.unwrap().failed_attempts, 1, "one attempt for both copies");
}

#[tokio::test]
async fn if_the_first_copy_fails_another_payload_leads_next() {
    let world = World::new();
    let outcomes = world.deliver(vec![failing("a"), ok("a").payload("other"), failing("a")]).await;
    assert_eq!(outcomes, ["failed", "executed", "failed"]);
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn a_permanent_failure_is_shared() {
    let world = World::new();
    let permanent = || rec("a", |_, _| async { Err(Failure::permanent("never")) });
    let outcomes = world.deliver(vec![permanent(), ok("a"), ok("a").payload("other")]).await;
    assert_eq!(outcomes, ["failed", "failed", "permanently_failed"]);
}

#[tokio::test]
async fn copies_of_a_record_that_ran_unprotected_run_as_well() {
    let mut world = World::new();
    world.policy.on_outage = OnOutage::RunUnprotected;
    world.store.outage();
    assert_eq!(world.deliver(vec![ok("a"), ok("a")]).await, ["unprotected"; 2]);
    assert_eq!(world.ledger.executed("a"), 2);
}
