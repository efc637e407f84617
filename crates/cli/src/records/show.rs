//! `records show`

use std::process::ExitCode;

use clap::Args;
use lambda_idempotency_core::key::Key;
use serde_json::{Value, json};

use super::{
    connect::Table,
    print, print_json,
    target::{self, Asked, Target},
    view,
};
use crate::failure::Failure;

/// Show the idempotency records of keys, or of the records of an event
///
/// With `--event` the keys are made as the function makes them; say what its operation says (`--operation`, `--key`, and
/// so on), as for `lambda-idempotency keys`. Exit code 1: a key has no record.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Show results, also those of steps, and the bodies of unsent messages, which may hold personal data
    #[arg(long)]
    show_result: bool,
}

pub(crate) async fn run(
    table: &Table,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let keys = arguments.target.keys()?;
    let found = table_records(table, &keys).await?;
    let now = table.now();
    let is_complete = found.iter().all(|(_, entry)| entry.is_some());
    if as_json {
        let records = found.iter().map(|(key, entry)| match entry {
            Some(entry) => view::json(entry, now, arguments.show_result),
            None => json!({
                "key": key.as_str(), "operation": view::operation(key), "state": Value::Null,
            }),
        });
        print_json(&json!({ "records": records.collect::<Vec<_>>() }))?;
    } else {
        let pages = found.iter().map(|(key, entry)| match entry {
            Some(entry) => view::text(entry, now, arguments.show_result),
            None => view::absent(key, "no record: the next delivery is new work"),
        });
        print(&pages.collect::<Vec<_>>().join("\n"))?;
    }
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The record of each key; an item that cannot be read is shown as such.
async fn table_records(
    table: &Table,
    asked: &[Asked],
) -> Result<Vec<(Key, Option<view::Entry>)>, Failure> {
    let found = target::look_up(table, asked).await?;
    let entry = |key: &Key, found| view::Entry { key: key.clone(), found };
    let all = asked.iter().zip(found).map(|(Asked { key, .. }, found)| {
        (key.clone(), found.transpose().map(|found| entry(key, found)))
    });
    Ok(all.collect())
}
