//! Batches as large as SQS and Kinesis make them: each record costs what one record costs.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use lambda_idempotency_core::{
    batch::{AfterFailure, Batch, Delivery, Engine, Job, Pace, Returned, Work},
    call::RecordId,
    failure::Failure,
    key::Key,
    memory::MemoryStore,
    observe::Silent,
    policy::Policy,
    process::Cache,
};

struct Shape {
    name: &'static str,
    key: fn(usize) -> usize,
    group: fn(usize) -> Option<usize>,
    payload: fn(usize) -> usize,
    fails: fn(usize) -> bool,
}

async fn takes(shape: &Shape, records: usize) -> Duration {
    let payloads: Vec<String> =
        (0..records).map(|n| format!("{}{}", "x".repeat(200), (shape.payload)(n))).collect();
    let deliveries = (0..records).map(|n| {
        let fails = (shape.fails)(n);
        let job: Job<'_> = Box::new(move |_| {
            Box::pin(async move {
                tokio::task::yield_now().await;
                if fails { Err(Failure::retry("no luck")) } else { Ok(Returned::Nothing) }
            })
        });
        Delivery {
            record: RecordId::new("test", n.to_string()),
            group: (shape.group)(n).map(|group| Arc::from(group.to_string())),
            priority: 0,
            work: Work::Keyed {
                key: Key::from_text(format!("op#{}", (shape.key)(n))),
                fingerprint: None,
                payload: payloads.get(n).map_or("", String::as_str),
                job,
            },
        }
    });
    let engine = Engine::new(MemoryStore::new()).with_observer(Silent).with_cache(Cache::off());
    let (policy, pace) = (Policy::default(), Pace::default());
    let deliveries: Vec<_> = deliveries.collect();
    let begun = Instant::now();
    let batch = Batch {
        operation: "op",
        deliveries,
        after_failure: AfterFailure::Group,
        policy: &policy,
        deadline: None,
        pace: &pace,
    };
    assert_eq!(engine.run(batch).await.len(), records);
    begun.elapsed()
}

#[tokio::test]
async fn a_large_batch_takes_as_long_as_its_records() {
    let shapes = [
        Shape { name: "apart", key: |n| n, group: |_| None, payload: |n| n, fails: |_| false },
        Shape { name: "copies", key: |_| 0, group: |_| None, payload: |_| 0, fails: |_| false },
        Shape { name: "one key", key: |_| 0, group: |_| None, payload: |n| n, fails: |_| false },
        Shape {
            name: "one key fails",
            key: |_| 0,
            group: |_| None,
            payload: |n| n,
            fails: |_| true,
        },
        Shape {
            name: "one group",
            key: |n| n,
            group: |_| Some(0),
            payload: |n| n,
            fails: |_| false,
        },
        Shape {
            name: "one group fails",
            key: |n| n,
            group: |_| Some(0),
            payload: |n| n,
            fails: |n| n == 0,
        },
        Shape {
            name: "all fail",
            key: |n| n,
            group: |n| Some(n % 10),
            payload: |n| n,
            fails: |_| true,
        },
        Shape {
            name: "pairs",
            key: |n| n / 2,
            group: |n| Some(n % 100),
            payload: |_| 0,
            fails: |_| false,
        },
    ];
    for shape in shapes {
        // Ten times as many records; what is quadratic takes a hundred times as long. Three tries,
        // for a machine that has others to serve.
        let mut tries = Vec::new();
        for _ in 0..3 {
            let (few, many) = (takes(&shape, 1000).await, takes(&shape, 10_000).await);
            tries.push((few, many));
            if many < few * 40 {
                break;
            }
        }
        println!("{}: {tries:?}", shape.name);
        assert!(tries.iter().any(|(few, many)| *many < *few * 40), "{}: {tries:?}", shape.name);
    }
}
