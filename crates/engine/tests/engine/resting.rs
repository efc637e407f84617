//! A batch that is polled while nothing has happened: the request of a call wakes it several times.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use lambda_idempotency_core::clock::{BoxFuture, Clock, Timestamp};
use lambda_idempotency_engine::batch::Engine;
use lambda_idempotency_testkit::clock::ManualClock;

use crate::support::{World, slow};

/// Counts how often the time is asked for.
#[derive(Clone)]
struct Counting {
    clock: ManualClock,
    asked: Arc<AtomicUsize>,
}

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }
}

/// The machine is asked with the time of each question, so these are counted.
#[tokio::test]
async fn a_batch_that_is_polled_while_nothing_has_happened_does_not_ask_its_machine() {
    const POLLS: usize = 10;
    let world = World::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let clock = Counting { clock: world.clock.clone(), asked: Arc::clone(&asked) };
    let engine = Engine::new(world.store.clone()).with_clock(clock);
    let mut batch = pin!(world.invoke_by(&engine, vec![slow("a", Duration::from_secs(5))]));
    let mut poll = || batch.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    asked.store(0, Ordering::Relaxed);
    for _ in 0..POLLS {
        assert!(poll().is_pending());
    }
    assert_eq!(
        asked.load(Ordering::Relaxed),
        2 * POLLS,
        "is it time, and when are handlers polled"
    );
    let outcomes = world.clock.drive(batch).await;
    assert!(outcomes.iter().all(|outcome| outcome.is_acknowledged()));
}
