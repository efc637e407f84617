//! Batches as large as those of SQS and Kinesis: the time for a record does not grow with the batch.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    failure::Failure,
    memory::MemoryStore,
    policy::{OnConflict, Policy},
    record::{IdempotencyRecord, Owner, Status},
};
use lambda_idempotency_engine::{
    batch::{Batch, Delivery, Engine, Job, Pace, Returned, Work},
    call::RecordId,
    completed::Cache,
    delivered::Delivered,
};
use lambda_idempotency_keys::Key;
use lambda_idempotency_testkit::clock::ManualClock;

use crate::support::START;

#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    /// Whether another worker holds the key for the first 3 seconds.
    busy: fn(usize) -> bool,
    key: fn(usize) -> usize,
    group: fn(usize) -> Option<usize>,
    payload: fn(usize) -> usize,
    fails: fn(usize) -> bool,
}

fn key(n: usize) -> Key {
    Key::from_text(format!("op#{n}"))
}

/// How long this thread has occupied a processor, in nanoseconds. What other processes do meanwhile does not count.
fn occupied() -> u64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    times.split(' ').next().unwrap().parse().unwrap()
}

async fn run(shape: &Shape, records: usize) {
    let payloads: Vec<String> =
        (0..records).map(|n| format!("{}{}", "x".repeat(200), (shape.payload)(n))).collect();
    let deliveries = (0..records).map(|n| {
        let fails = (shape.fails)(n);
        let job: Job<'_> = Box::new(move |_| {
            Box::pin(async move {
                tokio::task::yield_now().await;
                if fails { Err(Failure::transient("no luck")) } else { Ok(Returned::Nothing) }
            })
        });
        Delivery {
            record: RecordId::new("test", n.to_string()),
            delivered: Delivered::default(),
            group: (shape.group)(n).map(|group| Arc::from(group.to_string())),
            receives: 0,
            lets_pass: false,
            work: Work::Keyed {
                key: key((shape.key)(n)),
                fingerprint: None,
                payload: payloads.get(n).map_or("", String::as_str),
                job,
            },
        }
    });
    let store = MemoryStore::new();
    for n in (0..records).filter(|n| (shape.busy)(*n)) {
        let mut record =
            IdempotencyRecord::new(Status::InProgress, START.plus(Duration::from_mins(1)));
        record.owner = Some(Owner::from_bits(1));
        record.lease_until = Some(START.plus(Duration::from_secs(3)));
        store.insert(key(n), record);
    }
    let clock = ManualClock::new(START);
    let engine = Engine::new(store).with_cache(Cache::off());
    let engine = engine.with_clock(clock.clone());
    let (mut policy, pace) = (Policy::default(), Pace::default());
    policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
    let batch = Batch::for_operation("op", &policy, &pace).with(deliveries.collect());
    assert_eq!(clock.drive(engine.run(batch)).await.len(), records);
}

#[tokio::test]
async fn a_large_batch_takes_as_long_as_its_records() {
    let apart = Shape {
        name: "apart",
        busy: |_| false,
        key: |n| n,
        group: |_| None,
        payload: |n| n,
        fails: |_| false,
    };
    let shapes = [
        apart,
        Shape { name: "busy", busy: |_| true, ..apart },
        Shape { name: "some busy", busy: |n| n % 2 == 0, ..apart },
        Shape { name: "copies", key: |_| 0, payload: |_| 0, ..apart },
        Shape { name: "one key", key: |_| 0, ..apart },
        Shape { name: "one key fails", key: |_| 0, fails: |_| true, ..apart },
        Shape { name: "one group", group: |_| Some(0), ..apart },
        Shape { name: "one group fails", group: |_| Some(0), fails: |n| n == 0, ..apart },
        Shape { name: "all fail", group: |n| Some(n % 10), fails: |_| true, ..apart },
        Shape { name: "pairs", key: |n| n / 2, group: |n| Some(n % 100), payload: |_| 0, ..apart },
    ];
    for shape in shapes {
        // Ten small batches and one that is as large as all of them: with quadratic work it would take ten times as long.
        // Three tries, because other processes may use the processor's caches.
        let mut tries = Vec::new();
        for _ in 0..3 {
            let begun = occupied();
            for _ in 0..10 {
                run(&shape, 1000).await;
            }
            let between = occupied();
            run(&shape, 10_000).await;
            let (small, large) = (between - begun, occupied() - between);
            tries.push((small, large));
            if large < small * 4 {
                break;
            }
        }
        println!("{}: {tries:?}", shape.name);
        assert!(
            tries.iter().any(|(small, large)| *large < *small * 4),
            "{}: {tries:?}",
            shape.name
        );
    }
}
