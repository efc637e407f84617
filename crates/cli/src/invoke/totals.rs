//! The totals of a run: records by outcome, and the contents of the tables.

use std::collections::BTreeMap;

use lambda_idempotency_local::{DeliveryReport, Disposition, Outcome, Table};
use serde_json::Value;

pub(crate) struct Rows {
    pub(crate) table: Table,
    pub(crate) items: Vec<Value>,
}

pub(crate) struct Totals {
    pub(crate) deliveries: usize,
    pub(crate) executed: usize,
    pub(crate) answered: usize,
    pub(crate) returned: usize,
    pub(crate) dead_lettered: usize,
    pub(crate) lost: usize,
    /// Records that are done with another outcome, by outcome: `coalesced`, ...
    pub(crate) other: BTreeMap<String, usize>,
}

impl Totals {
    pub(crate) fn of(report: &DeliveryReport) -> Self {
        let count = |counts: fn(&Outcome) -> bool| {
            report.records().filter(|record| counts(&record.outcome)).count()
        };
        let executed: fn(&Outcome) -> bool = |outcome| {
            matches!(outcome, Outcome::Executed | Outcome::Unprotected | Outcome::CompletionLost)
        };
        let mut other = BTreeMap::new();
        for record in report.records().filter(|record| record.disposition == Disposition::Done) {
            if !executed(&record.outcome) && !record.outcome.answered_without_running() {
                *other.entry(record.outcome.to_string()).or_default() += 1;
            }
        }
        Self {
            deliveries: report.records().count(),
            executed: count(executed),
            other,
            answered: count(Outcome::answered_without_running),
            returned: report.dispositions(Disposition::Returned),
            dead_lettered: report.dead_letters.len(),
            lost: report.dispositions(Disposition::Lost),
        }
    }
}
