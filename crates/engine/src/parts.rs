//! What an engine is made of, and what its operations share: how long handlers take, and who claims.

use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lambda_idempotency_core::{clock::Clock, outbox::Sender, record::Worker, store::Store};

use crate::{observe::Observers, process::Completed};

/// The parts of an engine, which its clones share.
#[derive(Clone)]
pub(crate) struct EngineParts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Sends the messages that calls publish.
    pub(crate) sender: Option<Arc<dyn Sender>>,
    pub(crate) observers: Observers,
    /// Whether the spans of handlers have the fields of OpenTelemetry.
    pub(crate) has_opentelemetry_fields: bool,
    pub(crate) completed: Arc<Completed>,
    /// Whether nothing is claimed: each record runs.
    pub(crate) is_unprotected: bool,
    pub(crate) application: Option<Arc<str>>,
    /// The function, for the provenance of claims.
    pub(crate) workers: Arc<Workers>,
}

/// How long the handlers of an operation take, learned from their calls. Shared by all invocations.
#[derive(Debug, Default)]
pub struct Pace(AtomicU64);

impl Pace {
    /// Follows slow calls at once and fast ones slowly: a start too many costs more than one too
    /// few.
    pub(crate) fn learn(&self, took: Duration) {
        // 0 means that nothing is known.
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
        let known = self.0.load(Ordering::Relaxed);
        let next = took.max(known.saturating_sub(known / 8).saturating_add(took / 8));
        self.0.store(next, Ordering::Relaxed);
    }

    pub(crate) fn estimate(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// The function, and its worker in the invocation that was asked for last. Calls of `run` are a batch each, and a program
/// may have very many at once: those of one invocation share its worker, and so do the records that they complete.
#[derive(Default)]
pub(crate) struct Workers {
    function: Arc<Worker>,
    last: Mutex<Weak<Worker>>,
}

impl Workers {
    pub(crate) fn of(function: Worker) -> Self {
        Self { function: Arc::new(function), last: Mutex::default() }
    }

    /// The function in the invocation of this request id, if there is one.
    pub(crate) fn within(&self, request_id: Option<&str>) -> Arc<Worker> {
        let Some(id) = request_id else { return Arc::clone(&self.function) };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |worker: &Arc<Worker>| worker.request_id.as_deref() == Some(id);
        if let Some(worker) = last.upgrade().filter(is_same) {
            return worker;
        }
        let worker = Arc::new(Worker::clone(&self.function).with_request_id(id));
        *last = Arc::downgrade(&worker);
        worker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_rises_at_once_and_falls_slowly() {
        let pace = Pace::default();
        pace.learn(Duration::from_millis(800));
        pace.learn(Duration::ZERO);
        assert_eq!(pace.estimate(), Duration::from_millis(700));
    }

    #[test]
    fn the_claims_of_an_invocation_share_their_worker() {
        let workers = Workers::of(Worker::default());
        let (one, same) = (workers.within(Some("r-1")), workers.within(Some("r-1")));
        assert!(Arc::ptr_eq(&one, &same));
        let (next, none) = (workers.within(Some("r-2")), workers.within(None));
        let id = |worker: &Arc<Worker>| worker.request_id.as_deref().map(str::to_owned);
        assert_eq!(
            [one, next, none].each_ref().map(id),
            [Some("r-1".into()), Some("r-2".into()), None]
        );
    }
}
