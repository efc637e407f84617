//! A bucket with faults.

use std::{
    future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock as _, SystemClock, Timestamp},
    memory::MemoryStore,
};
use lambda_idempotency_results::{BoxError, MemoryResults, ResultName, ResultStore, Results};

/// What goes wrong with a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Fails,
    Hangs,
    Panics,
    /// Each call takes a second.
    Slow,
}

/// The ways in which a bucket cannot be reached.
pub(crate) const DOWN: [Fault; 3] = [Fault::Fails, Fault::Hangs, Fault::Panics];

/// A bucket with faults, which shows what it has.
#[derive(Clone)]
pub(crate) struct Bucket {
    pub(crate) kept: MemoryResults,
    fault: Arc<Mutex<Fault>>,
    pub(crate) running: Arc<AtomicUsize>,
    pub(crate) most: Arc<AtomicUsize>,
    pub(crate) last: Arc<Mutex<Option<Put>>>,
}

/// A content, and its expiry.
pub(crate) type Put = (Vec<u8>, Timestamp);

impl Bucket {
    pub(crate) fn new() -> Self {
        Self {
            kept: MemoryResults::default(),
            fault: Arc::new(Mutex::new(Fault::None)),
            running: Arc::default(),
            most: Arc::default(),
            last: Arc::default(),
        }
    }

    pub(crate) fn fault(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    async fn call(&self) -> Result<(), BoxError> {
        let fault = *self.fault.lock().unwrap();
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        let answer = match fault {
            Fault::None => Ok(()),
            Fault::Fails => Err("no connection".into()),
            Fault::Hangs => future::pending().await,
            Fault::Panics => panic!("a mistake of its author"),
            Fault::Slow => {
                SystemClock.sleep(Duration::from_secs(1)).await;
                Ok(())
            }
        };
        self.running.fetch_sub(1, Ordering::SeqCst);
        answer
    }
}

impl ResultStore for Bucket {
    fn put<'a>(
        &'a self,
        name: &'a ResultName,
        content: Vec<u8>,
        expires_at: Timestamp,
        deadline: Timestamp,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            self.call().await?;
            *self.last.lock().unwrap() = Some((content.clone(), expires_at));
            self.kept.put(name, content, expires_at, deadline).await
        })
    }

    fn get<'a>(
        &'a self,
        name: &'a ResultName,
        deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, BoxError>> {
        Box::pin(async move {
            self.call().await?;
            self.kept.get(name, deadline).await
        })
    }
}

pub(crate) fn over(bucket: &Bucket) -> Results<MemoryStore> {
    Results::new(MemoryStore::new()).offload_above(4096, bucket.clone())
}
