//! Duplicates that a warm process answers from memory.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::Clock,
    failure::Failure,
    policy::OnPermanentFailure,
    record::Status,
    store::{Guard, RecordVersion, Store as _, Write},
};
use lambda_idempotency_engine::process::Cache;
use lambda_idempotency_keys::Key;

use crate::support::{START, World, failing, key, labels, ok, rec};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_duplicate_of_what_this_process_did_costs_no_request() {
    let world = World::new();
    let engine = world.engine();
    world.invoke_by(&engine, vec![ok("a"), ok("b")]).await;
    let before = world.requests();
    for _ in 0..3 {
        let outcomes = world.invoke_by(&engine, vec![ok("a"), ok("b"), ok("a")]).await;
        assert_eq!(labels(&outcomes), ["replayed"; 3]);
        assert_eq!(outcomes[0].result().map(|value| &**value), Some("true"));
    }
    assert_eq!(world.requests(), before);
    world.ledger.assert_each_once(["a", "b"]);
}

#[tokio::test]
async fn a_duplicate_of_what_another_process_did_costs_one() {
    let world = World::new();
    world.invoke(vec![ok("a")]).await;
    let engine = world.engine();
    let before = world.requests();
    for _ in 0..3 {
        assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["replayed"]);
    }
    assert_eq!(world.requests(), before + 1);
}

#[tokio::test]
async fn clones_share_and_other_engines_do_not() {
    let world = World::new();
    let engine = world.engine();
    world.invoke_by(&engine.clone(), vec![ok("a")]).await;
    let before = world.requests();
    world.invoke_by(&engine.clone(), vec![ok("a")]).await;
    assert_eq!(world.requests(), before);
    world.invoke_by(&world.engine(), vec![ok("a")]).await;
    assert_eq!(world.requests(), before + 1);
}

#[tokio::test]
async fn memory_ends_after_a_minute_or_when_the_user_says() {
    for (cache, lasts) in
        [(Cache::default(), 60 * SECOND), (Cache::new().age(5 * SECOND), 5 * SECOND)]
    {
        let world = World::new();
        let engine = world.engine().with_cache(cache);
        world.invoke_by(&engine, vec![ok("a")]).await;
        let before = world.requests();
        world.clock.advance(lasts);
        world.invoke_by(&engine, vec![ok("a")]).await;
        assert_eq!(world.requests(), before);
        world.clock.advance(Duration::from_millis(1));
        assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["replayed"]);
        assert_eq!(world.requests(), before + 1);
    }
}

#[tokio::test]
async fn without_memory_each_duplicate_asks() {
    let world = World::new();
    let engine = world.engine().with_cache(Cache::off());
    world.invoke_by(&engine, vec![ok("a")]).await;
    let before = world.requests();
    for _ in 0..3 {
        assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["replayed"]);
    }
    assert_eq!(world.requests(), before + 3);
}

#[tokio::test]
async fn memory_ends_with_the_retention() {
    let mut world = World::new();
    world.policy.retention = 10 * SECOND;
    let engine = world.engine();
    world.invoke_by(&engine, vec![ok("a")]).await;
    world.clock.advance(10 * SECOND);
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["replayed"]);
    // For the allowance of one second it is the store's word that counts.
    world.clock.advance(Duration::from_millis(1));
    let before = world.requests();
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["replayed"]);
    assert_eq!(world.requests(), before + 1);
    world.clock.advance(SECOND);
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["executed"]);
    assert_eq!(world.ledger.executed("a"), 2);
}

#[tokio::test]
async fn another_fingerprint_is_a_mismatch_from_memory_too() {
    let world = World::new();
    let engine = world.engine();
    world.invoke_by(&engine, vec![ok("a").fingerprint("5")]).await;
    let before = world.requests();
    let again = vec![ok("a").fingerprint("6"), ok("a").fingerprint("5")];
    assert_eq!(labels(&world.invoke_by(&engine, again).await), ["mismatch", "replayed"]);
    assert_eq!(world.requests(), before);
}

#[tokio::test]
async fn only_completed_keys_are_remembered() {
    let mut world = World::new();
    world.policy.on_permanent_failure = OnPermanentFailure::Acknowledge;
    let engine = world.engine();
    let never = rec("b", |_, _| async { Err(Failure::permanent("never")) });
    world.invoke_by(&engine, vec![failing("a"), never]).await;
    let before = world.requests();
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["executed"]);
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("b")]).await), ["permanently_failed"]);
    assert!(world.requests() > before);
    // An operator lets it be processed after all: no process stands in the way.
    remove(&world, "b").await;
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("b")]).await), ["executed"]);
}

#[tokio::test]
async fn a_record_that_an_operator_deletes_is_remembered_for_a_minute() {
    let world = World::new();
    let engine = world.engine();
    world.invoke_by(&engine, vec![ok("a")]).await;
    remove(&world, "a").await;
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["replayed"]);
    assert_eq!(labels(&world.invoke(vec![ok("a")]).await), ["executed"], "by a fresh process");
    remove(&world, "a").await;
    world.clock.advance(60 * SECOND + Duration::from_millis(1));
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["executed"]);
}

#[tokio::test]
async fn an_ordered_group_is_answered_at_once() {
    let world = World::new();
    let engine = world.engine();
    let batch = || ["a", "b", "c", "d"].map(|label| ok(label).group("g"));
    world.clock.drive(world.invoke_by(&engine, batch().into())).await;
    let before = world.requests();
    let mut again: Vec<_> = batch().into();
    again.push(ok("e").group("g"));
    let outcomes = world.clock.drive(world.invoke_by(&engine, again)).await;
    assert_eq!(labels(&outcomes), ["replayed", "replayed", "replayed", "replayed", "executed"]);
    assert_eq!(world.requests(), before + 2, "a claim and a completion, for the last");
    assert_eq!(world.clock.now(), START);
}

#[tokio::test]
async fn while_the_store_is_away_what_is_remembered_is_answered() {
    let world = World::new();
    let engine = world.engine();
    world.invoke_by(&engine, vec![ok("a")]).await;
    world.store.outage();
    let outcomes = world.clock.drive(world.invoke_by(&engine, vec![ok("a"), ok("b")])).await;
    assert_eq!(labels(&outcomes), ["replayed", "unavailable"]);
}

/// Deletes a settled record, as an operator does.
async fn remove(world: &World, label: &str) {
    let record = world.stored(label).await.unwrap();
    assert_ne!(record.status, Status::InProgress);
    let key: Key = key(label);
    let write = Write { key, guard: Guard::Unchanged(RecordVersion::of(&record)), record: None };
    world.store.inner().write(&[write], START).await;
    assert!(world.stored(label).await.is_none());
}
