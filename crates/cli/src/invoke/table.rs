//! The report, for people.

use std::fmt::Write as _;

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle,
};
use lambda_idempotency_local::{DeliveryReport, Disposition, InvocationResult, Outcome, Usage};
use serde_json::Value;

use super::totals::{Rows, Totals};
use crate::terminal::printable;

/// The width of the terminal; none if the output goes elsewhere.
pub(crate) fn terminal() -> Option<u16> {
    Table::new().width()
}

/// Below this width, the ids of records are shortened.
const SHORT_IDS: u16 = 120;
/// Below this width, the tables have fewer columns.
const FEW_COLUMNS: u16 = 90;

/// One row per delivery of a record, in a terminal of this width.
pub(crate) fn records(report: &DeliveryReport, width: Option<u16>) -> Table {
    let is_narrow = |limit| width.is_some_and(|width| width < limit);
    let few = is_narrow(FEW_COLUMNS);
    let header: &[&str] = match few {
        true => &["#", "record", "try", "key", "outcome"],
        false => &["#", "source", "record", "try", "key", "outcome", "ms", "then"],
    };
    let mut table = table(header, width);
    for (number, invocation) in report.invocations.iter().enumerate() {
        for record in &invocation.records {
            let line = record.line.as_ref();
            let number = number_cell(number + 1);
            let id = printable(record.record.as_deref().unwrap_or("-"));
            let id = name(&id, is_narrow(SHORT_IDS));
            let receives = number_cell(record.receive_count);
            let key = line.and_then(|line| line.key_hash.as_deref()).map_or("-", short);
            let key = printable(key);
            let outcome = printable(record.outcome.as_str());
            let ms = line.and_then(|line| line.ms);
            let ms = ms.filter(|ms| record.outcome.ran() || *ms > 0.0);
            let ms = number_cell(ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}")));
            let then = match record.disposition {
                Disposition::Done => String::new(),
                then => then.to_string(),
            };
            let coloured = |text: &str| Cell::new(text).fg(colour(&record.outcome));
            table.add_row(if few {
                let outcome = if then.is_empty() { outcome } else { format!("{outcome},\n{then}") };
                vec![number, id.into(), receives, key.into(), coloured(&outcome)]
            } else {
                let then = Cell::new(then).fg(match record.disposition {
                    Disposition::Returned => Color::Yellow,
                    _ => Color::Red,
                });
                let (source, outcome) = (Cell::new(record.source), coloured(&outcome));
                vec![number, source, id.into(), receives, key.into(), outcome, ms, then]
            });
        }
    }
    table
}

/// One row per invocation, in a terminal of this width.
pub(crate) fn invocations(report: &DeliveryReport, width: Option<u16>) -> Table {
    let few = width.is_some_and(|width| width < FEW_COLUMNS);
    let header: &[&str] = match few {
        true => &["#", "invocation", "ms", "requests", "WCU", "RCU"],
        false => &["#", "invocation", "ms", "DynamoDB requests", "WCU", "refused", "RCU"],
    };
    let mut table = table(header, width);
    let separator = if width.is_some_and(|width| width < SHORT_IDS) { "\n" } else { ", " };
    for (number, invocation) in report.invocations.iter().enumerate() {
        let invocation = &invocation.invocation;
        let result = match &invocation.result {
            // The message is shown with the problems, below the table.
            InvocationResult::FunctionError { kind, .. } => {
                Cell::new(format!("error {}", printable(kind)))
            }
            result => Cell::new(printable(&result.to_string())),
        };
        let result = if invocation.result.is_response() { result } else { result.fg(Color::Red) };
        let number = number_cell(number + 1);
        let ms = number_cell(format!("{:.1}", invocation.duration.as_secs_f64() * 1000.0));
        let usage = &invocation.dynamodb;
        let (written, read) = (number_cell(usage.write_units), number_cell(usage.read_units));
        table.add_row(if few {
            vec![number, result, ms, number_cell(usage.requests()), written, read]
        } else {
            let refused = number_cell(usage.refused_conditions);
            vec![number, result, ms, requests(usage, separator).into(), written, refused, read]
        });
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
    report.records().all(|record| record.line.is_none())
        && report.records().any(|record| record.outcome == Outcome::Acknowledged)
}

fn table(header: &[&str], width: Option<u16>) -> Table {
    let mut table = Table::new();
    let style = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    table.load_style(style);
    // Where the width is unknown, wrapped cells are hard to read.
    if let Some(width) = width {
        table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.set_header(header.iter().map(|title| Cell::new(title).add_attribute(Attribute::Bold)));
    table
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

fn requests(usage: &Usage, separator: &str) -> String {
    let each: Vec<String> =
        usage.operations.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(separator) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lambda_idempotency_local::{FunctionConfig, Local};

    use super::*;

    /// The report of a function that cannot be started is empty, so this one is made of a real delivery to a shell
    /// script that ends at once: every record crashes, and is dead-lettered at its second receive.
    #[cfg(unix)]
    #[tokio::test]
    async fn tables_fit_the_terminal() {
        let sqs = lambda_idempotency_local::SqsConfig {
            visibility: Some(Duration::from_millis(1)),
            max_receive_count: 2,
            ..Default::default()
        };
        let local =
            Local::builder(FunctionConfig::new("/bin/false")).sqs(sqs).start().await.unwrap();
        let event = r#"{"Records":[{"eventSource":"aws:sqs","messageId":"ca118783-5939-42a4-a7ea-a0992cb6916d"}]}"#;
        let report = local.deliver(event).await.unwrap();
        for width in [40, 60, 80, 100, 140] {
            for table in [records(&report, Some(width)), invocations(&report, Some(width))] {
                let text = table.to_string();
                let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
                assert!(longest <= usize::from(width), "{longest} of {width}:\n{text}");
            }
        }
        let narrow = records(&report, Some(60)).to_string();
        assert!(narrow.contains("dead-lettered") && narrow.contains("ca118783…"), "{narrow}");
        assert!(records(&report, None).to_string().contains("a0992cb6916d"));
    }
}
