//! The value that an expression selects from a record, checked part by part, or why it cannot be a key; and its canonical
//! bytes: equal values, equal bytes; distinct values, distinct bytes.
//!
//! We do not use RFC 8785: it makes distinct integers above 2^53 equal, which would drop events.
//! Here members are sorted by the bytes of their names, there is no white space, integers are
//! written unchanged, doubles as their shortest digits with an exponent (so `1` and `1.0` differ),
//! and strings with only `"`, `\` and control characters escaped. A missing optional part is `~`,
//! which no value begins with. The form is part of key scheme 1 and must never change.

use std::{collections::BTreeSet, fmt, io::Write};

use crate::jmespath::{
    ast::Node,
    evaluate::EvaluationError,
    read::{DocumentError, EXACT_LIMIT},
    value::{Absent, Collision, Kind, MOST_BYTES, Number, Optional, Presence, Value},
};

/// The canonical bytes of what an expression selected.
#[derive(Clone, PartialEq, Eq)]
pub struct Selection(pub(super) Vec<u8>);

impl Selection {
    /// The bytes. They are the raw key; do not log them.
    #[must_use]
    pub fn canonical_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selection({} bytes)", self.0.len())
    }
}

/// A key or fingerprint that was made from a text. The inner error means that there is none in it; the outer error, that
/// the text cannot be read.
pub type Made<T> = Result<Result<T, SelectionError>, DocumentError>;

/// Why an expression selects no usable key from a record. The message never quotes the selected
/// value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// Nothing, or `null`, was selected.
    #[error("it selects nothing (or null)")]
    Missing,
    /// `""`, `[]` or `{}` was selected.
    #[error("it selects something empty")]
    Empty,
    /// One part of a list of parts is missing or `null`.
    #[error("part {part} of it selects nothing (or null)")]
    PartMissing {
        /// Its position (from 1) or its name.
        part: String,
    },
    /// One part of a list of parts is `""`, `[]` or `{}`.
    #[error("part {part} of it selects something empty")]
    PartEmpty {
        /// Its position (from 1) or its name.
        part: String,
    },
    /// All parts are optional, and all are missing or empty.
    #[error("all of its parts are missing, null or empty; at least one must be present")]
    AllMissing,
    /// The selected value has more than 8 MiB, or 64 MiB as text with Powertools keys; or the
    /// expression makes more than 8 Mi items while it is evaluated.
    #[error("it selects more data than a key can be made of; select less of the record")]
    TooLong,
    /// The document was [read](super::Document::read) for other expressions.
    #[error("the document was read for other expressions and lacks fields that this one reads")]
    Unread,
    /// A number that a double cannot hold exactly. Two distinct numbers could have the same key.
    #[error(
        "it selects a number that a double cannot hold exactly; \
         send it as a string, or as an integer of at most 64 bits"
    )]
    InexactNumber,
    /// With Powertools keys: distinct records could have this key.
    #[error(
        "{0}, so that distinct records could share its key; \
         send what is exact, or choose `PowertoolsKeys::accept_collisions`"
    )]
    Collision(Collision),
    /// A text cannot be decoded, or it is not a text.
    #[error("it cannot be evaluated here: {reason} (at offset {offset})")]
    Evaluation {
        /// The failure, with types but without values.
        reason: String,
        /// The position in the expression, in characters.
        offset: usize,
    },
    /// The function that makes the key refuses the payload.
    #[error("the function that makes it refuses the payload: {0}")]
    Function(&'static str),
}

impl SelectionError {
    /// Whether the key is missing, that is, the value or a part is missing, `null` or empty.
    /// Otherwise there is a key, but it cannot be used.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::Missing
                | Self::Empty
                | Self::PartMissing { .. }
                | Self::PartEmpty { .. }
                | Self::AllMissing
        )
    }
}

impl From<Absent> for SelectionError {
    fn from(absent: Absent) -> Self {
        match absent.presence {
            Presence::Empty => Self::PartEmpty { part: absent.place() },
            Presence::Missing | Presence::Present => Self::PartMissing { part: absent.place() },
        }
    }
}

