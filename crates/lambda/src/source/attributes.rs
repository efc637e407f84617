//! Converts DynamoDB's JSON to plain JSON: `{"id":{"N":"7"}}` to `{"id":7}`.
//!
//! Strings are kept as they are written, and numbers to the last digit. Types that plain JSON
//! cannot distinguish become one: bytes and strings (base64), sets and lists. The raw record still
//! distinguishes them.
//!
//! <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_AttributeValue.html>

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// DynamoDB nests up to 32 levels.
const MAX_DEPTH: u32 = 64;

/// Writes an image (attributes by name) as a plain object; `None` if it is not an image.
pub(super) fn plain(image: &RawValue, out: &mut String) -> Option<()> {
    map(image, out, MAX_DEPTH)
}

/// Members by their names as they are written.
type Members<'e> = BTreeMap<String, &'e RawValue>;

fn map(members: &RawValue, out: &mut String, depth: u32) -> Option<()> {
    let members: Members<'_> = serde_json::from_str(members.get()).ok()?;
    out.push('{');
    for (at, (name, value)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(&serde_json::to_string(&name).ok()?);
        out.push(':');
        attribute(value, out, depth)?;
    }
    out.push('}');
    Some(())
}

fn list<'e>(
    items: &'e RawValue,
    out: &mut String,
    mut item: impl FnMut(&'e RawValue, &mut String) -> Option<()>,
) -> Option<()> {
    let items: Vec<&RawValue> = serde_json::from_str(items.get()).ok()?;
    out.push('[');
    for (at, value) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        item(value, out)?;
    }
    out.push(']');
    Some(())
}

fn attribute(value: &RawValue, out: &mut String, depth: u32) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    if !value.get().starts_with('{') {
        return None;
    }
    let typed: Members<'_> = serde_json::from_str(value.get()).ok()?;
    let (kind, value) = typed.iter().next().filter(|_| typed.len() == 1)?;
    match kind.as_str() {
        "S" | "B" => string(value, out),
        "N" => number(value, out),
        "BOOL" => boolean(value, out),
        "NULL" => {
            out.push_str("null");
            Some(())
        }
        "SS" | "BS" => list(value, out, string),
        "NS" => list(value, out, number),
        "L" => list(value, out, |item, out| attribute(item, out, depth)),
        "M" => map(value, out, depth),
        _ => None,
    }
}

fn string(value: &RawValue, out: &mut String) -> Option<()> {
    value.get().starts_with('"').then(|| out.push_str(value.get()))
}

fn boolean(value: &RawValue, out: &mut String) -> Option<()> {
    matches!(value.get(), "true" | "false").then(|| out.push_str(value.get()))
}

/// A number is delivered as a string; all of its digits are kept.
fn number(value: &RawValue, out: &mut String) -> Option<()> {
    let text: String = serde_json::from_str(value.get()).ok()?;
    let starts = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let json: &RawValue = serde_json::from_str(&text).ok().filter(|_| starts)?;
    out.push_str(json.get());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(image: &str) -> Option<String> {
        let image = RawValue::from_string(image.to_owned()).unwrap();
        let mut out = String::new();
        plain(&image, &mut out).map(|()| out)
    }

    #[test]
    fn each_type_has_a_plain_form() {
        for (image, plain) in [
            (r#"{}"#, r#"{}"#),
            (r#"{"a":{"S":"x \u00e9 \" y"}}"#, r#"{"a":"x \u00e9 \" y"}"#),
            (
                r#"{"a":{"N":"12345678901234567890.123456789012345678"}}"#,
                r#"{"a":12345678901234567890.123456789012345678}"#,
            ),
            (r#"{"a":{"N":"-1E+100"},"b":{"B":"AAEq"}}"#, r#"{"a":-1E+100,"b":"AAEq"}"#),
            (r#"{"a":{"BOOL":true},"b":{"NULL":true}}"#, r#"{"a":true,"b":null}"#),
            (
                r#"{"a":{"SS":["x","y"]},"b":{"NS":["1","2.50"]},"c":{"BS":[]}}"#,
                r#"{"a":["x","y"],"b":[1,2.50],"c":[]}"#,
            ),
            (
                r#"{"a":{"L":[{"S":"x"},{"L":[]},{"M":{"b":{"N":"1"}}}]}}"#,
                r#"{"a":["x",[],{"b":1}]}"#,
            ),
        ] {
            assert_eq!(converted(image).as_deref(), Some(plain), "{image}");
        }
    }

    #[test]
    fn json_that_is_not_an_attribute_is_refused() {
        let deep = r#"{"L":["#.repeat(100) + &"]}".repeat(100);
        for image in [
            "[]",
            "7",
            r#"{"a":1}"#,
            r#"{"a":["S"]}"#,
            r#"{"a":{}}"#,
            r#"{"a":{"S":"x","N":"1"}}"#,
            r#"{"a":{"S":1}}"#,
            r#"{"a":{"N":1}}"#,
            r#"{"a":{"N":"01"}}"#,
            r#"{"a":{"N":"\"1\""}}"#,
            r#"{"a":{"N":"[]"}}"#,
            r#"{"a":{"N":" 1 "}}"#,
            r#"{"a":{"N":"NaN"}}"#,
            r#"{"a":{"BOOL":"yes"}}"#,
            r#"{"a":{"X":"y"}}"#,
            &format!(r#"{{"a":{deep}}}"#),
        ] {
            assert_eq!(converted(image), None, "{image}");
        }
    }
}
