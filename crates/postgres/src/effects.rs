//! Statements that the store commits together with a completion.

use std::fmt;

use tokio_postgres::types::{ToSql, Type};

use crate::item::Parameter;

/// The most bytes of the values of a call. They are kept until the handler has returned.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The most parameters of a statement of PostgreSQL.
const MOST_VALUES: usize = 65_535;

/// The effects that a [`PostgresStore`](crate::PostgresStore) commits together with the completion of a key,
/// in one transaction: statements, in the order in which they were added.
///
/// ```
/// use lambda_idempotency_postgres::{PostgresEffects, PostgresStatement};
///
/// let mut effects = PostgresEffects::default();
/// let take = "UPDATE stock SET remaining = remaining - $1 WHERE item = $2 AND remaining >= $1";
/// effects.add(PostgresStatement::new(take).bind(2).bind("tea").expect_rows(1))?;
/// assert_eq!(
///     effects.add(PostgresStatement::new("COMMIT")).unwrap_err().to_string(),
///     "a statement that begins with COMMIT cannot be an effect: the store begins and ends the transaction"
/// );
/// # Ok::<(), lambda_idempotency_postgres::PostgresEffectError>(())
/// ```
#[derive(Default)]
pub struct PostgresEffects {
    statements: Vec<PostgresStatement>,
    bytes: usize,
}

/// Why a statement cannot be an effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresEffectError {
    /// It would end the transaction.
    #[error(
        "a statement that begins with {0} cannot be an effect: the store begins and ends the transaction"
    )]
    OfTransaction(&'static str),
    /// It would exchange data with the server.
    #[error(
        "a statement that begins with COPY cannot be an effect: the store has no data for it; use INSERT, for many rows \
         with `SELECT .. FROM unnest(..)`"
    )]
    Copy,
    /// It has more values than PostgreSQL takes.
    #[error(
        "a statement takes {MOST_VALUES} values, and this one has {values}: bind arrays as text, or split it"
    )]
    TooManyValues {
        /// How many it has.
        values: usize,
    },
    /// It has a placeholder without a value.
    #[error(
        "the statement has a placeholder ${placeholder} and {values} values: bind a value for each"
    )]
    MissingValue {
        /// The highest placeholder.
        placeholder: usize,
        /// How many values are bound.
        values: usize,
    },
    /// Its text has a NUL character.
    #[error(
        "the text of the statement has a NUL character, which PostgreSQL does not take: bind values, and never write them into it"
    )]
    NulInText,
    /// A text has a NUL character.
    #[error("value {} has a NUL character, which a text of PostgreSQL cannot hold: bind it as bytes", .position + 1)]
    Nul {
        /// The position of the value, from 0.
        position: usize,
    },
    /// The values of the call are too large together.
    #[error(
        "the effects of this call have {bytes} bytes together, and {MOST_BYTES} are allowed: collect less in a call"
    )]
    TooLarge {
        /// How large they would be.
        bytes: usize,
    },
}

impl PostgresEffects {
    /// Adds a statement.
    ///
    /// # Errors
    /// It cannot be an effect. Statements that were added before stay.
    pub fn add(&mut self, statement: PostgresStatement) -> Result<(), PostgresEffectError> {
        if let Some(word) = of_transactions(statement.text()) {
            return Err(PostgresEffectError::OfTransaction(word));
        }
        if is_copy(statement.text()) {
            return Err(PostgresEffectError::Copy);
        }
        let values = statement.values().len();
        if values > MOST_VALUES {
            return Err(PostgresEffectError::TooManyValues { values });
        }
        if statement.text().contains('\0') {
            return Err(PostgresEffectError::NulInText);
        }
        let placeholder = highest_placeholder(statement.text());
        if placeholder > values {
            return Err(PostgresEffectError::MissingValue { placeholder, values });
        }
        if let Some(position) = statement.values().iter().position(PostgresValue::has_nul) {
            return Err(PostgresEffectError::Nul { position });
        }
        let bytes = self.bytes.saturating_add(statement.bytes());
        if bytes > MOST_BYTES {
            return Err(PostgresEffectError::TooLarge { bytes });
        }
        self.bytes = bytes;
        self.statements.push(statement);
        Ok(())
    }