impl From<EvaluationError> for SelectionError {
    fn from(error: EvaluationError) -> Self {
        match error {
            EvaluationError::Failed { reason, offset } => Self::Evaluation { reason, offset },
            EvaluationError::TooLong => Self::TooLong,
        }
    }
}

impl Optional {
    /// Adds the part with this name. A part without a name is identified by its path.
    ///
    /// # Errors
    /// There is no such part. Returns the names that exist.
    pub(super) fn add(&mut self, name: &str, node: &Node) -> Result<(), Vec<String>> {
        let parts = labels(node);
        let positions = (0..).zip(&parts).filter(|(_, label)| label.as_deref() == Some(name));
        let positions: Vec<usize> = positions.map(|(position, _)| position).collect();
        if positions.is_empty() {
            return Err(parts.into_iter().flatten().collect());
        }
        if matches!(node.listed(), Some(Node::Hash(_))) {
            self.names.insert(name.to_owned());
        } else {
            self.positions.extend(positions);
        }
        Ok(())
    }
}

/// The names of the parts: their names in the expression, their paths, or else their positions,
/// from 1.
pub(super) fn names(node: &Node) -> Vec<String> {
    let name = |(at, label): (usize, Option<String>)| label.unwrap_or_else(|| at.to_string());
    (1..).zip(labels(node)).map(name).collect()
}

/// The name or the path of each part, if it has one.
fn labels(node: &Node) -> Vec<Option<String>> {
    match node.listed() {
        Some(Node::Hash(parts)) => parts.iter().map(|(name, _)| Some(name.shown())).collect(),
        Some(Node::List(parts)) => parts.iter().map(path).collect(),
        _ => Vec::new(),
    }
}

/// How the parts of a key are combined. Keys of different shapes are never equal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// A single value: `order.id`.
    Value,
    /// A list with this number of parts: `[tenant, order.id]`.
    List(usize),
    /// Named parts: `{tenant: account, id: order.id}`.
    Named(BTreeSet<String>),
}

impl Shape {
    pub(super) fn of(node: &Node) -> Self {
        match node.listed() {
            Some(Node::Hash(parts)) => {
                Self::Named(parts.iter().map(|(name, _)| name.shown()).collect())
            }
            Some(Node::List(parts)) => Self::List(parts.len()),
            _ => Self::Value,
        }
    }
}

/// `a.b.c`, if the part is a path of fields.
fn path(node: &Node) -> Option<String> {
    match node {
        Node::Field(name) => Some(name.shown()),
        Node::Then(first, last) => Some(format!("{}.{}", path(first)?, path(last)?)),
        _ => None,
    }
}

/// Refuses a value that is missing, `null` or empty, or that was made with a missing part. At least one part must be
/// present, even if all are optional.
pub(super) fn check(
    selected: &Value,
    absent: Option<Absent>,
    optional: &Optional,
) -> Result<(), SelectionError> {
    match (Presence::of(selected), absent) {
        (Presence::Missing, _) => return Err(SelectionError::Missing),
        (Presence::Empty, None) => return Err(SelectionError::Empty),
        (_, Some(absent)) => return Err(absent.into()),
        (Presence::Present, None) => {}
    }
    let is_there = |part: &Value| Presence::of(part) == Presence::Present;
    let any = match selected {
        _ if *optional == Optional::default() => true,
        Value::Array(items) => items.iter().any(is_there),
        Value::Object(members) => members.iter().any(|(_, member)| is_there(member)),
        _ => true,
    };
    if any { Ok(()) } else { Err(SelectionError::AllMissing) }
}

/// Written for an optional part that is missing.
pub(super) const MISSING: u8 = b'~';

