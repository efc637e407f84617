//! The statements, as text.
//!
//! A statement applies any number of writes: one row for each, of which [`rows`] has the text.
//!
//! At a higher level of isolation the server gives up one of two that meet (`40001`), and the store sends it again.
//!
//! An `insert` returns what it found for the keys that have a record: that is how duplicates are answered. At the isolation
//! level `READ COMMITTED` it sees what was committed before it began, and may not insert because of a record that is
//! newer. Then it finds none, and the write is sent again. Or it waits for a transaction that changes the record, and finds the
//! record as it was before: inserting and looking share a snapshot. A duplicate that meets a completion which is being committed
//! is told that the key is in progress. That is safe, because a takeover names the version that it replaces, and fails.
//!
//! An `update` and a `delete` return the keys that they wrote. The others are read with `read` in another transaction: a
//! worker rarely loses its key.
//!
//! Two transactions never wait for each other in a circle, because each waits for keys in ascending order. First it
//! inserts: an insert waits for other inserts of its key, while its transaction holds lower keys only. Then it locks rows
//! that exist, either by `lock`, after which nothing waits, or by a single `update` or `delete`, whose [plan](MANY) takes
//! its rows in the order in which they are sent. Rows whose insert is not committed are not seen by then.

use std::borrow::Cow;

use lambda_idempotency_core::{
    browse::{Left, PageBuilder},
    store::Extent,
};

use crate::{
    config::Table,
    guard::{GUARD_COLUMNS, guard},
    item::{COLUMNS, Source, rows},
};

/// Settings for the planner of a transaction with a single key, which knows little of a table that is new or growing: an index
/// finds the key.
pub(crate) const ONE: &str = "; SET LOCAL enable_seqscan = off";
/// The same for several keys: an index finds each key, in their order. Without it, a batch reads all
/// of a table that has less than about a hundred records for each of its keys.
pub(crate) const MANY: &str = "; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; \
     SET LOCAL enable_mergejoin = off";

/// The text of every statement of a store.
#[derive(Debug)]
pub(crate) struct Statements {
    table: String,
    /// Each [change](Change::ALL) of a single record.
    one: [String; Change::ALL.len()],
    /// Locks the rows of these keys, in their order.
    pub(crate) lock: String,
    /// Reads the records of these keys.
    pub(crate) read: String,
    /// Reads some records, in the order of their keys, after a key.
    pub(crate) page: String,
    /// The same, of records with messages and of records with a payload.
    pub(crate) left: [String; 2],
    /// Counts the records.
    pub(crate) count: String,
    /// Deletes some records that expired before an age, by the server's clock and by that of its client.
    pub(crate) sweep: String,
    /// Says of the server its version, whether it keeps what it has confirmed, whether the role may write, whether the server
    /// keeps the table, whether it has one row for each key, and whether the role sees all of them.
    pub(crate) check: String,
}

/// A statement that writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Inserts records whose keys have none. Returns what it finds for the others.
    Insert,
    /// Changes so much of the records whose guard holds, and nothing else: a text that is not named is not sent, and not
    /// written again. Returns the keys that it wrote.
    Update(Extent),
    /// Deletes records whose guard holds. Returns the keys that it deleted.
    Delete,
}

impl Change {
    /// In the order in which a transaction has them.
    pub(crate) const ALL: [Self; 5] = [
        Self::Insert,
        Self::Update(Extent::Record),
        Self::Update(Extent::Lease),
        Self::Update(Extent::Outbox),
        Self::Delete,
    ];

    /// Whether its rows have the value of this column of the record.
    pub(crate) fn has(self, name: &str) -> bool {
        match self {
            Self::Insert | Self::Update(Extent::Record) => true,
            Self::Update(Extent::Lease) => ["lease_until", "expires_at", "steps"].contains(&name),
            Self::Update(Extent::Outbox) | Self::Delete => false,
        }
    }

    /// The columns of its rows.
    fn columns(self) -> Vec<(&'static str, &'static str)> {
        let record = COLUMNS.iter().filter(|(name, _)| self.has(name));
        let guard = GUARD_COLUMNS.iter().filter(|_| self != Self::Insert);
        [("key", "text")].iter().chain(record).chain(guard).copied().collect()
    }

    fn text(self, table: &str, are_arrays: &[bool]) -> String {
        let Source { values, from } = rows(&self.columns(), are_arrays);
        let value = |name: &str| values.get(name).map_or("NULL", |value| &**value);
        let source =
            |word: &str| from.as_ref().map_or(String::new(), |from| format!(" {word} {from}"));
        let key = value("key");
        match self {
            Self::Insert => {
                let inserted = COLUMNS.map(|(name, _)| value(name)).join(", ");
                let names = COLUMNS.map(|(name, _)| name).join(", ");
                let (rows, keys, returned) = (source("FROM"), keys(from.is_some()), returned("t."));
                format!(
                    "WITH written AS (INSERT INTO {table} (key, {names}) SELECT {key}, {inserted}{rows} \
                     ON CONFLICT (key) DO NOTHING RETURNING key) \
                     SELECT {returned}, k.key FROM {keys} AS k(key) \
                     LEFT JOIN {table} AS t ON t.key = k.key \
                     WHERE k.key NOT IN (SELECT key FROM written)"
                )
            }
            Self::Update(extent) => {
                let set = |(name, _): &(&str, _)| {
                    let new = value(name);
                    match (*name, extent) {
                        // A write of the claim's owner, or of an operator, has the provenance of the claim, of which
                        // another version may have stored more: it stays as it is.
                        ("provenance", Extent::Record) => Some(format!(
                            "provenance = CASE WHEN {new} IS NOT NULL AND ({owner} IS NULL OR {owner} = t.owner) \
                             THEN t.provenance ELSE {new} END",
                            owner = value("owner"),
                        )),
                        ("steps", Extent::Lease) => {
                            Some(format!("steps = coalesce({new}, t.steps)"))
                        }
                        ("outbox", Extent::Outbox) => Some("outbox = NULL".to_owned()),
                        _ => self.has(name).then(|| format!("{name} = {new}")),
                    }
                };
                let set = COLUMNS.iter().filter_map(set).collect::<Vec<_>>().join(", ");
                let (rows, guard) = (source("FROM"), guard(value));
                format!(
                    "UPDATE {table} AS t SET {set}{rows} WHERE t.key = {key} AND {guard} RETURNING t.key"
                )
            }
            Self::Delete => {
                let (rows, guard) = (source("USING"), guard(value));
                format!(
                    "DELETE FROM {table} AS t{rows} WHERE t.key = {key} AND {guard} RETURNING t.key"
                )
            }
        }
    }
}

