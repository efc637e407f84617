//! The deliveries whose allocations are counted.

use std::alloc::System;

use futures_util::FutureExt as _;
use lambda_idempotency_core::{clock::Timestamp, memory::MemoryStore, policy::Policy};
use lambda_idempotency_engine::{
    batch::{Batch, Delivery, Engine, Job, Pace, Returned, Work},
    call::RecordId,
    completed::Cache,
    delivered::Delivered,
};
use lambda_idempotency_keys::Key;
use lambda_idempotency_testkit::clock::ManualClock;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What is delivered.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// What the process remembers.
    cache: fn() -> Cache,
    /// How often all records are delivered; the last time counts.
    times: usize,
    /// By which key a record goes.
    key: fn(usize) -> usize,
}

pub(crate) const CASES: [Case; 4] = [
    Case { name: "fresh", cache: Cache::off, times: 1, key: |n| n },
    Case { name: "copy", cache: Cache::off, times: 1, key: |_| 0 },
    Case { name: "duplicate, stored", cache: Cache::off, times: 2, key: |n| n },
    Case { name: "duplicate, remembered", cache: Cache::new, times: 2, key: |n| n },
];

/// The sizes of the batches.
pub(crate) const SIZES: [usize; 4] = [1, 10, 100, 1000];

impl Case {
    /// Delivers a batch of this many records, and counts the allocations of the engine.
    pub(crate) fn count(&self, records: usize) -> usize {
        // While this clock stands still, a call of the store takes no time, so the number of calls is always the same.
        let engine = Engine::new(MemoryStore::new())
            .with_clock(ManualClock::new(Timestamp::from_secs(1_800_000_000)))
            .with_cache((self.cache)());
        for _ in 1..self.times {
            deliver(&engine, records, self.key);
        }
        deliver(&engine, records, self.key)
    }
}

fn deliver(engine: &Engine, records: usize, key: fn(usize) -> usize) -> usize {
    let deliveries = (0..records).map(|n| delivery(n, key(n))).collect();
    let (policy, pace) = (Policy::default(), Pace::default());
    let region = Region::new(ALLOCATOR);
    let batch = Batch::for_operation("op", &policy, &pace).with(deliveries);
    let outcomes = engine.run(batch).now_or_never();
    let counted = region.change();
    assert!(outcomes.is_some_and(|all| all.iter().all(|outcome| outcome.is_acknowledged())));
    counted.allocations + counted.reallocations
}

fn delivery<'d>(n: usize, key: usize) -> Delivery<'d> {
    let job: Job<'d> = Box::new(|_| Box::pin(async { Ok(Returned::Nothing) }));
    Delivery {
        record: RecordId::new("bench", n.to_string()),
        delivered: Delivered::default(),
        group: None,
        receives: 0,
        lets_pass: false,
        work: Work::Keyed {
            key: Key::from_text(format!("op#{key}")),
            fingerprint: None,
            payload: "{}",
            job,
        },
    }
}
