//! Duplicates that a warm process answers from its cache.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::Clock,
    failure::Failure,
    record::Status,
    store::{Guard, RecordVersion, Store as _, Write},
};
use lambda_idempotency_engine::completed::Cache;
use lambda_idempotency_keys::Key;

use crate::support::{START, World, failing, key, labels, ok, rec};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_duplicate_of_work_of_this_process_costs_no_request() {
    let world = World::without_latency();
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
async fn a_duplicate_of_work_of_another_process_costs_one_request() {
    let world = World::without_latency();
    world.invoke(vec![ok("a")]).await;
    let engine = world.engine();
    let before = world.requests();
    for _ in 0..3 {
        assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["replayed"]);
    }
    assert_eq!(world.requests(), before + 1);
}

#[tokio::test]
async fn cached_completions_expire_after_a_minute_or_the_configured_age() {
    for (cache, lasts) in
        [(Cache::default(), 60 * SECOND), (Cache::new().age(5 * SECOND), 5 * SECOND)]
    {
        let world = World::without_latency();
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
async fn cached_completions_expire_with_the_retention() {
    let mut world = World::without_latency();
    world.policy.retention = 10 * SECOND;
    let engine = world.engine();
    world.invoke_by(&engine, vec![ok("a")]).await;
    world.clock.advance(10 * SECOND);
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["replayed"]);
    // For the clock skew of one second only the store decides.
    world.clock.advance(Duration::from_millis(1));
    let before = world.requests();
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["replayed"]);
    assert_eq!(world.requests(), before + 1);
    world.clock.advance(SECOND);
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["executed"]);
    assert_eq!(world.ledger.executed("a"), 2);
}

#[tokio::test]
async fn another_fingerprint_is_a_mismatch_from_the_cache_too() {
    let world = World::without_latency();
    let engine = world.engine();
    world.invoke_by(&engine, vec![ok("a").fingerprint("5")]).await;
    let before = world.requests();
    let again = vec![ok("a").fingerprint("6"), ok("a").fingerprint("5")];
    assert_eq!(labels(&world.invoke_by(&engine, again).await), ["mismatch", "replayed"]);
    assert_eq!(world.requests(), before);
}

#[tokio::test]
async fn only_completed_keys_are_cached() {
    let world = World::without_latency();
    let engine = world.engine();
    let never = rec("b", |_, _| async { Err(Failure::permanent("never")) });
    world.invoke_by(&engine, vec![failing("a"), never]).await;
    let before = world.requests();
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["executed"]);
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("b")]).await), ["permanently_failed"]);
    assert!(world.requests() > before);
    // An operator deletes the record, so that it is processed after all. No cache prevents that.
    remove(&world, "b").await;
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("b")]).await), ["executed"]);
}

#[tokio::test]
async fn a_record_that_an_operator_deletes_stays_cached_for_a_minute() {
    let world = World::without_latency();
    let engine = world.engine();
    world.invoke_by(&engine, vec![ok("a")]).await;
    remove(&world, "a").await;
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["replayed"]);
    assert_eq!(labels(&world.invoke(vec![ok("a")]).await), ["executed"], "by a new process");
    remove(&world, "a").await;
    world.clock.advance(60 * SECOND + Duration::from_millis(1));
    assert_eq!(labels(&world.invoke_by(&engine, vec![ok("a")]).await), ["executed"]);
}

#[tokio::test]
async fn an_ordered_group_is_answered_at_once() {
    let world = World::without_latency();
    let engine = world.engine();
    let batch = || ["a", "b", "c", "d"].map(|label| ok(label).group("g"));
    world.clock.drive(world.invoke_by(&engine, batch().into())).await;
    let before = world.requests();
    let mut again: Vec<_> = batch().into();
    again.push(ok("e").group("g"));
    let outcomes = world.clock.drive(world.invoke_by(&engine, again)).await;
    assert_eq!(labels(&outcomes), ["replayed", "replayed", "replayed", "replayed", "executed"]);
    assert_eq!(world.requests(), before + 2, "a claim and a completion of the last record");
    assert_eq!(world.clock.now(), START);
}

#[tokio::test]
async fn during_an_outage_cached_completions_are_replayed() {
    let world = World::without_latency();
    let engine = world.engine();
    world.invoke_by(&engine, vec![ok("a")]).await;
    world.store.outage();
    let outcomes = world.clock.drive(world.invoke_by(&engine, vec![ok("a"), ok("b")])).await;
    assert_eq!(labels(&outcomes), ["replayed", "unavailable"]);
}

/// Deletes a completed or permanently failed record, as an operator does.
async fn remove(world: &World, label: &str) {
    let record = world.stored(label).await.unwrap();
    assert_ne!(record.status, Status::InProgress);
    let key: Key = key(label);
    let write = Write::new(key, Guard::Unchanged(RecordVersion::of(&record)), None);
    world.store.inner().write(&[write], START).await;
    assert!(world.stored(label).await.is_none());
}
