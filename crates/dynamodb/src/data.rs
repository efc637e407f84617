//! Results in the forms of other libraries, as JSON text.
//!
//! Python, Java and .NET store JSON text in a string attribute, as we do. TypeScript and Go store
//! the value as a native attribute, which is converted to JSON here.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::value::RawValue;

use crate::attributes::DataForm;

/// How deep lists and maps nest.
const DEEPEST: usize = 31;

/// The JSON text of a result; `None` if JSON cannot represent it (a number).
///
/// A string that is not valid JSON is read as a string result, as Java stores one.
pub(crate) fn json_text(form: DataForm, value: &AttributeValue) -> Option<String> {
    match value {
        AttributeValue::S(text) if form == DataForm::Json && is_json(text) => Some(text.clone()),
        native => {
            let mut out = String::new();
            write(native, &mut out)?;
            Some(out)
        }
    }
}

/// A result as an attribute; as text if it [does not fit](fits).
pub(crate) fn attribute(form: DataForm, json: &str) -> AttributeValue {
    let text = || AttributeValue::S(json.to_owned());
    match form {
        DataForm::Json => text(),
        DataForm::Native => native(json).unwrap_or_else(text),
    }
}

/// Whether a result can be stored in this form.
pub(crate) fn fits(form: DataForm, json: &str) -> bool {
    form == DataForm::Json || native(json).is_some()
}

fn native(json: &str) -> Option<AttributeValue> {
    to_attribute(serde_json::from_str(json).ok()?, 1)
}

/// Uses [`RawValue`], which keeps the digits of numbers.
///
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>
fn to_attribute(value: &RawValue, depth: usize) -> Option<AttributeValue> {
    let json = value.get();
    Some(match json.bytes().next()? {
        b'n' => AttributeValue::Null(true),
        b't' => AttributeValue::Bool(true),
        b'f' => AttributeValue::Bool(false),
        b'"' => AttributeValue::S(serde_json::from_str(json).ok()?),
        b'[' | b'{' if depth > DEEPEST => return None,
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            let items = items.into_iter().map(|item| to_attribute(item, depth + 1));
            AttributeValue::L(items.collect::<Option<_>>()?)
        }
        b'{' => {
            let members: HashMap<String, &RawValue> = serde_json::from_str(json).ok()?;
            let members = members.into_iter();
            let members = members.map(|(name, item)| Some((name, to_attribute(item, depth + 1)?)));
            AttributeValue::M(members.collect::<Option<_>>()?)
        }
        _ => number_attribute(json)?,
    })
}

fn number_attribute(number: &str) -> Option<AttributeValue> {
    let mantissa = number.split(['e', 'E']).next().unwrap_or(number);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_matches('0');
    let size = number.parse::<f64>().ok()?.abs();
    let fits = digits.is_empty() || (digits.len() <= 38 && (1e-130..1e126).contains(&size));
    fits.then(|| AttributeValue::N(number.to_owned()))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Recursion is bounded: DynamoDB nests 32 levels at most.
fn write(value: &AttributeValue, out: &mut String) -> Option<()> {
    match value {
        AttributeValue::S(text) => out.push_str(&serde_json::to_string(text).ok()?),
        AttributeValue::N(number) => write_number(number, out)?,
        AttributeValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        AttributeValue::Null(_) => out.push_str("null"),
        // JSON has no bytes; AWS writes them as base64 in JSON.
        AttributeValue::B(bytes) => write_bytes(bytes.as_ref(), out)?,
        AttributeValue::L(items) => write_list(items, out, write)?,
        AttributeValue::Ss(items) => write_list(items, out, |text, out| {
            out.push_str(&serde_json::to_string(text).ok()?);
            Some(())
        })?,
        AttributeValue::Ns(items) => write_list(items, out, |n, out| write_number(n, out))?,
        AttributeValue::Bs(items) => write_list(items, out, |b, out| write_bytes(b.as_ref(), out))?,
        AttributeValue::M(members) => {
            // A map has no order; sorted, the same item always gives the same text.
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (position, (name, value)) in members.into_iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(name).ok()?);
                out.push(':');
                write(value, out)?;
            }
            out.push('}');
        }
        _ => return None,
    }
    Some(())
}

fn write_list<T>(
    items: &[T],
    out: &mut String,
    mut each: impl FnMut(&T, &mut String) -> Option<()>,
) -> Option<()> {
    out.push('[');
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        each(item, out)?;
    }
    out.push(']');
    Some(())
}

/// Writes the digits unchanged, because a float cannot hold 38 digits.
fn write_number(number: &str, out: &mut String) -> Option<()> {
    is_json(number).then(|| out.push_str(number))
}

