//! The user can limit and switch off the cache of completed keys.

use lambda_idempotency::{Operation, source::Sqs, store::Cache};

use crate::support::{World, batch, order};

/// The calls of the store for a duplicate of a record that this process has just completed.
async fn calls_for_a_duplicate(world: &World, cache: Cache) -> usize {
    let idempotency = world.idempotency().with_cache(cache);
    let function =
        idempotency.on(Sqs::new(), &Operation::new("a").key("id"), world.handler()).unwrap();
    let calls = || world.store.write_calls() + world.store.read_calls();
    for message in ["m-1", "m-2"] {
        world.store.forget();
        assert!(world.returned(&function, &batch([order(message, "a", "")])).await.is_empty());
    }
    world.ledger.assert_once("a");
    calls()
}

#[tokio::test]
async fn with_the_cache_off_a_duplicate_calls_the_store() {
    assert_eq!(calls_for_a_duplicate(&World::new(), Cache::off()).await, 1);
    assert_eq!(calls_for_a_duplicate(&World::new(), Cache::new()).await, 0);
}
