//! Keys of another application are refused: those in the store, in the cache, and those that another
//! invocation holds.

use std::time::Duration;

use lambda_idempotency_core::{
    outcome::Outcome,
    record::{IdempotencyRecord, Status},
};
use lambda_idempotency_engine::batch::Engine;

use crate::support::{START, World, key, labels, ok, rec};

fn of(engine: &Engine, name: &str) -> Engine {
    engine.clone().with_application(Some(name.into()))
}

#[tokio::test]
async fn copies_in_a_batch_are_refused_together() {
    let world = World::without_latency();
    world.invoke_by(&of(&world.engine(), "billing"), vec![ok("a")]).await;
    let shipping = of(&world.engine(), "shipping");
    let outcomes = world.invoke_by(&shipping, vec![ok("a"), ok("b"), ok("a")]).await;
    assert_eq!(labels(&outcomes), ["foreign", "executed", "foreign"]);
    assert!(!outcomes[0].is_acknowledged());
    let problem = outcomes[0].problem().unwrap();
    for part in ["`billing`", "`shipping`", "`op`"] {
        assert!(problem.contains(part), "{part}: {problem}");
    }
    world.ledger.assert_each_once(["a", "b"]);
}

/// Clones of an engine share a cache.
#[tokio::test]
async fn a_cached_completion_does_not_answer_another_application() {
    let world = World::without_latency();
    let engine = world.engine();
    world.invoke_by(&of(&engine, "billing"), vec![ok("a")]).await;
    let before = world.requests();
    let outcomes = world.invoke_by(&of(&engine, "shipping"), vec![ok("a")]).await;
    assert_eq!(labels(&outcomes), ["foreign"]);
    assert_eq!(
        labels(&world.invoke_by(&of(&engine, "billing"), vec![ok("a")]).await),
        ["replayed"]
    );
    assert_eq!(world.requests(), before, "no request is made");
}

/// A worker that lost its key to another application does not use that application's result.
#[tokio::test]
async fn a_completion_that_finds_another_application_is_refused() {
    let world = World::without_latency();
    let overtaken = rec("a", |world, _| async move {
        let mut record =
            IdempotencyRecord::new(Status::Completed, START.plus(Duration::from_secs(3600)));
        record.application = Some("billing".into());
        record.result = Some("\"billed\"".into());
        world.store.inner().insert(key("a"), record);
        Ok(())
    });
    let outcomes = world.invoke_by(&of(&world.engine(), "shipping"), vec![overtaken]).await;
    assert!(matches!(&outcomes[0], Outcome::Foreign(foreign) if &*foreign.theirs == "billing"));
    let stored = world.stored("a").await.unwrap();
    assert_eq!(stored.result.as_deref(), Some("\"billed\""), "the record is unchanged");
}
