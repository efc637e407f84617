//! What was seen so far, for a run that is stopped in the middle.

use std::sync::{Mutex, PoisonError};

use lambda_idempotency_local::{DeliveryReport, InvocationReport};

/// The invocations that have ended.
#[derive(Default)]
pub(crate) struct Seen(Mutex<Vec<InvocationReport>>);

impl Seen {
    pub(crate) fn add(&self, invocation: &InvocationReport) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(invocation.clone());
    }

    /// A report of them.
    pub(crate) fn report(&self) -> DeliveryReport {
        let mut report = DeliveryReport::default();
        report.invocations.clone_from(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        report
    }
}
