//! A store that panics. That is its author's mistake, and costs the records of that call, not the batch.

#![allow(clippy::panic, reason = "what the store does")]

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    record::{IdempotencyRecord, Status},
    store::{Capabilities, Store, StoreError, Verdict, Write},
};
use lambda_idempotency_engine::batch::Engine;
use lambda_idempotency_keys::Key;

use crate::support::{World, failing, key, labels, ok, slow};

/// When a call panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// While it is made.
    Called,
    /// While it is polled.
    Polled,
    /// While it is dropped, after it has panicked.
    Dropped,
}

/// Panics at the calls that `panics` chooses.
struct Panicking<P> {
    world: World,
    when: When,
    panics: P,
}

/// Panics while it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("the store panics once more");
        }
    }
}

impl<P> Panicking<P> {
    fn fails<'a, T: Send + 'a>(&self, work: BoxFuture<'a, T>) -> BoxFuture<'a, T> {
        let when = self.when;
        assert_ne!(when, When::Called, "the store panics");
        let bomb = (when == When::Dropped).then_some(Bomb);
        Box::pin(async move {
            if when == When::Polled {
                panic!("the store panics");
            }
            work.await;
            let _bomb = bomb;
            panic!("the store panics")
        })
    }
}

impl<P: Fn(&[Key], Option<&[Write]>) -> bool + Send + Sync + 'static> Store for Panicking<P> {
    fn capabilities(&self) -> Capabilities {
        self.world.store.capabilities()
    }

    fn write<'a>(&'a self, writes: &'a [Write], until: Timestamp) -> BoxFuture<'a, Vec<Verdict>> {
        let keys: Vec<Key> = writes.iter().map(|write| write.key.clone()).collect();
        let work = self.world.store.write(writes, until);
        if (self.panics)(&keys, Some(writes)) { self.fails(work) } else { work }
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        until: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        let work = self.world.store.read(keys, until);
        if (self.panics)(keys, None) { self.fails(work) } else { work }
    }
}

const ALL: [When; 3] = [When::Called, When::Polled, When::Dropped];

fn is_completion(write: &Write) -> bool {
    write.record.as_ref().is_some_and(|record| record.status == Status::Completed)
}

#[tokio::test]
async fn a_panic_at_a_completion_costs_no_other_record() {
    for when in ALL {
        let world = World::yielding();
        let panics = |keys: &[Key], writes: Option<&[Write]>| {
            keys.contains(&key("a")) && writes.is_some_and(|all| all.iter().any(is_completion))
        };
        let store = Panicking { world: world.clone(), when, panics };
        let batch = vec![ok("a"), slow("b", Duration::from_secs(1))];
        let outcomes = labels(&world.clock.drive(world.invoke_on(store, batch)).await);
        // It was written before the panic, or could not be: the log says so, and the work was done.
        assert_eq!(outcomes, ["completion_lost", "executed"], "{when:?}");
        world.ledger.assert_each_once(["a", "b"]);
    }
}

#[tokio::test]
async fn a_panic_at_a_claim_returns_its_records() {
    for when in ALL {
        let world = World::yielding();
        let panics = |_: &[Key], writes: Option<&[Write]>| {
            writes.is_some_and(|all| all.iter().any(|write| !is_completion(write)))
        };
        let store = Panicking { world: world.clone(), when, panics };
        let batch = vec![ok("a"), ok("b").unprotected()];
        let outcomes = labels(&world.clock.drive(world.invoke_on(store, batch)).await);
        assert_eq!(outcomes, ["unavailable", "unprotected"], "{when:?}");
        world.ledger.assert_never("a");
    }
}

#[tokio::test]
async fn a_panic_at_a_read_is_an_error_of_the_store() {
    for when in ALL {
        let world = World::yielding();
        assert_eq!(world.deliver(vec![failing("a")]).await, ["failed"]);
        let panics = |_: &[Key], writes: Option<&[Write]>| writes.is_none();
        let store = Panicking { world: world.clone(), when, panics };
        let engine = Engine::new(store).with_clock(world.clock.clone());
        let engine = Arc::new(engine);
        let error = engine.look_up(&key("a"), &world.policy).await.unwrap_err();
        assert!(error.is_transient() && error.to_string().contains("panicked"), "{error}");
    }
}
