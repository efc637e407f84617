//! The statements, as text.
//!
//! Each takes arrays, one for each column, and so applies any number of writes. `unnest` makes rows of
//! them, in their order.
//!
//! The statements of a call are sent together, in one transaction at the isolation level
//! `READ COMMITTED`, where each statement sees what was committed before it began. So `found`, the last
//! one, sees the record because of which a guard failed, or one that is newer.
//!
//! Two transactions never wait for each other in a circle. First `insert` waits for inserts of the same
//! key, in the order of the keys, and holds none but lower ones. Then `lock` waits for locked rows, in
//! the order of the keys; it does not see rows whose insert is not committed. Nothing after it waits.

use crate::{row::COLUMNS, table::Table};

/// The columns of a guard, after those of the record. `guard_exact` says whether it is
/// `Unchanged`, which names all of them, or `OwnedBy`, which names the first two.
pub(crate) const GUARD_COLUMNS: [(&str, &str); 6] = [
    ("guard_status", "text"),
    ("guard_owner", "uuid"),
    ("guard_exact", "boolean"),
    ("guard_last_owner", "uuid"),
    ("guard_lease_until", "bigint"),
    ("guard_expires_at", "bigint"),
];

/// The guard of a row `w` holds for the row `t` that is stored.
const GUARD_HOLDS: &str = "t.status = w.guard_status AND t.owner IS NOT DISTINCT FROM w.guard_owner \
     AND (NOT w.guard_exact OR (t.last_owner IS NOT DISTINCT FROM w.guard_last_owner \
     AND t.lease_until IS NOT DISTINCT FROM w.guard_lease_until \
     AND t.expires_at = w.guard_expires_at))";

/// The text of every statement of a store.
#[derive(Debug)]
pub(crate) struct Statements {
    /// Inserts records whose keys have none. Returns the keys that it wrote.
    pub(crate) insert: String,
    /// Locks the rows of these keys, in their order.
    pub(crate) lock: String,
    /// Replaces records whose guard holds. Returns the keys that it wrote.
    pub(crate) update: String,
    /// Deletes records whose guard holds. Returns the keys that it deleted.
    pub(crate) delete: String,
    /// Reads the records of these keys that this transaction has not written.
    pub(crate) found: String,
    /// Reads the records of these keys.
    pub(crate) read: String,
    /// Reads some records, in the order of their keys, after a key.
    pub(crate) page: String,
    /// Counts the records.
    pub(crate) count: String,
    /// Deletes some records that expired before an age, by the server's clock.
    pub(crate) sweep: String,
    /// Says of the server its version, whether it keeps what it has confirmed, whether the role may write,
    /// and whether the server keeps the table.
    pub(crate) check: String,
}

impl Statements {
    pub(crate) fn of(table: &Table) -> Self {
        let names = COLUMNS.map(|(name, _)| name).join(", ");
        let assignments = COLUMNS.map(|(name, sql_type)| format!("{name} = w.{name}::{sql_type}"));
        let assignments = assignments.join(", ");
        let inserted = COLUMNS.map(|(name, sql_type)| format!("w.{name}::{sql_type}")).join(", ");
        let returned = returned();
        let record = || [("key", "text")].into_iter().chain(COLUMNS);
        let rows = unnest(record());
        let guarded_rows = unnest(record().chain(GUARD_COLUMNS));
        let guards = unnest([("key", "text")].into_iter().chain(GUARD_COLUMNS));
        Self {
            insert: format!(
                "INSERT INTO {table} (key, {names}) SELECT w.key, {inserted} FROM {rows} \
                 ON CONFLICT (key) DO NOTHING RETURNING key"
            ),
            lock: format!(
                "SELECT count(*) FROM (SELECT FROM {table} WHERE key = ANY($1) \
                 ORDER BY key FOR UPDATE) AS locked"
            ),
            update: format!(
                "UPDATE {table} AS t SET {assignments} FROM {guarded_rows} \
                 WHERE t.key = w.key AND {GUARD_HOLDS} RETURNING t.key"
            ),
            delete: format!(
                "DELETE FROM {table} AS t USING {guards} \
                 WHERE t.key = w.key AND {GUARD_HOLDS} RETURNING t.key"
            ),
            found: format!(
                "SELECT {returned} FROM {table} WHERE key = ANY($1) \
                 AND xmin IS DISTINCT FROM pg_current_xact_id_if_assigned()::xid"
            ),
            read: format!("SELECT {returned} FROM {table} WHERE key = ANY($1)"),
            page: format!("SELECT {returned} FROM {table} WHERE key > $1 ORDER BY key LIMIT $2"),
            count: format!("SELECT count(*) FROM {table}"),
            sweep: format!(
                "DELETE FROM {table} WHERE key = ANY(ARRAY(SELECT key FROM {table} \
                 WHERE expires_at >= 0 AND expires_at < extract(epoch FROM now()) * 1000 - $1 \
                 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1"
            ),
            check: format!(
                "SELECT current_setting('server_version_num')::bigint, \
                 current_setting('fsync')::boolean \
                 AND current_setting('synchronous_commit') <> 'off', \
                 has_table_privilege('{table}', 'SELECT') AND has_table_privilege('{table}', 'INSERT') \
                 AND has_table_privilege('{table}', 'UPDATE') AND has_table_privilege('{table}', 'DELETE'), \
                 (SELECT relpersistence = 'p' FROM pg_class WHERE oid = '{table}'::regclass)"
            ),
        }
    }
}

/// The key and all columns, as `row` reads them.
fn returned() -> String {
    let columns = COLUMNS.map(|(name, sql_type)| match sql_type {
        "json" => format!("{name}::text"),
        _ => name.to_owned(),
    });
    format!("key, {}", columns.join(", "))
}

/// The parameters `$1`, `$2`, ... as rows `w` of these columns. A `json` column is sent as text.
fn unnest<'c>(columns: impl Iterator<Item = (&'c str, &'c str)>) -> String {
    let (mut arrays, mut names) = (Vec::new(), Vec::new());
    for (number, (name, sql_type)) in (1..).zip(columns) {
        let sql_type = if sql_type == "json" { "text" } else { sql_type };
        arrays.push(format!("${number}::{sql_type}[]"));
        names.push(name);
    }
    format!("unnest({}) AS w({})", arrays.join(", "), names.join(", "))
}
