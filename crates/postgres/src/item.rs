//! An [`IdempotencyRecord`] as the columns of a row, and back.
//!
//! Numbers are never rounded, because a guard compares them with the values that were read. PostgreSQL
//! has no unsigned numbers: one of 2^63 or more is stored as the negative number with the same bits.
//!
//! Most columns of a batch are the same in all rows, and so are all columns of a single row. A parameter is therefore one
//! value for all rows, or else an array.

use std::{borrow::Cow, collections::HashMap, error::Error};

use bytes::BytesMut;
use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    record::{Fingerprint, IdempotencyRecord, Owner, Provenance, Status},
};
use tokio_postgres::{
    Row,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

/// The columns beside the key, in the order of [`values`] and [`decode`], with their types.
pub(crate) const COLUMNS: [(&str, &str); 17] = [
    ("status", "text"),
    ("owner", "uuid"),
    ("last_owner", "uuid"),
    ("failed_attempts", "bigint"),
    ("lost_attempts", "bigint"),
    ("consecutive_losses", "bigint"),
    ("fence", "bigint"),
    ("lease_until", "bigint"),
    ("expires_at", "bigint"),
    ("fingerprint", "text"),
    ("result", "text"),
    ("steps", "text"),
    ("outbox", "text"),
    ("payload", "text"),
    ("error_type", "text"),
    ("application", "text"),
    ("provenance", "json"),
];

/// The value of a column, or of a guard. Text is borrowed from the record, since a result may be large.
#[derive(Debug, PartialEq)]
pub(crate) enum Value<'r> {
    Text(Option<Cow<'r, str>>),
    Number(Option<i64>),
    Token(Option<Token>),
    Flag(bool),
}

/// The values of a record, in the order of [`COLUMNS`].
pub(crate) fn values(record: &IdempotencyRecord) -> [Value<'_>; COLUMNS.len()] {
    let number = |number: u32| Value::Number(Some(number.into()));
    [
        Value::Text(Some(status_text(record.status).into())),
        Value::Token(record.owner.map(Token)),
        Value::Token(record.last_owner.map(Token)),
        number(record.failed_attempts),
        number(record.lost_attempts),
        number(record.consecutive_losses),
        Value::Number(Some(record.fence.cast_signed())),
        Value::Number(record.lease_until.map(millis)),
        Value::Number(Some(millis(record.expires_at))),
        text(record.fingerprint.as_ref().map(Fingerprint::as_str)),
        text(record.result.as_deref()),
        text(record.steps.as_deref()),
        text(record.outbox.as_deref()),
        text(record.payload.as_deref()),
        text(record.error_type.as_deref()),
        text(record.application.as_deref()),
        Value::Text(record.provenance.as_ref().map(|p| p.to_json().into())),
    ]
}

pub(crate) fn text(text: Option<&str>) -> Value<'_> {
    Value::Text(text.map(Cow::Borrowed))
}

/// The key of a row, which is its first column.
pub(crate) fn key(row: &Row) -> Result<Key, Corrupt> {
    let text = row.try_get::<_, &str>(0).map_err(|_| corrupt("key", "is not text"))?;
    Ok(Key::from_text(text))
}

/// The key that was to be inserted: the last column of what was found.
pub(crate) fn wanted(row: &Row) -> Result<&str, Corrupt> {
    row.try_get(COLUMNS.len().saturating_add(1)).map_err(|_| corrupt("key", "is not text"))
}

/// Whether there is a record.
pub(crate) fn is_there(row: &Row) -> bool {
    !matches!(row.try_get::<_, Option<&str>>(0), Ok(None))
}

/// A row that is not an idempotency record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt {
    /// The column at fault.
    pub(crate) column: &'static str,
    /// Its problem; never its value.
    pub(crate) problem: &'static str,
}

