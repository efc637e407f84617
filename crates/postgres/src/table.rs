//! The name of the table, checked and quoted.

use std::{fmt, sync::Arc};

use crate::config_error::PostgresConfigError;

/// The longest name that PostgreSQL keeps whole, less what the names of its indexes add.
const LONGEST: usize = 63 - "_sweep_slot".len();

/// A table, perhaps in a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    schema: Option<Arc<str>>,
    name: Arc<str>,
}

impl Table {
    /// Reads `table` or `schema.table`.
    pub(crate) fn parse(text: &str) -> Result<Self, PostgresConfigError> {
        let (schema, name) = match text.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, text),
        };
        if !is_fit(name) || schema.is_some_and(|schema| !is_fit(schema)) {
            return Err(PostgresConfigError::UnfitTable(text.to_owned()));
        }
        Ok(Self { schema: schema.map(Arc::from), name: Arc::from(name) })
    }

    /// As errors and logs name it.
    pub(crate) fn name(&self) -> impl fmt::Display + fmt::Debug + use<> {
        self.to_string().replace('"', "")
    }

    /// An index of the table, quoted. It is in the schema of its table.
    pub(crate) fn index(&self, of: &str) -> String {
        format!("\"{}_{of}\"", self.name)
    }
}

/// Quoted, as statements need it.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "\"{schema}\".\"{}\"", self.name),
            None => write!(f, "\"{}\"", self.name),
        }
    }
}

/// Letters that need no quotation marks, so that people can write the name as it is.
fn is_fit(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    (1..=LONGEST).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_quoted_with_its_schema() {
        let shown = |text| Table::parse(text).map(|table| table.to_string());
        assert_eq!(shown("idempotency").unwrap(), "\"idempotency\"");
        assert_eq!(shown("orders.idempotency").unwrap(), "\"orders\".\"idempotency\"");
        assert_eq!(Table::parse("a.b").unwrap().name().to_string(), "a.b");
        assert_eq!(Table::parse("a.b").unwrap().index("sweep_slot"), "\"b_sweep_slot\"");
    }

    #[test]
    fn a_name_that_would_need_quotation_marks_is_refused() {
        for text in ["", "a.", ".a", "a.b.c", "Orders", "a b", "a\"b", "1a", &"x".repeat(53)] {
            let error = Table::parse(text).unwrap_err();
            assert!(error.to_string().contains("cannot be a table name"), "{error}");
        }
        assert!(Table::parse(&"x".repeat(52)).is_ok());
    }
}
