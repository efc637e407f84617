//! Reading many items, and saying before what that costs.

use std::num::NonZeroUsize;

use aws_sdk_dynamodb::error::SdkError;
use lambda_idempotency_core::browse::{Browse as _, Cursor, Left};
use lambda_idempotency_dynamodb::{Attributes, Partition};

use super::{
    connect::{DynamoDbTable, Table},
    schema, sdk, servers,
    view::Entry,
};
use crate::failure::Failure;

/// The most items in one request: far below the megabyte that a page may have.
const PAGE: usize = 500;
/// What a read unit covers, in bytes.
const UNIT: u64 = 4096;

/// How many items were read, and where to go on.
pub(crate) struct Read {
    pub(crate) count: usize,
    pub(crate) next: Option<Cursor>,
}

/// Reads at most `limit` items after `after`: all, or at least those in which this is left. Each page is shown before the
/// next one is read, because the results of its records may be megabytes.
pub(crate) async fn read(
    table: &Table,
    limit: NonZeroUsize,
    after: Option<Cursor>,
    of: Option<Left>,
    mut show: impl FnMut(Entry),
) -> Result<Read, Failure> {
    let (mut count, mut next, mut left) = (0usize, after, limit.get());
    while let Some(page) = NonZeroUsize::new(left.min(PAGE)) {
        let page = match of {
            Some(of) => table.store.left(of, next.as_ref(), page, servers::deadline()),
            None => table.store.page(next.as_ref(), page, servers::deadline()),
        };
        let page = page.await?;
        left = left.saturating_sub(page.items.len());
        count = count.saturating_add(page.items.len());
        page.items.into_iter().for_each(|(key, found)| show(Entry { key, found }));
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    Ok(Read { count, next })
}

/// What reading so many items costs at most, by the size that DynamoDB knows (it counts every six hours). An error if
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
        Err(error) => return Err(sdk::failure("DescribeTable", &table.name, error)),
    };
    let problems = described.iter().flat_map(|found| schema::problems(found, names));
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
