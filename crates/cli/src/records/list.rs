//! `records list`: reads many items, and says before what that costs.

use std::{num::NonZeroUsize, process::ExitCode};

use aws_sdk_dynamodb::error::SdkError;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use clap::Args;
use lambda_idempotency_core::{
    browse::{Browse as _, Cursor, Left},
    clock::Timestamp,
    store::Store as _,
};
use lambda_idempotency_dynamodb::{Attributes, Partition};
use serde_json::json;

use super::{
    connect::{self, DynamoDbTable, Table},
    servers, table,
    view::{self, Entry, State, print, print_json},
};
use crate::{failure::Failure, terminal::tell};

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
    #[arg(long, value_name = "CURSOR", allow_hyphen_values = true)]
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
    tell(match &arguments.index {
        Some(index) => {
            format!("asking the index {index}: about 32 read units, and those of the records in it")
        }
        None => cost(table, arguments.limit).await?,
    });
    let after = arguments.cursor.as_deref().map(cursor).transpose()?;
    let (mut page, mut records, mut shown) = (String::new(), Vec::new(), 0usize);
    let read = read(table, arguments, after, |entry| {
        let now = table.now();
        shown += 1;
        if as_json {
            records.push(view::json(&entry, now, arguments.show_result));
        } else {
            page.push_str(&view::text(&entry, now, arguments.show_result));
            page.push('\n');
        }
    });
    let Read { count, next } = read.await?;
    let next = next.as_ref().map(printed);
    if as_json {
        print_json(&json!({ "records": records, "read": count, "next": next }))?;
        return Ok(ExitCode::SUCCESS);
    }
    page.push_str(&format!("{shown} of {count} items that were read"));
    let place = if arguments.index.is_some() { "index" } else { "table" };
    match next {
        Some(next) => {
            page.push_str(&format!("; there are more:{} --cursor {next}", found_by(arguments)));
        }
        None => page.push_str(&format!("; that was the whole {place}")),
    }
    print(&page)?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn wants(&self, entry: &view::Entry, now: Timestamp) -> bool {
        self.operation.as_deref().is_none_or(|name| entry.operation() == name)
            && (self.state.is_empty() || self.state.contains(&entry.state(now)))
            && (!self.unsent || entry.is_unsent())
    }
}

/// A cursor as it is printed. It may be a key, with any characters.
fn printed(cursor: &Cursor) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(cursor.as_str())
}

/// The cursor that was printed so.
fn cursor(printed: &str) -> Result<Cursor, Failure> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(printed).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or("--cursor is not one that a list has printed")?;
    Ok(Cursor::from_text(text))
}

/// The arguments without which a cursor means another place.
fn found_by(arguments: &Arguments) -> String {
    let unsent = if arguments.unsent { " --unsent" } else { "" };
    let index = arguments.index.as_deref().map(|index| format!(" --index {}", quoted(index)));
    format!("{unsent}{}", index.unwrap_or_default())
}

/// A text as an argument of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The most items in one request: far below the megabyte that a page may have.
const PAGE: usize = 500;
/// The size of a read unit, in bytes.
const UNIT: u64 = 4096;

/// How many items were read, and where to go on.
struct Read {
    count: usize,
    next: Option<Cursor>,
}

/// Reads the items after `after`, and shows those that are wanted. Each page is shown before the next one is read, because
/// the texts of its records may be megabytes.
async fn read(
    table: &Table,
    arguments: &Arguments,
    after: Option<Cursor>,
    mut show: impl FnMut(Entry),
) -> Result<Read, Failure> {
    let (mut count, mut next, mut left) = (0usize, after, arguments.limit.get());
    while let Some(page) = NonZeroUsize::new(left.min(PAGE)) {
        let page = match arguments.unsent {
            true => table.store.left(Left::Messages, next.as_ref(), page, servers::deadline()),
            false => table.store.page(next.as_ref(), page, servers::deadline()),
        };
        let page = page.await?;
        left = left.saturating_sub(page.items.len());
        count = count.saturating_add(page.items.len());
        let entries = page.items.into_iter().map(|(key, found)| Entry { key, found });
        let mut entries: Vec<_> =
            entries.filter(|entry| arguments.wants(entry, table.now())).collect();
        if arguments.show_result {
            read_whole(table, &mut entries).await;
        }
        entries.into_iter().for_each(&mut show);
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    Ok(Read { count, next })
}

/// Reads the records with their results, which a page does not have.
async fn read_whole(table: &Table, entries: &mut [Entry]) {
    let keys: Vec<_> = entries.iter().map(|entry| entry.key.clone()).collect();
    let read = table.store.read(&keys, servers::deadline()).await;
    for (entry, found) in entries.iter_mut().zip(read) {
        if let Some(found) = found.transpose() {
            entry.found = found;
        }
    }
}

/// The highest cost of reading so many items, by the size that DynamoDB knows (it counts every six hours). An error if
/// the table has another key: nothing in it could be read.
pub(crate) async fn cost(table: &Table, limit: NonZeroUsize) -> Result<String, Failure> {
    let limit = limit.get();
    let Some(DynamoDbTable { names, client }) = &table.dynamodb else {
        return Ok(format!("reading at most {limit} records of {}", table.name));
    };
    let described = client.describe_table().table_name(&table.name).send().await;
    let described = match described {
        Ok(output) => output.table,
        // Without the permission the cost is not known. A table that does not exist is named by the read.
        Err(SdkError::ServiceError(_)) => None,
        Err(error) => return Err(connect::failure("DescribeTable", &table.name, error)),
    };
    let problems = described.iter().flat_map(|found| table::key_problems(found, names));
    if let Some(problem) = problems.into_iter().next() {
        let failure = Failure::from(format!("table {}: {problem}", table.name));
        return Err(failure.remedy(
            "Tell this command of its key with --attributes FILE ({\"id\":\"NAME\"}), or --sort-key NAME and --partition TEXT \
             or --partition-prefix TEXT.",
        ));
    }
    let size = described.and_then(|table| {
        let (items, bytes) = (table.item_count?, table.table_size_bytes?);
        Some((u64::try_from(items).ok().filter(|items| *items > 0)?, u64::try_from(bytes).ok()?))
    });
    let Some((items, bytes)) = size else {
        return Ok(format!("reading at most {limit} items: a read unit for each 4 KB"));
    };
    let read = match is_shared(names) {
        true => bytes,
        false => (bytes / items).saturating_mul(items.min(limit as u64)),
    };
    let (size, units) = (bytes.div_ceil(1024), read.div_ceil(UNIT).max(1));
    Ok(format!(
        "reading at most {limit} of about {items} items ({size} KB): about {units} read units"
    ))
}

/// Whether reading passes over all items of the table, those of others too.
fn is_shared(names: &Attributes) -> bool {
    let partition = names.sort_key.as_ref().map(|sort_key| &sort_key.partition);
    matches!(partition, Some(Partition::Derived { .. }))
}
