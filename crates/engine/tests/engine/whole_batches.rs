//! Batches of which nothing is started after a failure: `AfterFailure::Batch`.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::failure::Failure;
use lambda_idempotency_engine::batch::{AfterFailure, Engine};

use crate::{
    contract::{Contract, Wrong},
    support::{Rec, World, failing, labels, ok, rec, slow},
};

const SECOND: Duration = Duration::from_secs(1);

fn world(concurrency: usize) -> World {
    let mut world = World { after_failure: AfterFailure::Batch, ..World::yielding() };
    world.policy.concurrency = concurrency;
    world
}

/// A record whose handler notes that it began.
fn noted(label: &'static str, fails: bool, order: &Arc<Mutex<Vec<&'static str>>>) -> Rec {
    let order = Arc::clone(order);
    rec(label, move |_, _| async move {
        order.lock().unwrap().push(label);
        if fails { Err(Failure::transient("no luck")) } else { Ok(()) }
    })
}

/// The second delivery finds an item under the key of what failed, so that its claim takes longer.
#[tokio::test]
async fn one_at_a_time_a_batch_keeps_its_order_at_the_next_delivery_too() {
    let world = world(1);
    let order = Arc::default();
    let batch = |fails| vec![noted("a", fails, &order), noted("b", false, &order)];
    assert_eq!(world.deliver(batch(true)).await, ["failed", "returned"]);
    assert_eq!(world.deliver(batch(false)).await, ["executed"; 2]);
    assert_eq!(*order.lock().unwrap(), ["a", "a", "b"]);
}

#[tokio::test]
async fn several_at_a_time_a_handler_that_was_not_called_yet_does_not_begin_after_a_failure() {
    let world = world(16);
    let outcomes = world.deliver(vec![failing("a"), ok("b"), ok("c")]).await;
    assert_eq!(outcomes, ["failed", "returned", "returned"]);
    for label in ["b", "c"] {
        world.ledger.assert_never(label);
        assert_eq!(world.stored(label).await, None, "the claim of {label} is undone");
    }
}

#[tokio::test]
async fn what_comes_before_a_mismatch_is_tried() {
    for concurrency in [1, 2, 16] {
        let world = world(concurrency);
        assert_eq!(world.deliver(vec![ok("c").fingerprint("1")]).await, ["executed"]);
        let batch = vec![
            slow("a", SECOND).group("g"),
            ok("b").group("g"),
            ok("c").fingerprint("2").group("h"),
        ];
        let outcomes = world.deliver(batch).await;
        assert_eq!(outcomes, ["executed", "executed", "mismatch"], "{concurrency} at a time");
        world.ledger.assert_each_once(["a", "b", "c"]);
    }
}

#[tokio::test]
async fn what_comes_before_a_failure_goes_on_and_nothing_behind_it() {
    let world = world(2);
    let batch = vec![slow("a", 2 * SECOND), failing("b"), ok("c")];
    assert_eq!(world.deliver(batch).await, ["executed", "failed", "returned"]);
    world.ledger.assert_each_once(["a"]);
}

/// The claims of both are answered together, and that of the first needs one more step.
#[tokio::test]
async fn nothing_behind_a_record_begins_once_its_permanent_failure_is_found() {
    for concurrency in [1, 2, 16] {
        let world = world(concurrency);
        let hopeless = rec("a", |_, _| async { Err(Failure::permanent("never")) });
        assert_eq!(world.deliver(vec![hopeless]).await, ["failed"]);
        let outcomes = world.deliver(vec![ok("a"), ok("b")]).await;
        assert_eq!(outcomes, ["permanently_failed", "returned"], "{concurrency} at a time");
        world.ledger.assert_never("b");
    }
}

/// One that was received before goes first, and keeps the processor until the leases have ended.
#[tokio::test]
async fn claims_of_handlers_that_did_not_begin_within_their_lease_are_undone_once() {
    let world = World { timeout: Some(SECOND), ..world(16) };
    let blocks = rec("b", |world: World, _| async move {
        world.clock.advance(Duration::from_millis(2001));
        Ok(())
    });
    let (wrong, inner) = (Wrong::default(), world.store.clone());
    let store = Contract { inner, wrong: wrong.clone() };
    let batch = vec![ok("a"), blocks.receives(1), ok("c")];
    let engine = Engine::new(store).with_clock(world.clock.clone());
    let outcomes = world.clock.drive(world.invoke_by(&engine, batch)).await;
    assert_eq!(labels(&outcomes), ["returned", "completion_lost", "returned"]);
    assert_eq!(wrong.all(), [""; 0]);
}
