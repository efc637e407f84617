//! Effects that take long in a store that stops them at the deadline of its call.

use std::time::Duration;

use lambda_idempotency_core::{
    capabilities::Capabilities,
    clock::{BoxFuture, Clock, Timestamp},
    effects::{RefusalReason, RefusedEffect},
    key::Key,
    memory::MemoryStore,
    outcome::Outcome,
    record::{IdempotencyRecord, Status},
    store::{Store, StoreError, Verdict, Write},
};
use lambda_idempotency_testkit::{clock::ManualClock, faults::FaultyStore};

use super::{SECOND, collecting, world};
use crate::support::World;

/// The store of the world, where effects take so long.
struct Slow {
    inner: FaultyStore<MemoryStore>,
    clock: ManualClock,
    takes: Duration,
}

impl Store for Slow {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            self.clock.sleep(Duration::from_millis(5)).await;
            if writes.iter().all(|write| write.effects.is_none()) {
                return self.inner.write(writes, call_deadline).await;
            }
            let left = call_deadline.since(self.clock.now());
            self.clock.sleep(self.takes.min(left)).await;
            if self.takes <= left {
                return self.inner.write(writes, call_deadline).await;
            }
            let refused = RefusedEffect::new(RefusalReason::TooSlow).at(0);
            writes.iter().map(|_| Verdict::EffectRefused(refused.clone())).collect()
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.inner.read(keys, call_deadline)
    }
}

async fn deliver(world: &World, takes: Duration) -> Outcome {
    let (inner, clock) = (world.store.clone(), world.clock.clone());
    let store = Slow { inner, clock, takes };
    world.clock.drive(world.invoke_on(store, vec![collecting("a")])).await.remove(0)
}

#[tokio::test]
async fn a_slow_effect_gets_a_longer_call_and_is_committed() {
    let mut world = world();
    world.timeout = Some(60 * SECOND);
    let outcome = deliver(&world, 15 * SECOND).await;
    assert!(matches!(outcome, Outcome::Executed { .. }), "{outcome:?}");
    assert_eq!(world.effects("a"), 1);
}

#[tokio::test]
async fn an_effect_for_which_no_call_has_time_is_a_failed_attempt_and_the_last_one_is_permanent() {
    let mut world = world();
    world.policy.max_failed_attempts = Some(2);
    for (attempt, last) in [(1, false), (2, true)] {
        let outcome = deliver(&world, 60 * SECOND).await;
        let Outcome::Failed { failure, failed_attempts, permanent } = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!((failed_attempts, permanent), (attempt, last));
        assert!(failure.message().contains("effect 1 takes longer"), "{}", failure.message());
    }
    let stored = world.stored("a").await.unwrap();
    assert_eq!((stored.status, stored.lost_attempts), (Status::PermanentlyFailed, 0));
    assert_eq!(world.effects("a"), 0);
}
