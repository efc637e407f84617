//! The report, for people.

use std::fmt::Write as _;

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle,
};
use lambda_idempotency_local::{DeliveryReport, Fate, Outcome, RecordReport, Usage};

/// One row per delivery of a record.
pub(crate) fn records(report: &DeliveryReport) -> Table {
    let mut table = table(&["#", "source", "record", "delivery", "key", "outcome", "ms", "then"]);
    for (number, invocation) in report.invocations.iter().enumerate() {
        for record in &invocation.records {
            let told = record.told.as_ref();
            let key = told.and_then(|line| line.key_hash.as_deref()).map_or("-", short);
            let ms = told.and_then(|line| line.ms).filter(|_| record.outcome.ran());
            table.add_row(vec![
                number_cell(number + 1),
                Cell::new(record.source),
                Cell::new(record.record.as_deref().unwrap_or("-")),
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
    let mut table =
        table(&["#", "invocation", "ms", "DynamoDB requests", "write units", "read units"]);
    for (number, invocation) in report.invocations.iter().enumerate() {
        let invocation = &invocation.invocation;
        let result = Cell::new(&invocation.result);
        let result = if invocation.result.is_response() { result } else { result.fg(Color::Red) };
        table.add_row(vec![
            number_cell(number + 1),
            result,
            number_cell(format!("{:.1}", invocation.duration.as_secs_f64() * 1000.0)),
            Cell::new(requests(&invocation.dynamodb)),
            number_cell(invocation.dynamodb.write_units),
            number_cell(invocation.dynamodb.read_units),
        ]);
    }
    table
}

/// What it comes to, in a few lines.
pub(crate) fn summary(report: &DeliveryReport, tables: &[(String, Vec<String>)]) -> String {
    let totals = Totals::of(report);
    let mut text = format!(
        "{}: {} executed, {} answered without running, {} back to the source, {} dead-lettered",
        plural(totals.deliveries, "delivery", "deliveries"),
        totals.executed,
        totals.answered,
        totals.returned,
        totals.dead_lettered
    );
    if totals.lost > 0 {
        let _ = write!(text, ", {} lost", totals.lost);
    }
    for (name, keys) in tables {
        let _ = write!(text, "\ntable {name}: {}", plural(keys.len(), "row", "rows"));
        // The hashes in the idempotency table would tell nobody anything; names of orders do.
        if !keys.is_empty() && keys.len() <= 20 && keys.iter().all(|key| key.len() <= 24) {
            let _ = write!(text, " ({})", keys.join(", "));
        }
    }
    text
}

/// The numbers of the summary.
pub(crate) struct Totals {
    pub(crate) deliveries: usize,
    pub(crate) executed: usize,
    pub(crate) answered: usize,
    pub(crate) returned: usize,
    pub(crate) dead_lettered: usize,
    pub(crate) lost: usize,
}

impl Totals {
    pub(crate) fn of(report: &DeliveryReport) -> Self {
        let count = |counts: fn(&Outcome) -> bool| {
            report.records().filter(|record| counts(&record.outcome)).count()
        };
        Self {
            deliveries: report.records().count(),
            executed: count(|outcome| matches!(outcome, Outcome::Executed | Outcome::Unprotected)),
            answered: count(Outcome::answered_without_running),
            returned: report.fates(Fate::Returned),
            dead_lettered: report.dead_letters.len(),
            lost: report.fates(Fate::Lost),
        }
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    let style = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    table.load_style(style).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().map(|title| Cell::new(title).add_attribute(Attribute::Bold)));
    table
}

fn number_cell(number: impl ToString) -> Cell {
    Cell::new(number).set_alignment(CellAlignment::Right)
}

fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Enough of a hash to tell two apart.
fn short(hash: &str) -> &str {
    hash.get(..10).unwrap_or(hash)
}

fn colour(outcome: &Outcome) -> Color {
    match outcome {
        Outcome::Executed | Outcome::Unprotected | Outcome::Acknowledged => Color::Green,
        Outcome::Replayed | Outcome::Coalesced | Outcome::Skipped | Outcome::Superseded => {
            Color::Cyan
        }
        Outcome::Returned | Outcome::Busy | Outcome::Fenced => Color::Yellow,
        _ => Color::Red,
    }
}

/// What happens next to a record, and why.
fn then(record: &RecordReport) -> Cell {
    let (next, colour) = match record.fate {
        Fate::Done => ("", Color::Reset),
        Fate::Returned => ("back to the source", Color::Yellow),
        Fate::DeadLettered => ("dead-letter queue", Color::Red),
        Fate::Lost => ("lost: nobody retries", Color::Red),
    };
    match record.told.as_ref().and_then(|line| line.problem.as_deref()) {
        Some(problem) if next.is_empty() => Cell::new(problem).fg(Color::Yellow),
        Some(problem) => Cell::new(format!("{next}: {problem}")).fg(colour),
        None => Cell::new(next).fg(colour),
    }
}

fn requests(usage: &Usage) -> String {
    let each: Vec<String> =
        usage.operations.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}
