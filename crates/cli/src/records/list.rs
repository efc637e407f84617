//! `records list`

use std::{num::NonZeroUsize, process::ExitCode};

use clap::Args;
use lambda_idempotency_core::browse::{Cursor, Left};
use serde_json::json;

use super::{connect::Table, print, print_json, scan, state::State, view};
use crate::failure::Failure;

/// List idempotency records: all, or those in a state or of an operation
///
/// Reads the table from one end (`Scan`), which costs a read unit for each 4 KB of what it passes over, also for
/// records that it does not show. It says before what that will be, and stops after `--limit` items.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only records in this state; may be repeated
    #[arg(long, value_name = "STATE", value_enum)]
    state: Vec<State>,

    /// Only records of this operation: the part of a key before `#`
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,

    /// Only records with messages that are not known to be sent
    #[arg(long)]
    unsent: bool,

    /// Find them by this index of a table in DynamoDB, instead of reading the whole table
    #[arg(long, value_name = "NAME", requires = "unsent")]
    pub(crate) index: Option<String>,

    /// Read at most so many items
    #[arg(long, value_name = "NUMBER", default_value = "1000")]
    limit: NonZeroUsize,

    /// Go on where an earlier list has stopped
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,

    /// Show results, and the bodies of unsent messages, which may hold personal data
    #[arg(long)]
    show_result: bool,
}

pub(crate) async fn run(
    table: &Table,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    eprintln!(
        "{}",
        match &arguments.index {
            Some(index) => format!(
                "asking the index {index}: about 32 read units, and those of the records in it"
            ),
            None => scan::cost(table, arguments.limit).await?,
        }
    );
    let after = arguments.cursor.as_deref().map(Cursor::from_text);
    let left = arguments.unsent.then_some(Left::Messages);
    let read = scan::read(table, arguments.limit, after, left).await?;
    let (now, count) = (table.now(), read.entries.len());
    let is_wanted = |entry: &&view::Entry| {
        let operation = arguments.operation.as_deref();
        let state = &arguments.state;
        operation.is_none_or(|name| entry.operation() == name)
            && (state.is_empty() || state.contains(&entry.state(now)))
            && (!arguments.unsent || entry.is_unsent())
    };
    let shown: Vec<_> = read.entries.iter().filter(is_wanted).collect();
    let next = read.next.as_ref().map(Cursor::as_str);
    if as_json {
        let records = shown.iter().map(|entry| view::json(entry, now, arguments.show_result));
        let records: Vec<_> = records.collect();
        print_json(&json!({ "records": records, "read": count, "next": next }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = String::new();
    for entry in &shown {
        page.push_str(&view::text(entry, now, arguments.show_result));
        page.push('\n');
    }
    page.push_str(&format!("{} of {count} items that were read", shown.len()));
    let place = if arguments.index.is_some() { "index" } else { "table" };
    match next {
        Some(next) => {
            page.push_str(&format!(
                "; there are more:{} --cursor {}",
                found_by(arguments),
                quoted(next)
            ));
        }
        None => page.push_str(&format!("; that was the whole {place}")),
    }
    print(&page)?;
    Ok(ExitCode::SUCCESS)
}

/// The arguments without which a cursor means another place.
fn found_by(arguments: &Arguments) -> String {
    let unsent = if arguments.unsent { " --unsent" } else { "" };
    let index = arguments.index.as_deref().map(|index| format!(" --index {}", quoted(index)));
    format!("{unsent}{}", index.unwrap_or_default())
}

/// A text as an argument of a shell. Keys come from events, and this one is copied into a command.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