/// The first parameter as rows.
const fn keys(are_many: bool) -> &'static str {
    if are_many { "unnest($1::text[])" } else { "(VALUES ($1::text))" }
}

impl Statements {
    pub(crate) fn of(table: &Table) -> Self {
        let table = table.to_string();
        let returned = returned("");
        Self {
            one: Change::ALL.map(|change| change.text(&table, &[])),
            lock: format!(
                "SELECT count(*) FROM (SELECT FROM {table} WHERE key = ANY($1) \
                 ORDER BY key FOR UPDATE) AS locked"
            ),
            read: format!("SELECT {returned} FROM {table} WHERE key = ANY($1)"),
            page: page(&table, "", Left::unread(None)),
            left: [
                page(&table, " AND outbox IS NOT NULL", Left::unread(Some(Left::Messages))),
                page(&table, " AND payload IS NOT NULL", Left::unread(Some(Left::Work))),
            ],
            count: format!("SELECT count(*) FROM {table}"),
            sweep: format!(
                "DELETE FROM {table} WHERE key = ANY(ARRAY(SELECT key FROM {table} \
                 WHERE sweep_slot >= 0 \
                 AND sweep_slot < (least(extract(epoch FROM now()) * 1000, $3) - $1)::bigint >> 19 \
                 ORDER BY sweep_slot LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1"
            ),
            check: format!(
                "SELECT current_setting('server_version_num')::bigint, \
                 current_setting('fsync')::boolean \
                 AND current_setting('synchronous_commit') <> 'off', \
                 has_table_privilege('{table}', 'SELECT') AND has_table_privilege('{table}', 'INSERT') \
                 AND has_table_privilege('{table}', 'UPDATE') AND has_table_privilege('{table}', 'DELETE'), \
                 NOT EXISTS (SELECT FROM pg_class WHERE relpersistence <> 'p' AND (oid = '{table}'::regclass \
                 OR oid IN (SELECT relid FROM pg_partition_tree('{table}')))), \
                 EXISTS (SELECT FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid \
                 AND a.attnum = i.indkey[0] WHERE i.indrelid = '{table}'::regclass AND a.attname = 'key' \
                 AND i.indnkeyatts = 1 AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL), \
                 NOT row_security_active('{table}'::regclass::oid)"
            ),
            table,
        }
    }

    /// The text of a change whose parameters are arrays, or values that are the same in all rows.
    pub(crate) fn change(&self, change: Change, are_arrays: &[bool]) -> Cow<'_, str> {
        let one = Change::ALL.iter().zip(&self.one).find(|(of, _)| **of == change);
        match one {
            Some((_, one)) if !are_arrays.contains(&true) => Cow::Borrowed(one),
            _ => Cow::Owned(change.text(&self.table, are_arrays)),
        }
    }
}

/// The key and all columns, as `row` reads them.
fn returned(prefix: &str) -> String {
    returned_without(prefix, &[])
}

/// The same, with nothing in these columns of text.
fn returned_without(prefix: &str, unread: &[&str]) -> String {
    let columns = COLUMNS.map(|(name, sql_type)| match sql_type {
        _ if unread.contains(&name) => "NULL::text".to_owned(),
        "json" => format!("{prefix}{name}::text"),
        _ => format!("{prefix}{name}"),
    });
    format!("{prefix}key, {}", columns.join(", "))
}

/// The columns that may have megabytes.
const LARGE: [&str; 4] = ["result", "steps", "outbox", "payload"];

/// Reads the next records of which this is true, without these columns, as many as have room on a page. The last column says how many
/// there were before the bytes were counted.
fn page(table: &str, also: &str, unread: &[&str]) -> String {
    let returned = returned_without("", unread);
    let read = LARGE.iter().filter(|name| !unread.contains(*name));
    let sizes: Vec<_> = read.map(|name| format!("coalesce(octet_length({name}), 0)")).collect();
    let size = sizes.join(" + ");
    format!(
        "SELECT {returned}, of_limit FROM (SELECT *, sum({size}) OVER (ORDER BY key) AS of_bytes, \
         row_number() OVER (ORDER BY key) AS of_row, count(*) OVER () AS of_limit FROM (SELECT * FROM {table} \
         WHERE key > $1{also} ORDER BY key LIMIT $2) AS found) AS counted \
         WHERE of_bytes <= {} OR of_row = 1 ORDER BY key",
        PageBuilder::MAX_BYTES
    )
}
