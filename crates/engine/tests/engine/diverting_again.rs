//! Diverting at later deliveries: copies, records that are sent again, and sinks that failed or died.

use lambda_idempotency_core::store::{Guard, RecordVersion, Store as _, Verdict, Write};

use super::diverting::{SECOND, hopeless, without_sink};
use crate::support::{START, World, key, labels, ok};

/// Frees a key, as an operator does.
async fn delete(world: &World, label: &str) {
    let seen = world.stored(label).await.unwrap();
    let delete = Write::new(key(label), Guard::Unchanged(RecordVersion::of(&seen)), None);
    let verdicts = world.store.inner().write(&[delete], START.plus(3600 * SECOND)).await;
    assert!(matches!(verdicts[..], [Verdict::Written]), "{verdicts:?}");
}

#[tokio::test]
async fn copies_of_a_diverted_record_are_acknowledged_with_it() {
    let world = World::new();
    let batch = vec![hopeless("a").aside(), ok("a").aside(), ok("a").payload("other").aside()];
    let outcomes = world.deliver(batch).await;
    assert_eq!(outcomes, ["diverted", "coalesced", "diverted"]);
    assert_eq!(world.ledger.executed("aside: a"), 2);
}

/// A fingerprint identifies the payload of work that was done, but a sink gets the payload itself.
#[tokio::test]
async fn a_copy_with_another_payload_is_diverted_as_well() {
    let world = World::new();
    let copy = |payload| ok("a").payload(payload).fingerprint("1").aside();
    let first = || hopeless("a").payload("book").fingerprint("1").aside();
    let batch = vec![first(), copy("pen"), copy("book"), copy("pen")];
    let outcomes = world.deliver(batch).await;
    assert_eq!(outcomes, ["diverted", "diverted", "coalesced", "coalesced"]);
    assert_eq!(world.ledger.executed("aside: a"), 2);
    let outcomes = world.deliver(vec![copy("book"), copy("cup")]).await;
    assert_eq!(outcomes, ["replayed", "diverted"], "only the first payload was diverted before");
}

/// An operator has deleted the permanent failure and sent the record again.
#[tokio::test]
async fn a_record_that_is_sent_again_and_fails_again_is_diverted_again() {
    let world = World::new();
    assert_eq!(world.deliver(vec![hopeless("a").aside()]).await, ["diverted"]);
    world.clock.advance(60 * SECOND);
    assert_eq!(world.deliver(vec![hopeless("a").aside()]).await, ["replayed"], "the same failure");
    delete(&world, "a").await;
    assert_eq!(world.deliver(vec![hopeless("a").aside()]).await, ["diverted"]);
    assert_eq!(world.deliver(vec![hopeless("a").aside()]).await, ["replayed"]);
    assert_eq!(world.ledger.executed("aside: a"), 2);
}

#[tokio::test]
async fn a_record_that_is_sent_again_and_mismatches_again_is_diverted_again() {
    let world = World::new();
    for expected in ["diverted", "diverted"] {
        assert_eq!(world.deliver(vec![ok("a").fingerprint("1")]).await, ["executed"]);
        let other = || vec![ok("a").fingerprint("2").aside()];
        assert_eq!(world.deliver(other()).await, [expected]);
        assert_eq!(world.deliver(other()).await, ["replayed"]);
        delete(&world, "a").await;
        world.clock.advance(60 * SECOND);
    }
    assert_eq!(world.ledger.executed("aside: a"), 2);
}

/// The cache still holds the completion that an operator has just deleted.
#[tokio::test]
async fn a_mismatch_with_the_cache_alone_is_not_diverted() {
    let world = World::new();
    let engine = world.engine();
    let first = world.invoke_by(&engine, vec![ok("a").fingerprint("1")]);
    assert_eq!(labels(&world.clock.drive(first).await), ["executed"]);
    delete(&world, "a").await;
    let second = world.invoke_by(&engine, vec![ok("a").fingerprint("2").aside()]);
    assert_eq!(labels(&world.clock.drive(second).await), ["executed"]);
    world.ledger.assert_never("aside: a");
}

/// A worker diverted the record, and died before the rest of its batch.
#[tokio::test]
async fn a_copy_of_an_earlier_diverted_record_is_diverted_as_well() {
    let world = World::new();
    let first = || hopeless("a").payload("book").fingerprint("1").aside();
    assert_eq!(world.deliver(vec![first()]).await, ["diverted"]);
    let copy = ok("a").payload("pen").fingerprint("1").aside();
    assert_eq!(world.deliver(vec![first(), copy]).await, ["replayed", "diverted"]);
}

#[tokio::test]
async fn copies_of_a_record_that_could_not_be_diverted_are_returned_with_it() {
    let world = World::new();
    let batch = vec![without_sink(hopeless("a")), ok("a").aside()];
    assert_eq!(world.deliver(batch).await, ["failed", "failed"]);
    world.ledger.assert_never("aside: a");
}
