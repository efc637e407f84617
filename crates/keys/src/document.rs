//! Parses JSON text for expressions.
//!
//! We do not use `serde_json` here: how it treats numbers and the order of members depends on
//! features that any crate of the user's program can turn on, and keys must not depend on them.

use crate::jmespath::{
    ast::Wanted,
    read::{read, read_wanted},
    scan::DocumentError,
    value::{Value, Variant},
};
use std::{fmt, sync::Arc};

/// A parsed JSON text.
#[derive(Clone)]
pub struct Document {
    pub(super) value: Value,
    /// The fields that were read; `None` if all of them.
    reads: Option<Arc<Wanted>>,
}

impl Document {
    /// Parses `json`.
    ///
    /// # Errors
    /// The text is not JSON, has an object with two members of the same name, has a number that is
    /// larger than any double, or is larger than 8 MiB.
    pub fn parse(json: &str) -> Result<Self, DocumentError> {
        Ok(Self { value: read(Variant::Standard, json)?, reads: None })
    }

    /// Parses `json` and keeps the fields that some expressions read. Other expressions cannot be
    /// applied to the document.
    ///
    /// Other fields are skipped: they are not copied, and only roughly checked to be JSON. They may
    /// have two members of the same name or numbers of any size, since the key does not depend on
    /// them.
    ///
    /// # Errors
    /// The text is not JSON; a field that is read occurs twice in its object, or is a number that
    /// is larger than any double; or the text is larger than 8 MiB.
    pub fn read(json: &str, reads: &FieldSet) -> Result<Self, DocumentError> {
        let value = read_wanted(Variant::Standard, json, &reads.document)?;
        let all = *reads.document == Wanted::All;
        Ok(Self { value, reads: (!all).then(|| Arc::clone(&reads.document)) })
    }

    /// Whether the document holds these fields.
    pub(super) fn has(&self, wanted: &Wanted) -> bool {
        self.reads.as_ref().is_none_or(|read| read.covers(wanted))
    }
}

/// Shows no content, which must not be logged.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").finish_non_exhaustive()
    }
}

/// The fields of a document that some expressions read. See [`Document::read`].
///
/// ```
/// use lambda_idempotency_keys::{Document, Expression, FieldSet};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (key, amount) = (Expression::compile("order.id")?, Expression::compile("order.amount")?);
/// let reads = FieldSet::of([&key, &amount]);
/// // The photo is not copied, and its content has no effect.
/// let payload = r#"{"order":{"id":"o-1","amount":5},"photo":"iVBORw0KGgoAAAANSUhEUg"}"#;
/// let document = Document::read(payload, &reads)?;
/// assert_eq!(key.select(&document)?.canonical_bytes(), b"\"o-1\"");
/// assert_eq!(amount.select(&document)?.canonical_bytes(), b"5");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) document: Arc<Wanted>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_position_and_never_the_content() {
        let cases = [
            (r#"{"secret":"s3cr3t","secret":"s3cr3t"}"#, "two members of the same name"),
            (r#"{"secret": s3cr3t}"#, "line 1, column 12"),
            (r#"{"secret""#, "ends too early"),
            (" \n", "not valid JSON: it is empty"),
            ("", "not valid JSON: it is empty"),
            (r#""\ud800 s3cr3t""#, "an invalid escape"),
            ("1 s3cr3t", "line 1"),
            (r#"{"a":1},"s3cr3t""#, "line 1, column 8"),
            (r#"["s3cr3t",1e999]"#, "larger than any double"),
            (r#"["s3cr3t",-1e999]"#, "larger than any double"),
        ];
        for (json, expected) in cases {
            let message = Document::parse(json).unwrap_err().to_string();
            assert!(message.contains(expected), "{json}: {message}");
            assert!(!message.contains("s3cr3t"), "{message}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(Document::parse(&deep).is_err());
    }
}
