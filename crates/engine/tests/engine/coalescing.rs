//! Several records of one key in one batch.

use lambda_idempotency_core::failure::Failure;

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
async fn if_the_first_copy_fails_another_payload_leads_next() {
    let world = World::new();
    let outcomes = world.deliver(vec![failing("a"), ok("a").payload("other"), failing("a")]).await;
    assert_eq!(outcomes, ["failed", "executed", "failed"]);
    assert_eq!(world.ledger.entry("a").executions, ["1 0"], "one attempt for both copies");
}

#[tokio::test]
async fn a_permanent_failure_is_shared() {
    let world = World::new();
    let permanent = || rec("a", |_, _| async { Err(Failure::permanent("never")) });
    let outcomes = world.deliver(vec![permanent(), ok("a"), ok("a").payload("other")]).await;
    assert_eq!(outcomes, ["failed", "failed", "permanently_failed"]);
}