    /// The statements, in the order in which they were added.
    #[must_use]
    pub fn statements(&self) -> &[PostgresStatement] {
        &self.statements
    }
}

/// Without the values, which are the application's data.
impl fmt::Debug for PostgresEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (statements, bytes) = (self.statements.len(), self.bytes);
        f.debug_struct("PostgresEffects")
            .field("statements", &statements)
            .field("bytes", &bytes)
            .finish()
    }
}

/// A statement with its values. `$1`, `$2`, ... stand for the values in the order in which they were bound.
///
/// The values have the types of PostgreSQL that [`PostgresValue`] names. Write a cast where the column has
/// another: `$1::uuid`, `$2::jsonb`, `$3::timestamptz`.
///
/// The statements of a record have 16 MB of values together, and reach tables of the same database with the role of the store.
/// Statements that end the transaction are refused, and so are `PREPARE` and `COPY`; none may be on the table of idempotency records.
/// Settings, locks and temporary tables that they leave on the connection are removed after the transaction. A constraint that is violated,
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
    /// Rows that it returns (`RETURNING`, `SELECT`) are counted for [`expect_rows`](Self::expect_rows), and not read.
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

    fn bytes(&self) -> usize {
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

/// A value of a statement, and its type.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum PostgresValue {
    /// `boolean`
    Bool(Option<bool>),
    /// `integer`
    Integer(Option<i32>),
    /// `bigint`
    BigInt(Option<i64>),
    /// `double precision`
    Double(Option<f64>),
    /// `text`. It cannot hold a NUL character.
    Text(Option<String>),
    /// `bytea`
    Bytes(Option<Vec<u8>>),
}

impl PostgresValue {
    fn parameter(&self) -> Parameter<'_> {
        let (value, sql_type): (Box<dyn ToSql + Send + Sync + '_>, _) = match self {
            Self::Bool(value) => (Box::new(value), Type::BOOL),
            Self::Integer(value) => (Box::new(value), Type::INT4),
            Self::BigInt(value) => (Box::new(value), Type::INT8),
            Self::Double(value) => (Box::new(value), Type::FLOAT8),
            Self::Text(value) => (Box::new(value), Type::TEXT),
            Self::Bytes(value) => (Box::new(value), Type::BYTEA),
        };
        (value, sql_type)
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text(Some(text)) => text.len(),
            Self::Bytes(Some(bytes)) => bytes.len(),
            _ => 8,
        }
    }

    fn has_nul(&self) -> bool {
        matches!(self, Self::Text(Some(text)) if text.contains('\0'))
    }
}

/// Makes a value of each of these types, and of an `Option` of it.
macro_rules! values {
    ($($from:ty => $variant:ident)+) => { $(
        impl From<$from> for PostgresValue {
            fn from(value: $from) -> Self {
                Self::$variant(Some(value.into()))
            }
        }

        impl From<Option<$from>> for PostgresValue {
            fn from(value: Option<$from>) -> Self {
                Self::$variant(value.map(Into::into))
            }
        }
    )+ };
}

values! {
    bool => Bool
    i32 => Integer
    i64 => BigInt
    f64 => Double
    String => Text
    &str => Text
    Vec<u8> => Bytes
    &[u8] => Bytes
}

/// Its type only, as the server names it.
impl fmt::Debug for PostgresValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.parameter().1.name())
    }
}

/// Statements that would end the transaction, or belong to one. `PREPARE TRANSACTION` ends it, and another `PREPARE` would stay
/// on the connection.
const OF_TRANSACTIONS: [&str; 9] =
    ["ABORT", "BEGIN", "COMMIT", "END", "PREPARE", "RELEASE", "ROLLBACK", "SAVEPOINT", "START"];

