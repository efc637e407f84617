//! An [`IdempotencyRecord`] as the columns of a row, and back.
//!
//! Numbers are never rounded, because a guard compares them with the values that were read. PostgreSQL
//! has no unsigned numbers: one of 2^63 or more is stored as the negative number with the same bits.

use std::{borrow::Cow, error::Error, sync::Arc};

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

/// The value of a column. Text is borrowed from the record, since a result may be large.
pub(crate) enum Value<'r> {
    Text(Option<Cow<'r, str>>),
    Number(Option<i64>),
    Token(Option<Token>),
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

fn text(text: Option<&str>) -> Value<'_> {
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
    /// What is wrong with it; never its value.
    pub(crate) problem: &'static str,
}

/// Reads a row: the key, then [`COLUMNS`].
pub(crate) fn decode(row: &Row) -> Result<IdempotencyRecord, Corrupt> {
    let mut read = Reader { row, columns: COLUMNS.iter(), next: 0 };
    let status = match read.text()?.as_deref() {
        Some("INPROGRESS") => Status::InProgress,
        Some("COMPLETED") => Status::Completed,
        Some("FAILED") => Status::PermanentlyFailed,
        _ => return Err(corrupt("status", "is not INPROGRESS, COMPLETED or FAILED")),
    };
    let mut record = IdempotencyRecord::new(status, Timestamp::EPOCH);
    record.owner = read.token()?;
    record.last_owner = read.token()?;
    record.failed_attempts = read.count()?;
    record.lost_attempts = read.count()?;
    record.consecutive_losses = read.count()?;
    record.fence = read.number()?.unwrap_or(0).cast_unsigned();
    record.lease_until = read.instant()?;
    record.expires_at = read.instant()?.ok_or_else(|| corrupt("expires_at", "is missing"))?;
    record.fingerprint = read.text()?.map(Fingerprint::new);
    record.result = read.text()?.map(Into::into);
    record.steps = read.text()?.map(Into::into);
    record.outbox = read.text()?.map(Into::into);
    record.payload = read.text()?.map(Into::into);
    record.error_type = read.text()?;
    record.application = read.text()?;
    record.provenance = read.text()?.as_deref().and_then(Provenance::from_json);
    Ok(record)
}

const fn corrupt(column: &'static str, problem: &'static str) -> Corrupt {
    Corrupt { column, problem }
}

/// Reads the columns of a row one after the other.
struct Reader<'r> {
    row: &'r Row,
    columns: std::slice::Iter<'static, (&'static str, &'static str)>,
    next: usize,
}

impl<'r> Reader<'r> {
    fn take<T: FromSql<'r>>(&mut self, problem: &'static str) -> Result<Option<T>, Corrupt> {
        let column = self.columns.next().map_or("?", |(name, _)| name);
        self.next = self.next.saturating_add(1);
        self.row.try_get(self.next).map_err(|_| corrupt(column, problem))
    }

    fn text(&mut self) -> Result<Option<Arc<str>>, Corrupt> {
        Ok(self.take::<&str>("is not text")?.map(Arc::from))
    }

    fn token(&mut self) -> Result<Option<Owner>, Corrupt> {
        Ok(self.take::<Token>("is not a uuid")?.map(|Token(owner)| owner))
    }

    fn number(&mut self) -> Result<Option<i64>, Corrupt> {
        self.take("is not a bigint")
    }

    fn instant(&mut self) -> Result<Option<Timestamp>, Corrupt> {
        Ok(self.number()?.map(|millis| Timestamp::from_millis(millis.cast_unsigned())))
    }

    fn count(&mut self) -> Result<u32, Corrupt> {
        let column = self.columns.as_slice().first().map_or("?", |(name, _)| name);
        let number = self.number()?.unwrap_or(0);
        u32::try_from(number).map_err(|_| corrupt(column, "is negative, or too large for a count"))
    }
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
