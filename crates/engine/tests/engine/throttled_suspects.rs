//! A suspect whose key cannot be claimed, because its partition is throttled, holds the others up for a
//! second.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::Clock,
    policy::OnOutage,
    store::{Guard, StoreErrorKind, Write},
};
use lambda_idempotency_testkit::faults::Fault;

use crate::{
    quarantine::{SECOND, dies_with},
    support::{World, key, labels, noting, ok, slow, throttled},
};

/// Claims are refused, except that of `b`.
fn claims_suspect(write: &Write) -> bool {
    write.key != key("b") && !matches!(write.guard, Guard::OwnedBy(_))
}

#[tokio::test]
async fn a_throttled_claim_of_a_suspect_delays_the_others_by_a_second() {
    let world = World::new();
    dies_with(&world, &["s"]).await;
    let begun = world.clock.now();
    let (b, at) = noting("b");
    let store = throttled(&world, claims_suspect);
    let batch = vec![ok("s").receives(2), b.receives(1)];
    let outcomes = labels(&world.clock.drive(world.invoke_on(store, batch)).await);
    assert_eq!(outcomes, ["unavailable", "executed"]);
    let waited = at.get().map(|at| at.since(begun));
    assert!(waited.is_some_and(|waited| waited <= Duration::from_millis(1_100)), "{waited:?}");
}

/// Nobody waits for it.
#[tokio::test]
async fn a_throttled_claim_of_a_suspect_that_is_alone_is_tried_for_as_long_as_any_other() {
    let world = World::new();
    dies_with(&world, &["s"]).await;
    let begun = world.clock.now();
    let store = throttled(&world, claims_suspect);
    let outcomes = world.clock.drive(world.invoke_on(store, vec![ok("s").receives(2)])).await;
    assert_eq!(labels(&outcomes), ["unavailable"]);
    let tried = world.clock.now().since(begun);
    assert!(tried > 4 * SECOND, "{tried:?}");
}

/// Five groups, one after the other, take more than five of ten seconds.
#[tokio::test]
async fn a_record_that_waited_for_throttled_suspects_starts_only_if_it_can_end() {
    for (takes, outcome) in [(2 * SECOND, "executed"), (6 * SECOND, "returned")] {
        let mut world = World::new();
        let suspects = ["v", "w", "x", "y", "z"];
        for label in suspects {
            for _ in 0..3 {
                dies_with(&world, &[label]).await;
            }
        }
        assert_eq!(world.deliver(vec![slow("pace", takes)]).await, ["executed"]);
        world.timeout = Some(10 * SECOND);
        let store = throttled(&world, claims_suspect);
        let mut batch: Vec<_> = suspects.map(|label| ok(label).receives(6)).into();
        batch.push(slow("b", takes).receives(1));
        let outcomes = labels(&world.clock.drive(world.invoke_on(store, batch)).await);
        assert_eq!(outcomes[5], outcome);
        let stored = world.stored("b").await;
        assert_eq!(stored.is_some(), outcome == "executed", "a returned record holds no key");
        let is_claimed = world.writes().iter().any(|write| write.key == key("b"));
        assert_eq!(is_claimed, outcome == "executed", "{takes:?}: not even for a moment");
    }
}

/// Neither a look at `u` nor its claim is answered, so it is not known whether it is a suspect. `s` is one that
/// was passed over.
#[tokio::test]
async fn a_key_that_can_neither_be_read_nor_claimed_delays_the_others_by_a_second() {
    let world = World::new();
    dies_with(&world, &["s"]).await;
    let begun = world.clock.now();
    let hidden = Fault::refuse(StoreErrorKind::Throttled).on_reads().for_key(&key("u")).always();
    world.store.inject(hidden);
    let (b, at) = noting("b");
    let store = throttled(&world, |write| write.key == key("u"));
    let batch = vec![ok("u").receives(2), ok("s").receives(2), b.receives(1)];
    let outcomes = labels(&world.clock.drive(world.invoke_on(store, batch)).await);
    assert_eq!(outcomes, ["unavailable", "executed", "executed"]);
    let waited = at.get().map(|at| at.since(begun));
    assert!(waited.is_some_and(|waited| waited <= Duration::from_millis(1_100)), "{waited:?}");
}

/// The claim may have been applied, so it is undone. It was not started, so nothing has to wait for that.
#[tokio::test]
async fn a_claim_of_a_suspect_that_is_not_answered_delays_the_others_by_a_second() {
    let world = World::new();
    dies_with(&world, &["s"]).await;
    let begun = world.clock.now();
    let minute = Duration::from_secs(60);
    let unanswered = Fault::delay(world.clock.clone(), minute).for_key(&key("s"));
    world.store.inject(unanswered.for_writes(|_| true).always());
    let (b, at) = noting("b");
    let batch = vec![ok("s").receives(2), b.receives(1)];
    let outcomes = labels(&world.clock.drive(world.invoke(batch)).await);
    assert_eq!(outcomes, ["unavailable", "executed"]);
    let waited = at.get().map(|at| at.since(begun));
    assert!(waited.is_some_and(|waited| waited <= Duration::from_millis(1_100)), "{waited:?}");
}

/// The claim of `t` is tried until the end: nothing delivers it again.
#[tokio::test]
async fn where_nothing_is_delivered_again_a_throttled_claim_delays_suspects_by_a_second() {
    for on_outage in [OnOutage::Return, OnOutage::RunUnprotected] {
        let mut world = World::new();
        world.runs_once = true;
        world.policy.on_outage = on_outage;
        dies_with(&world, &["s"]).await;
        let begun = world.clock.now();
        let (suspect, at) = noting("s");
        let store = throttled(&world, |write| write.key == key("t"));
        let outcomes = world.clock.drive(world.invoke_on(store, vec![ok("t"), suspect])).await;
        assert_eq!(labels(&outcomes)[1], "executed", "{on_outage:?}");
        let waited = at.get().map(|at| at.since(begun));
        assert!(waited.is_some_and(|waited| waited <= 2 * SECOND), "{on_outage:?}: {waited:?}");
    }
}