/// The word by which this statement begins, if it would end the transaction.
fn of_transactions(text: &str) -> Option<&'static str> {
    let first = first(text);
    OF_TRANSACTIONS.into_iter().find(|word| *word == first)
}

/// Whether it is a `COPY`, for which the server and its client exchange data.
fn is_copy(text: &str) -> bool {
    first(text) == "COPY"
}

/// Its first word, in capitals.
fn first(text: &str) -> String {
    let first = begun(text).split(|c: char| !c.is_ascii_alphabetic()).next();
    first.unwrap_or_default().to_ascii_uppercase()
}

/// The text from its first word on: without the spaces, comments and empty statements before it, which the server
/// passes over.
fn begun(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        if let Some(comment) = text.strip_prefix("--") {
            text = after_line(comment);
        } else if let Some(comment) = text.strip_prefix("/*") {
            text = after_comment(comment);
        } else {
            return text;
        }
    }
}

/// The text behind a comment to the end of its line.
fn after_line(text: &str) -> &str {
    text.split_once(['\n', '\r']).map_or("", |(_, rest)| rest)
}

/// The text behind a comment that has begun. Comments of PostgreSQL may contain others.
fn after_comment(mut text: &str) -> &str {
    let mut depth = 1_usize;
    while depth > 0 {
        let Some(at) = text.find(['/', '*']) else { return "" };
        text = text.get(at..).unwrap_or_default();
        let skipped = if text.starts_with("*/") {
            depth = depth.saturating_sub(1);
            2
        } else if text.starts_with("/*") {
            depth = depth.saturating_add(1);
            2
        } else {
            1
        };
        text = text.get(skipped..).unwrap_or_default();
    }
    text
}

/// The highest placeholder of this text: 2 where it has `$2` and none after it. Quoted text and comments have none.
fn highest_placeholder(text: &str) -> usize {
    let mut rest = text;
    let mut highest = 0;
    // Whether the character before is a part of a name, in which a dollar sign is one, too.
    let mut in_name = false;
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        let was_in_name = std::mem::take(&mut in_name);
        rest = match first {
            '\'' => after_quote(after, '\'', false),
            'e' | 'E' if !was_in_name && after.starts_with('\'') => {
                after_quote(after.get(1..).unwrap_or_default(), '\'', true)
            }
            '"' => after_quote(after, '"', false),
            '-' if after.starts_with('-') => after_line(after),
            '/' if after.starts_with('*') => after_comment(after.get(1..).unwrap_or_default()),
            '$' if !was_in_name => {
                let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
                let (number, behind) = after.split_at(digits);
                match number.parse::<usize>() {
                    Ok(number) => {
                        highest = highest.max(number);
                        behind
                    }
                    Err(_) => after_dollars(after),
                }
            }
            _ => {
                in_name = first.is_alphanumeric() || matches!(first, '_' | '$');
                after
            }
        };
    }
    highest
}

/// The text behind one in quotes. Two quotes are one of the text.
fn after_quote(text: &str, quote: char, has_escapes: bool) -> &str {
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        if has_escapes && char == '\\' {
            chars.next();
        } else if char == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return text.get(at.saturating_add(quote.len_utf8())..).unwrap_or_default();
        }
    }
    ""
}