/// Appends the canonical bytes of `value`. `optional` are those of its parts that may be missing.
pub(super) fn write_canonical(
    value: &Value,
    optional: Option<&Optional>,
    out: &mut Vec<u8>,
) -> Result<(), SelectionError> {
    match value {
        Value::Null | Value::Undefined => out.extend(b"null"),
        Value::Bool(true) => out.extend(b"true"),
        Value::Bool(false) => out.extend(b"false"),
        Value::Number(number) => write_number(number, out)?,
        Value::String(text) => match text.to_str() {
            Some(text) => write_string(text, out),
            // Half a surrogate pair, which only documents of Powertools have.
            None => return Err(SelectionError::Missing),
        },
        Value::Array(items) => {
            write_list(items.iter().enumerate(), (b'[', b']'), out, |(at, item), out| {
                write_part(item, optional.is_some_and(|parts| parts.positions.contains(&at)), out)
            })?;
        }
        // The members are already sorted by the bytes of their names.
        Value::Object(members) => {
            write_list(members.iter(), (b'{', b'}'), out, |(name, value), out| {
                let name = name.to_str().unwrap_or_default();
                write_string(name, out);
                out.push(b':');
                write_part(value, optional.is_some_and(|parts| parts.names.contains(name)), out)
            })?;
        }
    }
    // An expression can list one value many times.
    if out.len() > MOST_BYTES { Err(SelectionError::TooLong) } else { Ok(()) }
}

fn write_part(part: &Value, is_optional: bool, out: &mut Vec<u8>) -> Result<(), SelectionError> {
    if is_optional && part.is_null() {
        out.push(MISSING);
        return Ok(());
    }
    write_canonical(part, None, out)
}

fn write_list<T>(
    items: impl Iterator<Item = T>,
    (open, close): (u8, u8),
    out: &mut Vec<u8>,
    write_item: impl Fn(T, &mut Vec<u8>) -> Result<(), SelectionError>,
) -> Result<(), SelectionError> {
    out.push(open);
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_item(item, out)?;
    }
    out.push(close);
    Ok(())
}

fn write_number(number: &Number, out: &mut Vec<u8>) -> Result<(), SelectionError> {
    match &number.kind {
        Kind::Integer(digits) => out.extend(digits.bytes()),
        Kind::Double(double) if number.exact && double.abs() < EXACT_LIMIT => {
            // Writing to a vector does not fail.
            let _ = write!(out, "{double:e}");
        }
        Kind::Double(_) => return Err(SelectionError::InexactNumber),
    }
    Ok(())
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        // The byte is ASCII, so both halves are valid UTF-8.
        let (plain, after) = rest.split_at(at);
        let (special, after) = after.split_at(1);
        out.extend_from_slice(plain.as_bytes());
        match special {
            "\"" | "\\" => out.extend(b"\\".iter().copied().chain(special.bytes())),
            control => control.bytes().for_each(|byte| drop(write!(out, "\\u{byte:04x}"))),
        }
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;

    fn canonical(json: &str) -> Result<String, SelectionError> {
        let mut out = Vec::new();
        write_canonical(&Document::parse(json).unwrap().value, None, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn golden() {
        let cases = [
            (r#"{"b":1,"a":[true,false,null]}"#, r#"{"a":[true,false,null],"b":1}"#),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9007199254740993", "9007199254740993"),
            ("1.0", "1e0"),
            ("1.50", "1.5e0"),
            ("1e2", "1e2"),
            ("-0.0", "-0e0"),
            (r#""a\"\\\n\u001f\u007f\u00e9😀/""#, "\"a\\\"\\\\\\u000a\\u001f\u{7f}é😀/\""),
        ];
        for (json, expected) in cases {
            assert_eq!(canonical(json).unwrap(), expected, "{json}");
        }
    }

    #[test]
    fn canonical_bytes_may_be_as_long_as_a_document_and_no_longer() {
        let quoted = |bytes: usize| {
            let mut out = Vec::new();
            write_canonical(&Value::text(&"a".repeat(bytes - 2)), None, &mut out)
        };
        assert_eq!(quoted(MOST_BYTES), Ok(()));
        assert_eq!(quoted(MOST_BYTES + 1), Err(SelectionError::TooLong));
        assert_eq!(quoted(MOST_BYTES + 2), Err(SelectionError::TooLong));
    }

    #[test]
    fn a_double_that_is_too_large_is_refused_at_every_position() {
        for json in ["1e300", "18446744073709551616", r#"{"a":{"b":9007199254740992.0}}"#] {
            assert_eq!(canonical(json), Err(SelectionError::InexactNumber), "{json}");
        }
    }
}
