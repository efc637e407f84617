//! The outcome of another library, as JSON text.
//!
//! Python, Java and .NET keep JSON text in a string attribute, as we do. TypeScript and Go keep the
//! value itself as a native attribute, which is written out here as the JSON it stands for.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::value::RawValue;

/// The JSON text of an outcome; `None` if it has none (a number that JSON cannot write).
///
/// A string that is not JSON itself is taken for a string result, as Java keeps one.
pub(crate) fn json_text(value: &AttributeValue) -> Option<String> {
    match value {
        AttributeValue::S(text) if is_json(text) => Some(text.clone()),
        native => {
            let mut out = String::new();
            write(native, &mut out)?;
            Some(out)
        }
    }
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
        // JSON has no bytes; base64 is how AWS writes them in JSON.
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

/// The digits as they are: a number of 38 digits must not pass through a float.
fn write_number(number: &str, out: &mut String) -> Option<()> {
    is_json(number).then(|| out.push_str(number))
}

fn write_bytes(bytes: &[u8], out: &mut String) -> Option<()> {
    out.push_str(&serde_json::to_string(&aws_smithy_types::base64::encode(bytes)).ok()?);
    Some(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

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
            assert_eq!(json_text(&s(text)).as_deref(), Some(text));
        }
    }

    #[test]
    fn other_text_is_a_string() {
        assert_eq!(json_text(&s("paid")).as_deref(), Some(r#""paid""#));
        assert_eq!(json_text(&s("")).as_deref(), Some(r#""""#));
        assert_eq!(json_text(&s(r#"{"a": NaN}"#)).as_deref(), Some(r#""{\"a\": NaN}""#));
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
            json_text(&AttributeValue::M(map)).as_deref(),
            Some(
                r#"{"b":"AQID","big":98765432109876543210987654321098765432,"ok":true,"set":[1,2],"é\"":[1.50,"x",null]}"#
            )
        );
        assert_eq!(json_text(&AttributeValue::Null(true)).as_deref(), Some("null"));
    }

    #[test]
    fn a_number_that_json_cannot_write_is_no_outcome() {
        assert_eq!(json_text(&n("NaN")), None);
    }
}