fn write_bytes(bytes: &[u8], out: &mut String) -> Option<()> {
    out.push_str(&serde_json::to_string(&aws_smithy_types::base64::encode(bytes)).ok()?);
    Some(())
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::primitives::Blob;

    use super::*;

    fn s(text: &str) -> AttributeValue {
        AttributeValue::S(text.into())
    }

    fn n(text: &str) -> AttributeValue {
        AttributeValue::N(text.into())
    }

    #[test]
    fn json_text_stays_as_it_is() {
        for text in [r#"{"ok": true}"#, "null", r#""\u00e9""#, " [1]", "12345678901234567890.5"] {
            assert_eq!(json_text(DataForm::Json, &s(text)).as_deref(), Some(text));
        }
    }

    #[test]
    fn other_text_is_a_string() {
        assert_eq!(json_text(DataForm::Json, &s("paid")).as_deref(), Some(r#""paid""#));
        assert_eq!(json_text(DataForm::Json, &s("")).as_deref(), Some(r#""""#));
        assert_eq!(
            json_text(DataForm::Json, &s(r#"{"a": NaN}"#)).as_deref(),
            Some(r#""{\"a\": NaN}""#)
        );
    }

    #[test]
    fn native_attributes_become_the_json_they_stand_for() {
        let map = HashMap::from([
            ("ok".to_owned(), AttributeValue::Bool(true)),
            (
                "é\"".to_owned(),
                AttributeValue::L(vec![n("1.50"), s("x"), AttributeValue::Null(true)]),
            ),
            ("b".to_owned(), AttributeValue::B(Blob::new(*b"\x01\x02\x03"))),
            ("big".to_owned(), n("98765432109876543210987654321098765432")),
            ("set".to_owned(), AttributeValue::Ns(vec!["1".into(), "2".into()])),
        ]);
        assert_eq!(
            json_text(DataForm::Json, &AttributeValue::M(map)).as_deref(),
            Some(
                r#"{"b":"AQID","big":98765432109876543210987654321098765432,"ok":true,"set":[1,2],"é\"":[1.50,"x",null]}"#
            )
        );
        assert_eq!(json_text(DataForm::Json, &AttributeValue::Null(true)).as_deref(), Some("null"));
    }

    #[test]
    fn a_number_that_json_cannot_write_is_not_a_result() {
        assert_eq!(json_text(DataForm::Json, &n("NaN")), None);
    }

    #[test]
    fn values_are_stored_as_typescript_stores_them() {
        let of = |json: &str| attribute(DataForm::Native, json);
        assert_eq!(of("null"), AttributeValue::Null(true));
        assert_eq!(of("12.5"), n("12.5"));
        assert_eq!(of("\"42\""), s("42"));
        assert_eq!(of("[true]"), AttributeValue::L(vec![AttributeValue::Bool(true)]));
        for json in ["null", "12.5", "\"42\"", "\"\"", "[]", "{}", r#"{"a":[1,{"b":"x"}]}"#] {
            assert!(fits(DataForm::Native, json));
            assert_eq!(json_text(DataForm::Native, &of(json)).as_deref(), Some(json));
        }
    }

    #[test]
    fn values_that_dynamodb_cannot_hold_do_not_fit() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        for json in ["1e126", "-1e200", "1e-131", &deep(32), "not json"] {
            assert!(!fits(DataForm::Native, json), "{json}");
        }
        for json in ["1e125", "0", "0.0", "1e-130", "18446744073709551615", &deep(31)] {
            assert!(fits(DataForm::Native, json), "{json}");
        }
    }

    #[test]
    fn both_truth_values_are_native() {
        for (json, value) in [("true", true), ("false", false)] {
            assert_eq!(attribute(DataForm::Native, json), AttributeValue::Bool(value));
        }
    }

    #[test]
    fn lists_and_maps_nest_as_deep_as_dynamodb_allows() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let nested = |levels| format!("{}1{}", open.repeat(levels), close.repeat(levels));
            assert!(fits(DataForm::Native, &nested(DEEPEST)), "{open}");
            assert!(!fits(DataForm::Native, &nested(DEEPEST + 1)), "{open}");
        }
    }

    #[test]
    fn sets_are_lists() {
        let texts = AttributeValue::Ss(vec!["a".into(), "\"".into()]);
        assert_eq!(json_text(DataForm::Json, &texts).as_deref(), Some(r#"["a","\""]"#));
        let bytes = AttributeValue::Bs(vec![Blob::new(*b"\x01\x02\x03"), Blob::new(*b"")]);
        assert_eq!(json_text(DataForm::Json, &bytes).as_deref(), Some(r#"["AQID",""]"#));
    }
}
