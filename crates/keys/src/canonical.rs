//! The canonical bytes of a JSON value: equal values, equal bytes; distinct values, distinct bytes.
//!
//! We do not use RFC 8785: it makes distinct integers above 2^53 equal, which would drop events.
//! Here members are sorted by the bytes of their names, there is no white space, integers are
//! written unchanged, doubles as their shortest digits with an exponent (so `1` and `1.0` differ),
//! and strings with only `"`, `\` and control characters escaped. A missing optional part is `~`,
//! which no value begins with. The form is part of key scheme 1 and must never change.

use std::io::Write;

use crate::{
    jmespath::{
        read::EXACT_LIMIT,
        value::{Kind, MOST_BYTES, Number, Optional, Value},
    },
    selection::SelectionError,
};

/// Written for an optional part that is missing.
pub(super) const MISSING: u8 = b'~';

/// Appends the canonical bytes of `value`. `optional` are those of its parts that may be missing.
pub(super) fn write(
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
    write(part, None, out)
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
    use super::{super::Document, *};

    fn canonical(json: &str) -> Result<String, SelectionError> {
        let mut out = Vec::new();
        write(&Document::parse(json).unwrap().value, None, &mut out)?;
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
            write(&Value::text(&"a".repeat(bytes - 2)), None, &mut out)
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
