//! JSON text as the value that expressions read.
//!
//! Parsed by `serde_json`, but into our own choice of value: what `serde_json::Value` makes of
//! numbers and of member order depends on features that any crate of the user's program can turn
//! on, and a key must not.

use std::{fmt, sync::Arc};

use jmespath::{Rcvar, Variable};

use super::{
    numeral::Side,
    reading::{RESERVED, Reading},
    reads::{Node, Reads},
    texts::Texts,
};

/// Larger than any event that Lambda delivers (6 MB).
pub(super) const MOST_BYTES: usize = 8 << 20;

/// A parsed JSON text.
#[derive(Clone)]
pub struct Document {
    /// Where numbers that no double holds exactly are a little smaller than they are.
    below: Rcvar,
    /// Where they are a little larger, if there are any.
    above: Option<Rcvar>,
    /// What of the text was read; `None` if all of it.
    reads: Option<Arc<Node>>,
    /// The JSON texts in it that several calls of `json` read, if there are any.
    texts: Option<Arc<Texts>>,
}

/// Why a text is not a [`Document`]. Says where, never what stands there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Not JSON, or nested deeper than 128 levels.
    #[error("not valid JSON: {reason} at line {line}, column {column}")]
    Syntax {
        /// What is wrong, in general terms.
        reason: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// An object names one member twice, so that two readers may see two values.
    #[error(
        "an object names a member twice, before line {line}, column {column}: \
         two readers may take different values for it"
    )]
    DuplicateMember {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// More than 8 MiB, which no event of Lambda is.
    #[error("it has {bytes} bytes, more than the {MOST_BYTES} that are read")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A member name that `serde_json` keeps for itself.
    #[error("a member name that begins with `{RESERVED}` is reserved")]
    ReservedMember,
}

impl Document {
    /// Parses `json`.
    ///
    /// # Errors
    /// Not JSON; an object with two members of one name; a reserved member name; a number that is
    /// larger than any double; more than 8 MiB.
    pub fn parse(json: &str) -> Result<Self, DocumentError> {
        Self::reading(json, &Node::All)
    }

    /// Parses `json` and keeps what some expressions look at; only those can be applied to it.
    ///
    /// The rest is skipped: it is not copied, and must only look like JSON. What is skipped may
    /// name a member twice or hold a number of any size, since the key does not depend on it. A JSON
    /// text in it that several calls of `json` read is parsed once for all of them.
    ///
    /// # Errors
    /// Not JSON; what is looked at is named twice in its object or is a number that is larger than
    /// any double; a reserved member name; more than 8 MiB.
    pub fn read(json: &str, reads: &Reads) -> Result<Self, DocumentError> {
        let document = Self::reading(json, &reads.document)?;
        let all = *reads.document == Node::All;
        Ok(Self {
            reads: (!all).then(|| Arc::clone(&reads.document)),
            texts: Texts::of(&reads.shared),
            ..document
        })
    }

    pub(super) fn reading(json: &str, wanted: &Node) -> Result<Self, DocumentError> {
        if json.len() > MOST_BYTES {
            return Err(DocumentError::TooLong { bytes: json.len() });
        }
        let reading = Reading::new(json, Side::Below);
        let below = reading.run(wanted)?;
        // Rare, and worth a second look.
        let above = (reading.met_inexact())
            .then(|| Reading::new(json, Side::Above).run(wanted))
            .transpose()?;
        Ok(Self { below, above, reads: None, texts: None })
    }

    /// A document that is one JSON string.
    #[must_use]
    pub fn string(text: impl Into<String>) -> Self {
        let below = Rcvar::new(Variable::String(text.into()));
        Self { below, above: None, reads: None, texts: None }
    }

    /// Whether it holds all that is looked at.
    pub(super) fn has(&self, wanted: &Node) -> bool {
        self.reads.as_ref().is_none_or(|read| read.covers(wanted))
    }

    /// The JSON texts in it that are parsed once for several calls.
    pub(super) const fn texts(&self) -> Option<&Arc<Texts>> {
        self.texts.as_ref()
    }

    /// Whether a double holds each of its numbers exactly.
    pub(super) const fn is_exact(&self) -> bool {
        self.above.is_none()
    }

    /// The value, with each number that is not exact read from that side.
    pub(super) fn on(&self, side: Side) -> &Rcvar {
        match (side, &self.above) {
            (Side::Above, Some(above)) => above,
            _ => &self.below,
        }
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
        Document::parse(json).unwrap().on(Side::Below).to_string()
    }

    #[test]
    fn values_of_every_kind() {
        assert_eq!(
            parsed(r#" {"b":[1,-2,2.5,true,null,"é\u0041"],"a":{}} "#),
            r#"{"a":{},"b":[1,-2,2.5,true,null,"éA"]}"#
        );
    }

    #[test]
    fn what_is_not_exact_is_read_from_either_side() {
        let document = Document::parse("[1.5, 0.1000000000000000055, 7]").unwrap();
        assert!(!document.is_exact());
        let [below, above] = [Side::Below, Side::Above].map(|side| document.on(side).to_string());
        assert_eq!(below, "[1.5,0.09999999999999999,7]");
        assert_eq!(above, "[1.5,0.10000000000000002,7]");
        assert!(Document::parse("[1.5, 7, 18446744073709551615]").unwrap().is_exact());
    }

    #[test]
    fn a_member_does_not_pass_for_a_numeral() {
        for name in ["$serde_json::private::Number", r"\u0024serde_json::private::Number"] {
            let json = format!(r#"{{"id":{{"{name}":"5"}}}}"#);
            assert_eq!(Document::parse(&json).unwrap_err(), DocumentError::ReservedMember);
            let json = format!(r#"["{name}",{{"a{name}":1.5}}]"#);
            let shown = r#"["$serde_json::private::Number",{"a$serde_json::private::Number":1.5}]"#;
            assert_eq!(parsed(&json), shown, "elsewhere it is but text");
        }
    }

    #[test]
    fn refusals_say_where_and_never_what() {
        let cases = [
            (r#"{"secret":"s3cr3t","secret":"s3cr3t"}"#, "a member twice"),
            (r#"{"secret": s3cr3t}"#, "line 1, column 12"),
            (r#"{"secret""#, "ends too early"),
            (r#""\ud800 s3cr3t""#, "an invalid escape"),
            (r#"{"$serde_json::private::Number":"s3cr3t"}"#, "reserved"),
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
