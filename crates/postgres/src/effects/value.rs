//! The values of a statement, with their types.

use std::fmt;

use tokio_postgres::types::{ToSql, Type};

use crate::parameters::Parameter;

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
    pub(super) fn parameter(&self) -> Parameter<'_> {
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

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(Some(text)) => text.len(),
            Self::Bytes(Some(bytes)) => bytes.len(),
            _ => 8,
        }
    }

    pub(super) fn has_nul(&self) -> bool {
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

/// Its type only.
impl fmt::Debug for PostgresValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool(_) => "boolean",
            Self::Integer(_) => "integer",
            Self::BigInt(_) => "bigint",
            Self::Double(_) => "double precision",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytea",
        })
    }
}