/// Reads a row: the key, then [`COLUMNS`].
pub(crate) fn decode(row: &Row) -> Result<IdempotencyRecord, Corrupt> {
    let text = |name| column::<&str>(row, name, "is not text");
    let number = |name| column::<i64>(row, name, "is not a bigint");
    let token = |name| -> Result<_, Corrupt> {
        Ok(column::<Token>(row, name, "is not a uuid")?.map(|Token(owner)| owner))
    };
    let instant = |name| -> Result<_, Corrupt> {
        Ok(number(name)?.map(|millis| Timestamp::from_millis(millis.cast_unsigned())))
    };
    let count = |name| {
        let unfit = |_| corrupt(name, "is negative, or too large for a count");
        u32::try_from(number(name)?.unwrap_or(0)).map_err(unfit)
    };
    let status = match text("status")? {
        Some("INPROGRESS") => Status::InProgress,
        Some("COMPLETED") => Status::Completed,
        Some("FAILED") => Status::PermanentlyFailed,
        _ => return Err(corrupt("status", "is not INPROGRESS, COMPLETED or FAILED")),
    };
    let mut record = IdempotencyRecord::new(status, Timestamp::EPOCH);
    record.owner = token("owner")?;
    record.last_owner = token("last_owner")?;
    record.failed_attempts = count("failed_attempts")?;
    record.lost_attempts = count("lost_attempts")?;
    record.consecutive_losses = count("consecutive_losses")?;
    record.fence = number("fence")?.unwrap_or(0).cast_unsigned();
    record.lease_until = instant("lease_until")?;
    record.expires_at =
        instant("expires_at")?.ok_or_else(|| corrupt("expires_at", "is missing"))?;
    record.fingerprint = text("fingerprint")?.map(Fingerprint::new);
    record.result = text("result")?.map(Into::into);
    record.steps = text("steps")?.map(Into::into);
    record.outbox = text("outbox")?.map(Into::into);
    record.payload = text("payload")?.map(Into::into);
    record.error_type = text("error_type")?.map(Into::into);
    record.application = text("application")?.map(Into::into);
    record.provenance = text("provenance")?.and_then(Provenance::from_json);
    Ok(record)
}

const fn corrupt(column: &'static str, problem: &'static str) -> Corrupt {
    Corrupt { column, problem }
}

/// A column of a row, behind the key.
fn column<'r, T: FromSql<'r>>(
    row: &'r Row,
    name: &'static str,
    problem: &'static str,
) -> Result<Option<T>, Corrupt> {
    let position = COLUMNS.iter().position(|(column, _)| *column == name);
    let position = position.map_or(usize::MAX, |position| position.saturating_add(1));
    row.try_get(position).map_err(|_| corrupt(name, problem))
}

/// How a status is stored: the words that all stores of this library use.
pub(crate) const fn status_text(status: Status) -> &'static str {
    match status {
        Status::InProgress => "INPROGRESS",
        Status::Completed => "COMPLETED",
        Status::PermanentlyFailed => "FAILED",
    }
}

/// An instant as it is stored.
pub(crate) const fn millis(instant: Timestamp) -> i64 {
    instant.as_millis().cast_signed()
}

/// An owner token, as a `uuid`: any 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token(pub(crate) Owner);

impl ToSql for Token {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0.to_bits().to_be_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Token {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Owner::from_bits(u128::from_be_bytes(raw.try_into()?))))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }
}

/// A parameter with its type. The server is told the types, so it need not be asked for them.
pub(crate) type Parameter<'p> = (Box<dyn ToSql + Send + Sync + 'p>, Type);

/// Parameters, column by column. The values of a column are of one kind.
#[derive(Default)]
pub(crate) struct Columns<'p>(Vec<Vec<Value<'p>>>);

impl<'p> Columns<'p> {
    /// Adds a row. All rows have the same columns.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = Value<'p>>) {
        for (position, value) in row.into_iter().enumerate() {
            match self.0.get_mut(position) {
                Some(column) => column.push(value),
                None => self.0.push(vec![value]),
            }
        }
    }

    pub(crate) const fn are_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The parameters, in the order of the columns, and which of them are arrays.
    pub(crate) fn parameters(self) -> (Vec<Parameter<'p>>, Vec<bool>) {
        self.0.into_iter().map(parameter).unzip()
    }
}

