//! What is counted and measured for an operation and a source until its next line.

use std::{collections::BTreeMap, time::Duration};

use lambda_idempotency_core::{outcome::Outcome, store::StoreErrorKind};
use lambda_idempotency_engine::observe::{BatchEnd, Report, StoreCall, StorePurpose};

/// The names of the metrics are a stable contract: the guide lists them.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) counts: BTreeMap<&'static str, f64>,
    /// In milliseconds.
    pub(super) times: BTreeMap<&'static str, Vec<f64>>,
}

impl Sums {
    pub(super) fn report(&mut self, report: &Report<'_>) {
        self.count(report.outcome.label(), 1);
        self.count("permanent_failures", usize::from(is_new_permanent_failure(report)));
        let follows_a_loss = report.lost_attempts > 0 && report.ran_for.is_some();
        self.count("lost_attempts", usize::from(follows_a_loss));
        self.time("wait_time", report.waited);
        self.time("handler_time", report.ran_for);
        self.time("settle_time", report.settled_in);
    }

    pub(super) fn store_call(&mut self, call: &StoreCall<'_>) {
        self.count("store_calls", 1);
        self.count("store_errors", call.errors.len());
        let throttled = call.errors.iter().filter(|kind| **kind == StoreErrorKind::Throttled);
        self.count("store_throttled", throttled.count());
        let name = match call.purpose {
            StorePurpose::Look => "look_call_time",
            StorePurpose::Claim => "claim_call_time",
            StorePurpose::Settle => "settle_call_time",
            StorePurpose::Renew => "renew_call_time",
            _ => return,
        };
        self.time(name, Some(call.took));
    }

    pub(super) fn end(&mut self, end: &BatchEnd<'_>) {
        self.count("records", end.records);
        self.count("cache_hits", end.cache_hits);
        self.time("batch_time", Some(end.took));
    }

    /// What is 0 is not written: CloudWatch charges for each metric.
    fn count(&mut self, name: &'static str, more: usize) {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let more = more as f64;
        if more > 0.0 {
            *self.counts.entry(name).or_default() += more;
        }
    }

    fn time(&mut self, name: &'static str, took: Option<Duration>) {
        if let Some(took) = took {
            // A thousandth of a millisecond is enough, and keeps the lines short.
            let millis = (took.as_secs_f64() * 1e6).round() / 1e3;
            self.times.entry(name).or_default().push(millis);
        }
    }
}

/// Whether this delivery made the failure permanent, as opposed to a copy of it, and to one that
/// met an earlier permanent failure.
fn is_new_permanent_failure(report: &Report<'_>) -> bool {
    let is_permanent = matches!(
        report.outcome,
        Outcome::Failed { permanent: true, .. } | Outcome::TimedOut { permanent: true }
    );
    is_permanent && report.ran_for.is_some()
}
