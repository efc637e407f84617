//! All observers of an engine.

use std::sync::Arc;

use lambda_idempotency_core::contained::caught;

use super::{Observer, Report, TracingObserver};

/// The log, if there is one, and the user's observers, in the order in which they were added.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    log: Option<TracingObserver>,
    others: Arc<[Arc<dyn Observer>]>,
    wants_usage: bool,
}

impl Observers {
    pub(crate) const fn set_log(&mut self, log: Option<TracingObserver>) {
        self.log = log;
    }

    pub(crate) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.wants_usage |= caught(|| observer.wants_usage()).unwrap_or(false);
        self.others = self.others.iter().cloned().chain([observer]).collect();
    }

    /// Whether there are others beside the log, which is told of records only.
    pub(crate) fn are_any(&self) -> bool {
        !self.others.is_empty()
    }

    pub(crate) const fn want_usage(&self) -> bool {
        self.wants_usage
    }

    /// Tells the log and the others of a record.
    pub(crate) fn report(&self, report: &Report<'_>) {
        if let Some(log) = &self.log {
            caught(|| log.reported(report));
        }
        self.tell(|observer| observer.reported(report));
    }

    /// Tells the others. One that panics keeps nobody else from being told.
    pub(crate) fn tell(&self, what: impl Fn(&dyn Observer)) {
        for observer in &*self.others {
            caught(|| what(&**observer));
        }
    }
}
