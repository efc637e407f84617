//! The parts of an engine, and the workers that claim.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use lambda_idempotency_core::{clock::Clock, outbox::Sender, record::Worker, store::Store};

use crate::{completed::Completed, observe::Observers};

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
