//! The report, for people.

use std::fmt::Write as _;

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle,
};
use lambda_idempotency_local::{
    DeliveryReport, Disposition, InvocationResult, Outcome, RecordReport, Usage,
};
use serde_json::Value;

use super::totals::{Rows, Totals};

/// One row per delivery of a record.
pub(crate) fn records(report: &DeliveryReport) -> Table {
    let mut table = table(&["#", "source", "record", "try", "key", "outcome", "ms", "then"]);
    let narrow = is_narrow(&table);
    for (number, invocation) in report.invocations.iter().enumerate() {
        for record in &invocation.records {
            let told = record.told.as_ref();
            let key = told.and_then(|line| line.key_hash.as_deref()).map_or("-", short);
            let ms = told.and_then(|line| line.ms);
            let ms = ms.filter(|ms| record.outcome.ran() || *ms > 0.0);
            table.add_row(vec![
                number_cell(number + 1),
                Cell::new(record.source),
                Cell::new(name(record.record.as_deref().unwrap_or("-"), narrow)),
                number_cell(record.receive_count),
                Cell::new(key),
                Cell::new(&record.outcome).fg(colour(&record.outcome)),
                number_cell(ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"))),
                then(record),
            ]);
        }
    }
    table
}

/// One row per invocation.
pub(crate) fn invocations(report: &DeliveryReport) -> Table {
    let mut table = table(&["#", "invocation", "ms", "DynamoDB requests", "WCU", "refused", "RCU"]);
    let narrow = is_narrow(&table);
    for (number, invocation) in report.invocations.iter().enumerate() {
        let invocation = &invocation.invocation;
        let result = match &invocation.result {
            // The message is shown with the problems, below the table.
            InvocationResult::FunctionError { kind, .. } => Cell::new(format!("error {kind}")),
            result => Cell::new(result),
        };
        let result = if invocation.result.is_response() { result } else { result.fg(Color::Red) };
        table.add_row(vec![
            number_cell(number + 1),
            result,
            number_cell(format!("{:.1}", invocation.duration.as_secs_f64() * 1000.0)),
            Cell::new(requests(&invocation.dynamodb, if narrow { "\n" } else { ", " })),
            number_cell(invocation.dynamodb.write_units),
            number_cell(invocation.dynamodb.refused_conditions),
            number_cell(invocation.dynamodb.read_units),
        ]);
    }
    table
}

/// Why records were returned or invocations failed, each reason once. Reasons that differ only in the count of a
/// key's failures are one, with the last text.
pub(crate) fn problems(report: &DeliveryReport) -> String {
    let mut problems: Vec<(String, usize)> = Vec::new();
    let mut note = |problem: String| match problems
        .iter_mut()
        .find(|(known, _)| uncounted(known) == uncounted(&problem))
    {
        Some((known, count)) => (*known, *count) = (problem, *count + 1),
        None => problems.push((problem, 1)),
    };
    for invocation in &report.invocations {
        let told = invocation.records.iter().filter_map(|record| {
            let told = record.told.as_ref()?;
            let problem = format!("{}: {}", record.outcome, told.problem.as_ref()?);
            Some(match &told.error_message {
                Some(message) => format!("{problem}{SAYS}{message}"),
                None => problem,
            })
        });
        let told: Vec<String> = told.collect();
        match &invocation.invocation.result {
            // An error that only sums up the problems of its records is not repeated.
            InvocationResult::FunctionError { kind, message } if told.is_empty() => {
                note(format!("{kind}: {message}"));
            }
            _ => told.into_iter().for_each(&mut note),
        }
    }
    let mut text = String::new();
    for (problem, count) in problems {
        let times = if count > 1 { format!("{count} times ") } else { String::new() };
        let _ = writeln!(text, "{times}{problem}");
    }
    text
}

/// Separates a problem from the message of the handler's error.
const SAYS: &str = "\n    ";

/// A problem without the count of its key's failures, and the message of the handler's error.
fn uncounted(problem: &str) -> (&str, &str) {
    let (problem, message) = problem.split_once(SAYS).unwrap_or((problem, ""));
    (problem.split_once(" (failure ").map_or(problem, |(problem, _)| problem), message)
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
    let value = |item: &Value, name: &str, kind: &str| {
        Some(item.get(name)?.get(kind)?.as_str()?.to_owned())
    };
    let mut names: Vec<String> = items
        .iter()
        .filter_map(|item| {
            let key = value(item, table.key(), "S")?;
            // The example function counts here how often it placed an order: any number but 1 is a mistake.
            match value(item, "placed", "N").filter(|placed| placed != "1") {
                Some(placed) => Some(format!("{key} PLACED {placed} TIMES")),
                None => Some(key),
            }
        })
        .collect();
    names.sort_unstable();
    // Hashes, as in the idempotency table, do not help the reader.
    if !names.is_empty() && names.len() <= 20 && names.iter().all(|name| name.len() <= 40) {
        let _ = write!(text, " ({})", names.join(", "));
    }
    text
}

/// Whether the function answered, but logged nothing of any record.
pub(crate) fn is_silent(report: &DeliveryReport) -> bool {
    report.records().all(|record| record.told.is_none())
        && report.records().any(|record| record.outcome == Outcome::Acknowledged)
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    let style = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    table.load_style(style);
    // In a narrower terminal, or one of unknown width, wrapped cells are hard to read.
    if table.width().is_some_and(|width| width >= 70) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.set_header(header.iter().map(|title| Cell::new(title).add_attribute(Attribute::Bold)));
    table
}

/// Whether the terminal is too narrow for whole ids.
fn is_narrow(table: &Table) -> bool {
    table.width().is_some_and(|width| width < 120)
}

/// The id of a record, or its beginning in a narrow terminal.
fn name(id: &str, narrow: bool) -> String {
    match id.get(..8) {
        Some(head) if narrow && id.len() > 20 => format!("{head}…"),
        _ => id.to_owned(),
    }
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

/// What the source does with the record after this delivery.
fn then(record: &RecordReport) -> Cell {
    match record.disposition {
        Disposition::Done => Cell::new(""),
        Disposition::Returned => Cell::new("returned").fg(Color::Yellow),
        Disposition::DeadLettered => Cell::new("dead-lettered").fg(Color::Red),
        Disposition::Lost => Cell::new("lost").fg(Color::Red),
    }
}

fn requests(usage: &Usage, separator: &str) -> String {
    let each: Vec<String> =
        usage.operations.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(separator) }
}
