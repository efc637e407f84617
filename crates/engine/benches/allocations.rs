//! How many allocations the engine makes for a record: one that is fresh, a copy in the same batch,
//! a duplicate that the store knows, and one that this process remembers.
//!
//! ```console
//! $ cargo bench -p lambda-idempotency-engine --bench allocations
//! ```
//!
//! The counts are exact, and the same on every run but for the maps of the store in memory, whose
//! growth is in them. What the records are made of (keys, ids, jobs) is made before.

#![allow(missing_docs, reason = "a benchmark")]

use std::alloc::System;

use futures_util::FutureExt as _;
use lambda_idempotency_core::{memory::MemoryStore, policy::Policy};
use lambda_idempotency_engine::{
    batch::{AfterFailure, Batch, Delivery, Engine, Job, Pace, Returned, Work},
    call::RecordId,
    delivered::Delivered,
    process::Cache,
};
use lambda_idempotency_keys::Key;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What is delivered, in turn, and by which key a record goes.
type Case = (&'static str, fn() -> Cache, usize, fn(usize) -> usize);

const CASES: [Case; 4] = [
    ("fresh", Cache::off, 1, |n| n),
    ("copy", Cache::off, 1, |_| 0),
    ("duplicate, stored", Cache::off, 2, |n| n),
    ("duplicate, remembered", Cache::new, 2, |n| n),
];

fn main() {
    println!("allocations (bytes) per record, in a batch of");
    println!("{:<22}{:>15}{:>15}{:>15}{:>15}", "", 1, 10, 100, 1000);
    for (name, cache, times, key) in CASES {
        let counts = [1, 10, 100, 1000].map(|records| {
            let engine = Engine::new(MemoryStore::new()).with_cache(cache());
            let mut last = String::new();
            for _ in 0..times {
                last = count(&engine, records, key);
            }
            last
        });
        println!("{name:<22}{}", counts.map(|count| format!("{count:>15}")).concat());
    }
}

fn count(engine: &Engine, records: usize, key: fn(usize) -> usize) -> String {
    let deliveries = (0..records).map(|n| delivery(n, key(n))).collect();
    let (policy, pace) = (Policy::default(), Pace::default());
    let after_failure = AfterFailure::Group;
    let (policy, pace) = (&policy, &pace);
    let region = Region::new(ALLOCATOR);
    let batch = Batch {
        operation: "op",
        deliveries,
        after_failure,
        policy,
        request_id: None,
        invocation_deadline: None,
        pace,
    };
    let outcomes = engine.run(batch).now_or_never();
    let counted = region.change();
    assert!(outcomes.is_some_and(|all| all.iter().all(|outcome| outcome.is_acknowledged())));
    let allocations = counted.allocations + counted.reallocations;
    // `bytes_allocated` holds what reallocation added.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let each = |count: usize| count as f64 / records as f64;
    format!("{:.1} ({:.0})", each(allocations), each(counted.bytes_allocated))
}

fn delivery<'d>(n: usize, key: usize) -> Delivery<'d> {
    let job: Job<'d> = Box::new(|_| Box::pin(async { Ok(Returned::Nothing) }));
    Delivery {
        record: RecordId::new("bench", n.to_string()),
        delivered: Delivered::default(),
        group: None,
        receives: 0,
        divert: None,
        work: Work::Keyed {
            key: Key::from_text(format!("op#{key}")),
            fingerprint: None,
            payload: "{}",
            job,
        },
    }
}
