//! The summary of a local run.

use std::fmt::Write as _;

use lambda_idempotency_local::{DeliveryReport, Outcome};
use serde_json::Value;

use super::totals::{Rows, Totals};
use crate::terminal::plural;

pub(crate) fn summary(report: &DeliveryReport, tables: &[Rows]) -> String {
    let totals = Totals::of(report);
    let mut text = format!(
        "{}: {} executed, {} answered without running, {} returned to the source, {} dead-lettered",
        plural(totals.deliveries, "delivery", "deliveries"),
        totals.executed,
        totals.answered,
        totals.returned,
        totals.dead_lettered
    );
    if totals.lost > 0 {
        let _ = write!(text, ", {} lost", totals.lost);
    }
    for (outcome, count) in &totals.other {
        let _ = write!(text, ", {count} {outcome}");
    }
    for rows in tables {
        let _ = write!(text, "\n{}", contents(rows));
    }
    text
}

/// How many rows a table has, and their keys if these are short enough.
fn contents(Rows { table, items }: &Rows) -> String {
    let mut text = format!("table {}: {}", table.name(), plural(items.len(), "row", "rows"));
    let key = |item: &Value| Some(item.get(table.key())?.get("S")?.as_str()?.to_owned());
    let mut names: Vec<String> = items.iter().filter_map(key).collect();
    names.sort_unstable();
    // Hashes, as in the idempotency table, do not help the reader.
    if !names.is_empty() && names.len() <= 20 && names.iter().all(|name| name.len() <= 40) {
        let _ = write!(text, " ({})", names.join(", "));
    }
    text
}

/// Whether the function answered, but logged nothing of any record.
pub(crate) fn is_silent(report: &DeliveryReport) -> bool {
    report.records().all(|record| record.line.is_none())
        && report.records().any(|record| record.outcome == Outcome::Acknowledged)
}