/// The text behind one between dollar signs, as in `$$text$$` and `$tag$text$tag$`, after the first of them.
fn after_dollars(text: &str) -> &str {
    let is_tag = |tag: &&str| tag.chars().all(|c| c.is_alphanumeric() || c == '_');
    let Some((tag, body)) = text.split_once('$').filter(|(tag, _)| is_tag(tag)) else {
        return text;
    };
    body.split_once(&format!("${tag}$")).map_or("", |(_, behind)| behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_the_transaction_is_refused_however_it_is_written() {
        for text in [
            "COMMIT",
            " rollback;",
            "End",
            "begin\nwork",
            "savepoint a",
            "Start transaction",
            ";COMMIT",
            "-- at the end\ncommit",
            "/* of orders /* nested */ */ -- and\r COMMIT",
            "/**/ROLLBACK",
        ] {
            let error = PostgresEffects::default().add(PostgresStatement::new(text)).unwrap_err();
            assert!(matches!(error, PostgresEffectError::OfTransaction(_)), "{text}: {error}");
        }
        for text in ["COPY a FROM STDIN", "/* */ copy (SELECT 1) TO STDOUT"] {
            let error = PostgresEffects::default().add(PostgresStatement::new(text)).unwrap_err();
            assert_eq!(error, PostgresEffectError::Copy, "{text}");
        }
        for text in [
            "SELECT 1",
            "SET LOCAL app.tenant = 'a'",
            "COPYING()",
            "ENDORSE",
            "settle()",
            "INSERT INTO a VALUES (1)",
            "",
            "/* COMMIT",
            "/* /* */ COMMIT",
            "-- COMMIT",
            "/* COMMIT */ SELECT 1",
        ] {
            PostgresEffects::default().add(PostgresStatement::new(text)).unwrap();
        }
    }

    #[test]
    fn values_that_cannot_be_sent_are_refused_and_none_is_shown() {
        let nul = PostgresStatement::new("SELECT $1, $2").bind(1).bind("s3cr3t\0");
        assert_eq!(
            PostgresEffects::default().add(nul).unwrap_err().to_string(),
            "value 2 has a NUL character, which a text of PostgreSQL cannot hold: bind it as bytes"
        );
        let mut effects = PostgresEffects::default();
        let half = || PostgresStatement::new("SELECT $1").bind(vec![7; MOST_BYTES / 2]);
        effects.add(half()).unwrap();
        let error = effects.add(half()).unwrap_err();
        assert!(matches!(error, PostgresEffectError::TooLarge { .. }), "{error}");
        let refused = |text: &str| {
            PostgresEffects::default().add(PostgresStatement::new(text).bind(1)).unwrap_err()
        };
        assert_eq!(refused("SELECT $1, 's3cr3t\0'"), PostgresEffectError::NulInText);
        let error = refused("UPDATE seats SET taken = $2 WHERE seat = $1");
        assert_eq!(error, PostgresEffectError::MissingValue { placeholder: 2, values: 1 });
        let many = (0..=MOST_VALUES).fold(PostgresStatement::new(""), |all, _| all.bind(true));
        let error = PostgresEffects::default().add(many).unwrap_err();
        assert_eq!(error, PostgresEffectError::TooManyValues { values: MOST_VALUES + 1 });
        let secret = PostgresStatement::new("s3cr3t").bind("s3cr3t").bind(None::<i64>);
        let shown = format!("{secret:?} {:?}", secret.values());
        assert!(!shown.contains("s3cr3t") && shown.contains("[text, int8]"), "{shown}");
        effects.add(secret).unwrap();
        assert!(!format!("{effects:?}").contains("s3cr3t"), "{effects:?}");
    }

    #[test]
    fn placeholders_are_counted_where_the_server_reads_them() {
        for (text, expected) in [
            ("", 0),
            ("SELECT 1", 0),
            ("UPDATE stock SET n = n - $1 WHERE item = $2 AND n >= $1", 2),
            ("SELECT $10::text", 10),
            ("SELECT'$3'||$1", 1),
            ("SELECT 'it''s $3', \"$4\", $1", 1),
            (r"SELECT E'\' $3', e'$4', $1", 1),
            (r"SELECT '\', $1", 1),
            (r"SELECT size'$2'", 0),
            ("SELECT $1 -- $2\n, $3", 3),
            ("SELECT $1 /* $2 /* $3 */ $4 */, 'ä' || $5", 5),
            ("SELECT $1 /* $2", 1),
            ("SELECT $$ $2 $$, $a$ $3 $$ $a$, $1", 1),
            ("SELECT $$ $2", 0),
            ("SELECT a$1, $2", 2),
            ("SELECT $", 0),
        ] {
            assert_eq!(highest_placeholder(text), expected, "{text}");
        }
    }
}
