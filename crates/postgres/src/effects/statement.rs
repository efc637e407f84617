//! A statement of the user.

use std::fmt;

use super::PostgresValue;
use crate::parameters::Parameter;

/// A statement with its values. `$1`, `$2`, ... stand for the values in the order in which they were bound.
///
/// The values have the types of PostgreSQL that [`PostgresValue`] names. Write a cast where the column has
/// another: `$1::uuid`, `$2::jsonb`, `$3::timestamptz`.
///
/// The statements of a record have 16 MB of values together, and reach tables of the same database with the role of the store.
/// Those that end the transaction are refused, and so are `PREPARE` and `COPY`; none may be on the table of idempotency records. What
/// they leave on the connection (settings, locks, temporary tables) is removed after the transaction. A constraint that is violated,
/// and an exception that a function raises, are conditions that did not hold. One whose error may pass (`40001`, raised by a
/// function) is tried once more. Deadlocks, conflicts of transactions, locked rows, also with `NOWAIT`, and a server without
/// resources are no failure of the handler: the transaction is sent again until the deadline.
pub struct PostgresStatement {
    text: String,
    values: Vec<PostgresValue>,
    rows: Option<u64>,
}

impl PostgresStatement {
    /// A statement without values. Values belong into [`bind`](Self::bind), never into the text.
    ///
    /// What it returns (`RETURNING`, `SELECT`) is counted for [`expect_rows`](Self::expect_rows), and not read.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), values: Vec::new(), rows: None }
    }

    /// Binds the next value.
    #[must_use]
    pub fn bind(mut self, value: impl Into<PostgresValue>) -> Self {
        self.values.push(value.into());
        self
    }

    /// The condition of this effect: it has to change or return so many rows. Otherwise nothing is committed, and
    /// the handler's attempt has failed. Default: any number.
    #[must_use]
    pub fn expect_rows(mut self, rows: u64) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its values, in order.
    #[must_use]
    pub fn values(&self) -> &[PostgresValue] {
        &self.values
    }

    pub(crate) const fn expected_rows(&self) -> Option<u64> {
        self.rows
    }

    pub(crate) fn parameters(&self) -> Vec<Parameter<'_>> {
        self.values.iter().map(PostgresValue::parameter).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        self.values.iter().map(PostgresValue::bytes).sum::<usize>().saturating_add(self.text.len())
    }
}

/// Without the text and the values.
impl fmt::Debug for PostgresStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStatement")
            .field("values", &self.values.len())
            .finish_non_exhaustive()
    }
}
