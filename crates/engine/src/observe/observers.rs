//! All observers of an engine.

use std::{collections::BTreeMap, sync::Arc};

use lambda_idempotency_core::contained::caught;

use super::{BatchEnd, Observer, Report, TracingObserver};

/// The log, if there is one, and the user's observers, in the order in which they were added.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    log: Option<TracingObserver>,
    others: Arc<[Arc<dyn Observer>]>,
}

impl Observers {
    pub(crate) const fn set_log(&mut self, log: Option<TracingObserver>) {
        self.log = log;
    }

    pub(crate) const fn log(&self) -> Option<TracingObserver> {
        self.log
    }

    pub(crate) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.others = self.others.iter().cloned().chain([observer]).collect();
    }

    /// Whether there are others beside the log, which gets outcomes of records only.
    pub(crate) fn are_any(&self) -> bool {
        !self.others.is_empty()
    }

    /// Reports a record to the log and to the others.
    pub(crate) fn report(&self, report: &Report<'_>) {
        if let Some(log) = &self.log {
            caught(|| log.reported(report));
        }
        self.tell(|observer| observer.reported(report));
    }

    /// Counts the outcomes of a batch in the log.
    pub(crate) fn log_end(&self, end: &BatchEnd<'_>, outcomes: &BTreeMap<&'static str, usize>) {
        if let Some(log) = &self.log {
            caught(|| log.summarise(end, outcomes));
        }
    }

    /// Calls each of the others. If one panics, the rest are called all the same.
    pub(crate) fn tell(&self, what: impl Fn(&dyn Observer)) {
        for observer in &*self.others {
            caught(|| what(&**observer));
        }
    }
}
