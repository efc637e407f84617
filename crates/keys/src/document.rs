//! JSON text as the value that expressions read.
//!
//! Parsed by ourselves: what `serde_json` makes of numbers and of member order depends on features
//! that any crate of the user's program can turn on, and a key must not.

use std::{fmt, sync::Arc};

use super::{
    document_error::DocumentError,
    field_set::{FieldSet, Wanted},
    jmespath::{
        Variant,
        read::{read, read_wanted},
        value::Value,
    },
};

/// A parsed JSON text.
#[derive(Clone)]
pub struct Document {
    pub(super) value: Value,
    /// What of the text was read; `None` if all of it.
    reads: Option<Arc<Wanted>>,
}

impl Document {
    /// Parses `json`.
    ///
    /// # Errors
    /// Not JSON; an object with two members of one name; a number that is larger than any double;
    /// more than 8 MiB.
    pub fn parse(json: &str) -> Result<Self, DocumentError> {
        Ok(Self { value: read(Variant::Standard, json)?, reads: None })
    }

    /// Parses `json` and keeps what some expressions look at; only those can be applied to it.
    ///
    /// The rest is skipped: it is not copied, and must only look like JSON. What is skipped may
    /// name a member twice or hold a number of any size, since the key does not depend on it.
    ///
    /// # Errors
    /// Not JSON; what is looked at is named twice in its object or is a number that is larger than
    /// any double; more than 8 MiB.
    pub fn read(json: &str, reads: &FieldSet) -> Result<Self, DocumentError> {
        let value = read_wanted(Variant::Standard, json, &reads.document)?;
        let all = *reads.document == Wanted::All;
        Ok(Self { value, reads: (!all).then(|| Arc::clone(&reads.document)) })
    }

    /// A document that is one JSON string.
    #[must_use]
    pub fn string(text: impl Into<String>) -> Self {
        Self { value: Value::text(&text.into()), reads: None }
    }

    /// Whether it holds all that is looked at.
    pub(super) fn has(&self, wanted: &Wanted) -> bool {
        self.reads.as_ref().is_none_or(|read| read.covers(wanted))
    }
}

/// Says nothing of what it holds: that is for no log.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> String {
        let at = crate::Expression::compile("@").unwrap();
        at.evaluate(&Document::parse(json).unwrap()).unwrap().to_string()
    }

    #[test]
    fn values_of_every_kind() {
        assert_eq!(
            parsed(r#" {"b":[1,-2,2.5,true,null,"é\u0041"],"a":{}} "#),
            r#"{"a":{},"b":[1,-2,2.5,true,null,"éA"]}"#
        );
    }

    /// With `arbitrary_precision` on somewhere, `serde_json` gives such a member a meaning of its own.
    #[test]
    fn a_member_does_not_pass_for_a_numeral() {
        let json = r#"{"id":{"$serde_json::private::Number":"5"}}"#;
        let at = crate::Expression::compile("[id, id == `5`]").unwrap();
        let selected = at.select(&Document::parse(json).unwrap()).unwrap();
        let expected = r#"[{"$serde_json::private::Number":"5"},false]"#;
        assert_eq!(selected.canonical_bytes(), expected.as_bytes());
    }

    #[test]
    fn refusals_say_where_and_never_what() {
        let cases = [
            (r#"{"secret":"s3cr3t","secret":"s3cr3t"}"#, "a member twice"),
            (r#"{"secret": s3cr3t}"#, "line 1, column 12"),
            (r#"{"secret""#, "ends too early"),
            (r#""\ud800 s3cr3t""#, "an invalid escape"),
            ("1 s3cr3t", "line 1"),
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