/// The parameter of a column, and whether it is an array.
fn parameter(mut column: Vec<Value<'_>>) -> (Parameter<'_>, bool) {
    let (one, many) = match column.first() {
        Some(Value::Number(_)) => (Type::INT8, Type::INT8_ARRAY),
        Some(Value::Token(_)) => (Type::UUID, Type::UUID_ARRAY),
        Some(Value::Flag(_)) => (Type::BOOL, Type::BOOL_ARRAY),
        Some(Value::Text(_)) | None => (Type::TEXT, Type::TEXT_ARRAY),
    };
    let is_the_same = column.windows(2).all(|pair| matches!(pair, [a, b] if a == b));
    match column.pop() {
        Some(value) if is_the_same => ((Box::new(value), one), false),
        last => {
            column.extend(last);
            ((Box::new(column), many), true)
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Text(text) => text.to_sql(ty, out),
            Self::Number(number) => number.to_sql(ty, out),
            Self::Token(token) => token.to_sql(ty, out),
            Self::Flag(flag) => flag.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::TEXT, Type::INT8, Type::UUID, Type::BOOL].contains(ty)
    }

    to_sql_checked!();
}

/// Keys as one array.
pub(crate) fn keys<'k>(keys: impl Iterator<Item = &'k str>) -> Parameter<'k> {
    (Box::new(keys.collect::<Vec<_>>()), Type::TEXT_ARRAY)
}

/// A number.
pub(crate) fn number(number: i64) -> Parameter<'static> {
    (Box::new(number), Type::INT8)
}

/// The rows that the parameters `$1`, `$2`, ... are.
pub(crate) struct Source<'c> {
    /// The text of a value of a row, for each column.
    pub(crate) values: HashMap<&'c str, String>,
    /// Where the rows come from: `unnest` makes them of the parameters that are arrays, in their order. `None` if there is
    /// none, and so a single row.
    pub(crate) from: Option<String>,
}

/// The rows of these columns, of which some are arrays. A `json` column is sent as text.
pub(crate) fn rows<'c>(columns: &[(&'c str, &str)], are_arrays: &[bool]) -> Source<'c> {
    let mut values = HashMap::with_capacity(columns.len());
    let (mut arrays, mut names) = (Vec::new(), Vec::new());
    let are_arrays = are_arrays.iter().copied().chain(std::iter::repeat(false));
    for ((number, (name, sql_type)), is_array) in (1..).zip(columns).zip(are_arrays) {
        let (sent, cast) = if *sql_type == "json" { ("text", "::json") } else { (*sql_type, "") };
        let value = if is_array {
            arrays.push(format!("${number}::{sent}[]"));
            names.push(*name);
            format!("w.{name}{cast}")
        } else {
            format!("${number}::{sent}{cast}")
        };
        values.insert(*name, value);
    }
    let unnest = || format!("unnest({}) AS w({})", arrays.join(", "), names.join(", "));
    Source { values, from: (!arrays.is_empty()).then(unnest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: [(&str, &str); 3] = [("key", "text"), ("fence", "bigint"), ("provenance", "json")];

    #[test]
    fn what_is_the_same_in_all_rows_is_sent_once() {
        let Source { values, from } = rows(&SOME, &[true, false, true]);
        assert_eq!(from.as_deref(), Some("unnest($1::text[], $3::text[]) AS w(key, provenance)"));
        assert_eq!(values["key"], "w.key");
        assert_eq!(values["fence"], "$2::bigint");
        assert_eq!(values["provenance"], "w.provenance::json");
    }

    #[test]
    fn a_single_row_needs_no_arrays() {
        let Source { values, from } = rows(&SOME, &[]);
        assert_eq!(from, None);
        assert_eq!(values["provenance"], "$3::text::json");
    }
}
