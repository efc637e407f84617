//! Writes a value as the text that each variant hashes.

use std::fmt::Write as _;

use super::{
    decimal,
    evaluate::EvaluationError,
    value::{Collision, Collisions, Kind, MOST_BYTES, Members, Number, Text, Value, Variant},
};

/// The longest text in bytes. A value that was read grows at most fivefold (JavaScript writes
/// `1e20` as 21 digits), but an expression can list one value many times.
const LONGEST: usize = 8 * MOST_BYTES;

/// The text that is hashed: `json.dumps(.., sort_keys=True)` or `JSON.stringify(deepSort(..))`; `None` where JavaScript
/// returns `undefined`.
pub(crate) fn write(
    variant: Variant,
    value: &Value,
    collisions: &Collisions,
) -> Result<Option<String>, EvaluationError> {
    if matches!(value, Value::Undefined) {
        return Ok(None);
    }
    let separators = if variant.is_python() { (", ", ": ") } else { (",", ":") };
    let mut out = String::with_capacity(64);
    Writer { variant, separators, collisions }.value(value, &mut out);
    if out.len() > LONGEST { Err(EvaluationError::TooLong) } else { Ok(Some(out)) }
}

struct Writer<'l> {
    variant: Variant,
    separators: (&'static str, &'static str),
    collisions: &'l Collisions,
}

impl Writer<'_> {
    fn value(&self, value: &Value, out: &mut String) {
        if out.len() > LONGEST {
            return;
        }
        match value {
            Value::Undefined => {
                self.collisions.note(Collision::Undefined);
                out.push_str("null");
            }
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) => {
                if !number.exact {
                    self.collisions.note(Collision::Number);
                }
                out.push_str(&number_text(self.variant, number));
            }
            Value::String(text) => self.string(text, out),
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push_str(self.separators.0);
                    }
                    self.value(item, out);
                }
                out.push(']');
            }
            Value::Object(members) => self.object(members, out),
        }
    }

    fn object(&self, members: &Members, out: &mut String) {
        self.collisions.see_members(members);
        let mut entries: Vec<&(Text, Value)> = members.iter().collect();
        if self.variant.is_typescript() {
            return self.deep_sorted(entries, out);
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        self.members(entries.into_iter(), out);
    }

    /// Adds the members to a new object in the order of their lower-case names. Names that differ
    /// only in case keep their order, and `__proto__` does not set a member.
    fn deep_sorted(&self, mut entries: Vec<&(Text, Value)>, out: &mut String) {
        let given = entries.len();
        entries.retain(|(name, _)| !name.is("__proto__"));
        if entries.len() < given {
            self.collisions.note(Collision::Prototype);
        }
        entries.sort_by_cached_key(|(name, _)| lower_case(name));
        let sorted = entries.into_iter().cloned().collect();
        self.members(Members::new(self.variant, sorted).iter(), out);
    }

    fn members<'v>(&self, entries: impl Iterator<Item = &'v (Text, Value)>, out: &mut String) {
        out.push('{');
        let mut first = true;
        for (name, value) in entries {
            if matches!(value, Value::Undefined) {
                self.collisions.note(Collision::Undefined);
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push_str(self.separators.0);
            }
            self.string(name, out);
            out.push_str(self.separators.1);
            self.value(value, out);
        }
        out.push('}');
    }

    fn string(&self, text: &Text, out: &mut String) {
        out.push('"');
        for code in text.codes() {
            let escape = match code {
                0x22 => Some('"'),
                0x5C => Some('\\'),
                0x08 => Some('b'),
                0x0C => Some('f'),
                0x0A => Some('n'),
                0x0D => Some('r'),
                0x09 => Some('t'),
                _ => None,
            };
            if let Some(escape) = escape {
                out.extend(['\\', escape]);
                continue;
            }
            let literal = match (self.variant, char::from_u32(code)) {
                (_, Some(c)) if c < ' ' => None,
                (Variant::Python(_), Some(c)) if c > '~' => None,
                (_, c) => c,
            };
            match literal {
                Some(c) => out.push(c),
                None => escape_units(code, out),
            }
        }
        out.push('"');
    }
}

/// `\uXXXX` for each unit of UTF-16.
fn escape_units(code: u32, out: &mut String) {
    for unit in Text::from_codes(vec![code]).units() {
        // Writing to a string does not fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

fn number_text(variant: Variant, number: &Number) -> String {
    match &number.kind {
        Kind::Integer(text) => text.to_string(),
        Kind::Double(double) if variant.is_python() => decimal::python(*double),
        Kind::Double(double) => decimal::javascript(*double),
    }
}

/// `toLowerCase`, which keeps half surrogates, as UTF-16 units, which JavaScript compares.
fn lower_case(name: &Text) -> Vec<u16> {
    let mut units = Vec::new();
    let mut whole = String::new();
    for code in name.codes() {
        match char::from_u32(code) {
            Some(c) => whole.push(c),
            None => {
                units.extend(std::mem::take(&mut whole).to_lowercase().encode_utf16());
                units.extend(Text::from_codes(vec![code]).units());
            }
        }
    }
    units.extend(whole.to_lowercase().encode_utf16());
    units
}
