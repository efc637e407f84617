//! `records stats`

use std::{collections::BTreeMap, num::NonZeroUsize, process::ExitCode, time::Duration};

use clap::Args;
use lambda_idempotency_core::{browse::Cursor, clock::Timestamp};
use serde_json::json;

use super::{connect::Table, print, print_json, scan, state::State, view::Entry};
use crate::failure::Failure;

/// Count idempotency records by operation and state, those with unsent messages, and by how long ago they were claimed
///
/// Reads the table as `list` does, and says before what that will cost.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Read at most so many items
    #[arg(long, value_name = "NUMBER", default_value = "10000")]
    limit: NonZeroUsize,
}

/// The ages of the histogram: up to so many seconds.
const AGES: [(&str, u64); 7] = [
    ("1 minute", 60),
    ("10 minutes", 600),
    ("1 hour", 3600),
    ("6 hours", 6 * 3600),
    ("1 day", 24 * 3600),
    ("7 days", 7 * 24 * 3600),
    ("older", u64::MAX),
];
const WIDTH: usize = 30;

pub(crate) async fn run(
    table: &Table,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    eprintln!("{}", scan::cost(table, arguments.limit).await?);
    let read = scan::read(table, arguments.limit, None, None).await?;
    let now = table.now();
    let mut by_operation: BTreeMap<&str, BTreeMap<State, usize>> = BTreeMap::new();
    let mut unsent: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ages = [0; AGES.len()];
    let mut unknown = 0;
    for entry in &read.entries {
        *by_operation.entry(entry.operation()).or_default().entry(entry.state(now)).or_default() +=
            1;
        if entry.is_unsent() {
            *unsent.entry(entry.operation()).or_default() += 1;
        }
        match age(entry, now)
            .and_then(|age| AGES.iter().position(|(_, most)| age.as_secs() < *most))
        {
            Some(at) => ages.iter_mut().skip(at).take(1).for_each(|count| *count += 1),
            None => unknown += 1,
        }
    }
    let (count, next) = (read.entries.len(), read.next.as_ref().map(Cursor::as_str));
    if as_json {
        let operations = by_operation.iter().map(|(name, states)| {
            let states = states.iter().map(|(state, count)| (state.name(), json!(count)));
            let unsent = unsent.get(name).copied().unwrap_or_default();
            let states: BTreeMap<_, _> = states.collect();
            json!({ "operation": name, "states": states, "unsent": unsent })
        });
        let ages = AGES
            .iter()
            .zip(ages)
            .map(|((name, _), count)| json!({ "up_to": name, "records": count }));
        print_json(&json!({
            "operations": operations.collect::<Vec<_>>(), "claimed": ages.collect::<Vec<_>>(),
            "claimed_unknown": unknown, "read": count, "next": next,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = String::new();
    for (operation, states) in &by_operation {
        page.push_str(&format!(
            "{}\n",
            if operation.is_empty() { "(no operation)" } else { operation }
        ));
        for (state, count) in states {
            page.push_str(&bar(state.words(), *count, read.entries.len()));
        }
        if let Some(count) = unsent.get(operation) {
            page.push_str(&bar("unsent messages", *count, read.entries.len()));
        }
        page.push('\n');
    }
    page.push_str("last claimed\n");
    for ((name, _), count) in AGES.iter().zip(ages) {
        page.push_str(&bar(name, count, read.entries.len()));
    }
    if unknown > 0 {
        page.push_str(&bar("not known", unknown, read.entries.len()));
    }
    page.push_str(&format!("\n{count} items that were read"));
    page.push_str(if next.is_some() {
        "; there are more: raise --limit"
    } else {
        "; that was the whole table"
    });
    print(&page)?;
    Ok(ExitCode::SUCCESS)
}

/// How long ago the key was claimed. The fence of a record without provenance is the time of its first claim,
/// or a little later.
fn age(entry: &Entry, now: Timestamp) -> Option<Duration> {
    let record = entry.found.as_ref().ok()?;
    let at = record.provenance.as_ref().map(|provenance| provenance.claimed_at);
    let by_fence = (record.fence > 0).then(|| Timestamp::from_millis(record.fence));
    at.or(by_fence).map(|at| now.since(at))
}

fn bar(name: &str, count: usize, of: usize) -> String {
    let cells = count.saturating_mul(WIDTH).div_ceil(of.max(1));
    let bar = format!("  {name:<18} {count:>7} {}", "#".repeat(cells));
    format!("{}\n", bar.trim_end())
}
