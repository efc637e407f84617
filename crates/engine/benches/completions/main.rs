//! For how long a completion is missing: from when a handler returned to when the store has applied
//! its completion. If the process is killed in that time, the effect happens twice.
//!
//! ```console
//! $ cargo bench -p lambda-idempotency-engine --bench completions
//! ```
//!
//! A line for each kind of handlers and each store: the window's median and maximum, the most handlers
//! whose completion was missing at once (as many effects a kill can double), the calls of the store,
//! and how long the batch took. The second store answers as DynamoDB does, after some milliseconds, and
//! goes on while a handler keeps the processor.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark"
)]

mod window;

use std::{num::NonZero, sync::Arc, thread, time::Duration};

use lambda_idempotency_core::{
    capabilities::Capabilities,
    clock::{BoxFuture, Timestamp},
    memory::MemoryStore,
    record::IdempotencyRecord,
    store::{Store, StoreError, Verdict, Write},
};
use lambda_idempotency_keys::Key;
use tokio::{
    runtime::{Builder, Handle},
    time::sleep,
};

use window::{Handlers, Work, measure, print_head};

/// The time that a request takes there, and that its answer takes back.
const WAY: Duration = Duration::from_micros(2_500);

fn main() {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let handlers = |work, concurrency| Handlers { work, concurrency };
    let cases = [
        ("waiting", handlers(Work::Wait, 16)),
        ("computing", handlers(Work::Compute, 16)),
        ("in `spawn_blocking`", handlers(Work::ComputeElsewhere, 16)),
        ("in `spawn_blocking`", handlers(Work::ComputeElsewhere, processors)),
    ];
    print_head();
    println!("in memory");
    for (name, handlers) in cases {
        measure(name, handlers, MemoryStore::new(), |store| store);
    }
    let server = server();
    println!("in memory, {WAY:?} away");
    for (name, handlers) in cases {
        let away = |store| Away { store: Arc::new(store), server: server.clone() };
        measure(name, handlers, MemoryStore::new(), away);
    }
}

/// A runtime on its own thread, which no handler keeps busy.
fn server() -> Handle {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let handle = runtime.handle().clone();
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    handle
}

/// A store at a distance.
struct Away<S> {
    store: Arc<S>,
    server: Handle,
}

impl<S: Store> Store for Away<S> {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        let (store, writes) = (Arc::clone(&self.store), writes.to_vec());
        Box::pin(async move {
            let answer = self.server.spawn(async move {
                sleep(WAY).await;
                let verdicts = store.write(&writes, call_deadline).await;
                sleep(WAY).await;
                verdicts
            });
            answer.await.unwrap()
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.store.read(keys, call_deadline)
    }
}
