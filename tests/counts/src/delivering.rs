//! The engine from its deliveries to their outcomes, over the store in memory: planning, claims, handlers that do
//! nothing, settlements.

use futures_util::FutureExt as _;
use lambda_idempotency_core::memory::MemoryStore;
use lambda_idempotency_core::policy::Policy;
use lambda_idempotency_engine::batch::{
    AfterFailure, Batch, Delivery, Engine, Job, Pace, Returned, Work as Wanted,
};
use lambda_idempotency_engine::call::RecordId;
use lambda_idempotency_engine::delivered::Delivered;
use lambda_idempotency_engine::process::Cache;
use lambda_idempotency_keys::Key;

use crate::cases::{Case, Work};
use crate::still::Still;

/// What is delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    New,
    /// All have one key.
    Copies,
    /// The store has them.
    Stored,
    /// The process remembers them.
    Remembered,
}

pub(crate) fn cases() -> impl Iterator<Item = Case> {
    let kinds = [
        (Kind::New, "new"),
        (Kind::Copies, "copies"),
        (Kind::Stored, "duplicates in the store"),
        (Kind::Remembered, "duplicates in memory"),
    ];
    kinds.into_iter().flat_map(|(kind, name)| {
        [1, 10, 100]
            .map(|size| Case::new(format!("engine: {size} {name}"), move || prepare(kind, size)))
    })
}

fn prepare(kind: Kind, size: usize) -> Work {
    let cache = if kind == Kind::Remembered { Cache::new() } else { Cache::off() };
    let engine = Engine::new(MemoryStore::new()).with_clock(Still).with_cache(cache);
    // A batch borrows what it needs for longer than it runs. The process ends soon.
    let engine: &Engine = Box::leak(Box::new(engine));
    let key = move |n: usize| if kind == Kind::Copies { 0 } else { n };
    if matches!(kind, Kind::Stored | Kind::Remembered) {
        deliver(engine, deliveries(size, key));
    }
    let deliveries = deliveries(size, key);
    Box::new(move || deliver(engine, deliveries))
}

fn deliver(engine: &'static Engine, deliveries: Vec<Delivery<'static>>) {
    let (policy, pace) = &*Box::leak(Box::new((Policy::default(), Pace::default())));
    let batch = Batch {
        operation: "place-order",
        deliveries,
        after_failure: AfterFailure::Group,
        policy,
        request_id: None,
        invocation_deadline: None,
        pace,
    };
    let outcomes = engine.run(batch).now_or_never();
    assert!(outcomes.is_some_and(|all| all.iter().all(|outcome| outcome.is_acknowledged())));
}

fn deliveries(size: usize, key: impl Fn(usize) -> usize) -> Vec<Delivery<'static>> {
    let delivery = |n| {
        let job: Job<'static> = Box::new(|_| Box::pin(async { Ok(Returned::Nothing) }));
        Delivery {
            record: RecordId::new("sqs", format!("m-{n}")),
            delivered: Delivered::default(),
            group: None,
            receives: 0,
            divert: None,
            work: Wanted::Keyed {
                key: Key::from_text(format!("place-order#{}", key(n))),
                fingerprint: None,
                payload: "{}",
                job,
            },
        }
    };
    (0..size).map(delivery).collect()
}
