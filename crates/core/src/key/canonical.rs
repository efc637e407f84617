//! The canonical bytes of a JSON value: equal values, equal bytes; distinct values, distinct bytes.
//!
//! Not RFC 8785: that folds integers above 2^53 into one another, which would drop events. Here
//! members are sorted by the bytes of their names, there is no white space, integers stand as they
//! are, doubles as shortest digits with an exponent (so `1` and `1.0` differ), and strings with
//! only `"`, `\` and control characters escaped. An optional part that is missing is `~`, which no
//! value begins with. The form is frozen: it is part of key scheme 1.

use std::io::Write;

use jmespath::Variable;
use serde_json::Number;

use super::{SelectionError, document::MOST_BYTES, parts::Optional};

/// From here on, neighbouring integers share a double.
const EXACT_LIMIT: f64 = 9_007_199_254_740_992.0;

/// Stands for an optional part that is missing.
pub(super) const MISSING: u8 = b'~';

/// Appends the canonical bytes of a list of parts, of which some may be missing.
pub(super) fn write_parts(
    value: &Variable,
    optional: &Optional,
    out: &mut Vec<u8>,
) -> Result<(), SelectionError> {
    let write_part = |part: &Variable, is_optional: bool, out: &mut Vec<u8>| match part {
        Variable::Null if is_optional => {
            out.push(MISSING);
            Ok(())
        }
        part => write(part, out),
    };
    match value {
        Variable::Array(items) => {
            write_list(items.iter().enumerate(), (b'[', b']'), out, |(place, item), out| {
                write_part(item, optional.places.contains(&place), out)
            })
        }
        Variable::Object(members) => {
            write_list(members.iter(), (b'{', b'}'), out, |(name, member), out| {
                write_string(name, out);
                out.push(b':');
                write_part(member, optional.names.contains(name), out)
            })
        }
        value => write(value, out),
    }
}

/// Appends the canonical bytes of `value`.
pub(super) fn write(value: &Variable, out: &mut Vec<u8>) -> Result<(), SelectionError> {
    match value {
        Variable::Null => out.extend(b"null"),
        Variable::Bool(true) => out.extend(b"true"),
        Variable::Bool(false) => out.extend(b"false"),
        Variable::Number(number) => write_number(number, out)?,
        Variable::String(text) => write_string(text, out),
        Variable::Array(items) => {
            write_list(items.iter(), (b'[', b']'), out, |item, out| write(item, out))?;
        }
        // A `BTreeMap` iterates in the order of the names' bytes.
        Variable::Object(members) => {
            write_list(members.iter(), (b'{', b'}'), out, |(name, value), out| {
                write_string(name, out);
                out.push(b':');
                write(value, out)
            })?;
        }
        Variable::Expref(_) => return Err(SelectionError::NotAValue),
    }
    // An expression can list one value many times over.
    if out.len() > MOST_BYTES { Err(SelectionError::TooLong) } else { Ok(()) }
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
    // Writing to a vector does not fail.
    let _ = if let Some(integer) = number.as_u64() {
        write!(out, "{integer}")
    } else if let Some(integer) = number.as_i64() {
        write!(out, "{integer}")
    } else {
        match number.as_f64() {
            Some(double) if double.is_finite() && double.abs() < EXACT_LIMIT => {
                write!(out, "{double:e}")
            }
            _ => return Err(SelectionError::InexactNumber),
        }
    };
    Ok(())
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        // These are bytes of ASCII, so that both halves are text.
        let (plain, after) = rest.split_at(at);
        let (special, after) = after.split_at(1);
        out.extend(plain.bytes());
        match special {
            "\"" | "\\" => out.extend(b"\\".iter().copied().chain(special.bytes())),
            control => control.bytes().for_each(|byte| drop(write!(out, "\\u{byte:04x}"))),
        }
        rest = after;
    }
    out.extend(rest.bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Document, numeral::Side},
        *,
    };

    fn canonical(json: &str) -> Result<String, SelectionError> {
        let mut out = Vec::new();
        write(Document::parse(json).unwrap().on(Side::Below), &mut out)?;
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
            (r#""a\"\\\n\u007f\u00e9😀/""#, "\"a\\\"\\\\\\u000a\u{7f}é😀/\""),
        ];
        for (json, expected) in cases {
            assert_eq!(canonical(json).unwrap(), expected, "{json}");
        }
    }

    #[test]
    fn a_double_that_is_too_large_is_refused_wherever_it_stands() {
        for json in ["1e300", "18446744073709551616", r#"{"a":{"b":9007199254740992.0}}"#] {
            assert_eq!(canonical(json), Err(SelectionError::InexactNumber), "{json}");
        }
    }
}
