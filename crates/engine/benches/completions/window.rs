//! When each handler returned, when its completion was applied, and what lies between.

use std::{
    hint::black_box,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use lambda_idempotency_core::{
    capabilities::Capabilities,
    clock::{BoxFuture, Timestamp},
    key::Key,
    policy::Policy,
    record::{IdempotencyRecord, Status},
    store::{Store, StoreError, Verdict, Write},
};
use lambda_idempotency_engine::{
    batch::{self, AfterFailure, Batch, Delivery, Engine, Job, Pace, Returned},
    call::RecordId,
    delivered::Delivered,
};

/// The records of a batch, each with its own key.
const RECORDS: usize = 100;
/// How long a handler takes.
const TAKES: Duration = Duration::from_millis(20);

/// What handlers do for [`TAKES`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// They wait, as for an HTTP answer.
    Wait,
    /// They compute, and never return `Pending`.
    Compute,
    /// They compute in `spawn_blocking`, and wait for that.
    ComputeElsewhere,
}

/// The handlers of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handlers {
    pub(crate) work: Work,
    /// The most that run at once.
    pub(crate) concurrency: usize,
}

/// When things happened to one record.
#[derive(Default)]
struct Times {
    returned: OnceLock<Instant>,
    completed: OnceLock<Instant>,
}

/// A store that notes when completions are applied, and how often it is called.
pub(crate) struct Noting<S> {
    store: S,
    times: Arc<[Times]>,
    calls: Arc<AtomicUsize>,
}

impl<S: Store> Store for Noting<S> {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let verdicts = self.store.write(writes, call_deadline).await;
            let now = Instant::now();
            for (write, verdict) in writes.iter().zip(&verdicts) {
                let record = write.record.as_ref();
                let completes = record.is_some_and(|record| record.status == Status::Completed);
                if completes && matches!(verdict, Verdict::Written) {
                    self.times[number(&write.key)].completed.get_or_init(|| now);
                }
            }
            verdicts
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.store.read(keys, call_deadline)
    }
}

fn key(n: usize) -> Key {
    Key::from_text(format!("op#{n}"))
}

fn number(key: &Key) -> usize {
    key.as_str().trim_start_matches("op#").parse().unwrap()
}

/// Processes a batch, and prints a line. `place` puts the store that notes where it is to be.
pub(crate) fn measure<S: Store, P: Store>(
    name: &str,
    handlers: Handlers,
    store: S,
    place: impl FnOnce(Noting<S>) -> P,
) {
    let times: Arc<[Times]> = (0..RECORDS).map(|_| Times::default()).collect();
    let calls = Arc::default();
    let noting = Noting { store, times: Arc::clone(&times), calls: Arc::clone(&calls) };
    let engine = Engine::new(place(noting));
    let mut policy = Policy::default();
    policy.concurrency = handlers.concurrency;
    let (pace, rounds) = (Pace::default(), rounds());
    let batch = Batch {
        operation: "op",
        deliveries: (0..RECORDS)
            .map(|n| delivery(n, handlers.work, rounds, Arc::clone(&times)))
            .collect(),
        after_failure: AfterFailure::Group,
        policy: &policy,
        request_id: None,
        invocation_deadline: None,
        pace: &pace,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let begun = Instant::now();
    let outcomes = runtime.block_on(engine.run(batch));
    let took = begun.elapsed();
    assert!(outcomes.iter().all(|outcome| outcome.is_acknowledged()));
    print(
        &format!("  {name}, {} at once", handlers.concurrency),
        &times,
        calls.load(Ordering::Relaxed),
        took,
    );
}

pub(crate) fn print_head() {
    println!("{RECORDS} records, handlers of {TAKES:?}: from a handler's return to its completion");
    let columns = ["p50, ms", "max, ms", "most", "calls", "batch, ms"];
    println!("{:<34}{}", "", columns.map(|column| format!("{column:>10}")).concat());
}

fn print(name: &str, times: &[Times], calls: usize, took: Duration) {
    let of = |time: &Times| (*time.returned.get().unwrap(), *time.completed.get().unwrap());
    let windows: Vec<_> = times.iter().map(of).collect();
    let mut lengths: Vec<_> = windows.iter().map(|(from, to)| to.duration_since(*from)).collect();
    lengths.sort_unstable();
    let ms = |duration: Duration| duration.as_secs_f64() * 1_000.0;
    // A kill at this instant repeats these effects.
    let open = |at: &Instant| windows.iter().filter(|(from, to)| from <= at && at < to).count();
    let at_once = windows.iter().map(|(from, _)| open(from)).max().unwrap_or_default();
    let (p50, max) = (ms(lengths[RECORDS / 2]), ms(lengths[RECORDS - 1]));
    println!("{name:<34}{p50:>10.2}{max:>10.2}{at_once:>10}{calls:>10}{:>10.0}", ms(took));
}

fn delivery<'d>(n: usize, work: Work, rounds: u64, times: Arc<[Times]>) -> Delivery<'d> {
    let job: Job<'d> = Box::new(move |_| {
        Box::pin(async move {
            match work {
                Work::Wait => tokio::time::sleep(TAKES).await,
                Work::Compute => compute(rounds),
                Work::ComputeElsewhere => {
                    tokio::task::spawn_blocking(move || compute(rounds)).await?;
                }
            }
            times[n].returned.get_or_init(Instant::now);
            Ok(Returned::Nothing)
        })
    });
    Delivery {
        record: RecordId::new("bench", n.to_string()),
        delivered: Delivered::default(),
        group: None,
        receives: 0,
        divert: None,
        work: batch::Work::Keyed { key: key(n), fingerprint: None, payload: "{}", job },
    }
}

/// How many rounds a processor computes in [`TAKES`].
fn rounds() -> u64 {
    let begun = Instant::now();
    let mut rounds = 0;
    while begun.elapsed() < TAKES {
        compute(1_000);
        rounds += 1_000;
    }
    rounds
}

fn compute(rounds: u64) {
    (0..rounds).fold(0, |sum: u64, round| black_box(sum.wrapping_mul(31) ^ round));
}
