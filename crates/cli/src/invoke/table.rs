//! The report, for people.

use std::fmt::Write as _;

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle,
};
use lambda_idempotency_local::{DeliveryReport, Disposition, InvocationResult, Outcome, Usage};
use serde_json::Value;

use super::totals::{Rows, Totals};
use crate::terminal::printable;

/// One row per delivery of a record.
pub(crate) fn records(report: &DeliveryReport) -> Table {
    let mut table = table(&["#", "source", "record", "try", "key", "outcome", "ms", "then"]);
    for (number, invocation) in report.invocations.iter().enumerate() {
        for record in &invocation.records {
            let line = record.line.as_ref();
            let key = line.and_then(|line| line.key_hash.as_deref()).map_or("-", short);
            let ms = line.and_then(|line| line.ms);
            let ms = ms.filter(|ms| record.outcome.ran() || *ms > 0.0);
            let (then, colour) = match record.disposition {
                Disposition::Done => (String::new(), Color::Reset),
                Disposition::Returned => (Disposition::Returned.to_string(), Color::Yellow),
                then => (then.to_string(), Color::Red),
            };
            table.add_row(vec![
                number_cell(number + 1),
                Cell::new(record.source),
                Cell::new(printable(record.record.as_deref().unwrap_or("-"))),
                number_cell(record.receive_count),
                Cell::new(printable(key)),
                Cell::new(printable(record.outcome.as_str())).fg(self::colour(&record.outcome)),
                number_cell(ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))),
                Cell::new(then).fg(colour),
            ]);
        }
    }
    table
}

/// One row per invocation.
pub(crate) fn invocations(report: &DeliveryReport) -> Table {
    let mut table = table(&["#", "invocation", "ms", "DynamoDB requests", "WCU", "refused", "RCU"]);
    for (number, invocation) in report.invocations.iter().enumerate() {
        let invocation = &invocation.invocation;
        let result = match &invocation.result {
            // The message is shown with the problems, below the table.
            InvocationResult::FunctionError { kind, .. } => format!("error {kind}"),
            result => result.to_string(),
        };
        let result = Cell::new(printable(&result));
        let usage = &invocation.dynamodb;
        table.add_row(vec![
            number_cell(number + 1),
            if invocation.result.is_response() { result } else { result.fg(Color::Red) },
            number_cell(format!("{:.1}", invocation.duration.as_secs_f64() * 1000.0)),
            Cell::new(requests(usage)),
            number_cell(usage.write_units),
            number_cell(usage.refused_conditions),
            number_cell(usage.read_units),
        ]);
    }
    table
}

/// The summary, in a few lines.
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

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    let style = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    table.load_style(style);
    // Cells are wrapped in a terminal only: where the width is unknown, they are hard to read then.
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().map(|title| Cell::new(title).add_attribute(Attribute::Bold)));
    table
}

fn number_cell(number: impl ToString) -> Cell {
    Cell::new(number).set_alignment(CellAlignment::Right)
}

fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The part of a hash that is enough to distinguish two.
fn short(hash: &str) -> &str {
    hash.get(..8).unwrap_or(hash)
}

fn colour(outcome: &Outcome) -> Color {
    match outcome {
        Outcome::Executed | Outcome::Unprotected | Outcome::Acknowledged => Color::Green,
        Outcome::Replayed | Outcome::Coalesced | Outcome::Skipped | Outcome::Superseded => {
            Color::Cyan
        }
        Outcome::Returned
        | Outcome::Busy
        | Outcome::Declined
        | Outcome::Fenced
        | Outcome::Diverted => Color::Yellow,
        _ => Color::Red,
    }
}

fn requests(usage: &Usage) -> String {
    let each: Vec<String> =
        usage.operations.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}
