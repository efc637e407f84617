//! Reading JSON: `serde_json` finds the values, and we make of them what they are.

use std::{cell::Cell, collections::BTreeMap, fmt, sync::Arc};

use jmespath::{Rcvar, Variable};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::{
    DocumentError,
    numeral::{self, Bounds, Side},
};

/// With `arbitrary_precision` or `raw_value` on somewhere, `serde_json` gives such members a
/// meaning of its own; text that brings them along would be read as something else.
pub(super) const RESERVED: &str = "$serde_json::private::";
const NUMBER: &str = "$serde_json::private::Number";
const DUPLICATE: &str = "duplicate member";
const TOO_LARGE: &str = "a number that is larger than any double";

/// One reading of a text.
#[derive(Default)]
pub(super) struct Reading<'a> {
    /// The numerals in document order, and the side to read them from; at first, only whether there
    /// is any double among them is of interest.
    doubles: Option<(&'a [Option<Bounds>], Side)>,
    numerals: Cell<usize>,
    saw_double: Cell<bool>,
}

impl<'a> Reading<'a> {
    pub(super) fn on(side: Side, numerals: &'a [Option<Bounds>]) -> Self {
        Self { doubles: Some((numerals, side)), ..Self::default() }
    }

    /// Whether there was any number that is no integer of 64 bits.
    pub(super) const fn saw_double(&self) -> bool {
        self.saw_double.get()
    }

    pub(super) fn run(&self, json: &str) -> Result<Rcvar, DocumentError> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        Node(self)
            .deserialize(&mut deserializer)
            .and_then(|value| deserializer.end().map(|()| value))
            .map_err(|e| describe(&e))
    }

    fn integer(&self, number: impl Into<Number>) -> Variable {
        self.numerals.set(self.numerals.get() + 1);
        Variable::Number(number.into())
    }

    fn double<E: Error>(&self) -> Result<Variable, E> {
        let at = self.numerals.replace(self.numerals.get() + 1);
        self.saw_double.set(true);
        let Some((bounds, side)) = self.doubles else { return Ok(Variable::Null) };
        let bounds = bounds.get(at).copied().flatten();
        bounds
            .and_then(|bounds| Number::from_f64(bounds.on(side)))
            .map(Variable::Number)
            .ok_or_else(|| E::custom(TOO_LARGE))
    }

    /// A numeral handed over as text, as `arbitrary_precision` does.
    fn numeral<E: Error>(&self, text: &str) -> Result<Variable, E> {
        numeral::integer(text).map_or_else(|| self.double(), |number| Ok(self.integer(number)))
    }
}

fn describe(error: &serde_json::Error) -> DocumentError {
    let (line, column) = (error.line(), error.column());
    let reason = match error.classify() {
        serde_json::error::Category::Eof => "it ends too early",
        // The message is not shown, since it may quote the text.
        serde_json::error::Category::Data => match error.to_string() {
            message if message.starts_with(DUPLICATE) => {
                return DocumentError::DuplicateMember { line, column };
            }
            message if message.starts_with(RESERVED) => return DocumentError::ReservedMember,
            _ => TOO_LARGE,
        },
        _ if error.to_string().starts_with("number out of range") => TOO_LARGE,
        _ => "a character that cannot stand there, an invalid escape or too deep a nesting",
    };
    DocumentError::Syntax { reason, line, column }
}

#[derive(Clone, Copy)]
struct Node<'a>(&'a Reading<'a>);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Rcvar;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Rcvar, D::Error> {
        deserializer.deserialize_any(self).map(Arc::new)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Variable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Variable, E> {
        Ok(Variable::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Variable, E> {
        Ok(self.0.integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Variable, E> {
        Ok(self.0.integer(value))
    }

    fn visit_f64<E: Error>(self, _nearly: f64) -> Result<Variable, E> {
        self.0.double()
    }

    fn visit_str<E>(self, value: &str) -> Result<Variable, E> {
        Ok(Variable::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Variable, E> {
        Ok(Variable::String(value))
    }

    fn visit_unit<E>(self) -> Result<Variable, E> {
        Ok(Variable::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Variable, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Variable::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Variable, A::Error> {
        let mut members = BTreeMap::new();
        while let Some(name) = map.next_key_seed(NameSeed)? {
            let Name::Member(name) = name else {
                return self.0.numeral(&map.next_value::<String>()?);
            };
            let value = map.next_value_seed(self)?;
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom(DUPLICATE));
            }
        }
        Ok(Variable::Object(members))
    }
}

enum Name {
    Member(String),
    /// What follows is no member, but a numeral as text.
    Number,
}

/// Tells the name of a member from `serde_json`'s own. Text cannot pass for the latter: without
/// escapes, [`Document::parse`] has refused it, and with escapes it comes as a temporary.
struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for NameSeed {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Name, E> {
        if name == NUMBER { Ok(Name::Number) } else { self.visit_str(name) }
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
        if name.starts_with(RESERVED) {
            return Err(E::custom(RESERVED));
        }
        Ok(Name::Member(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerals_given_as_text_read_the_same() {
        let reading = Reading::default();
        let read = |text| reading.numeral::<serde_json::Error>(text).unwrap().to_string();
        for text in ["1", "-2", "18446744073709551615", "-9223372036854775808"] {
            assert_eq!(read(text), text);
        }
        assert!(!reading.saw_double.get());
        for text in ["-0", "2.5", "18446744073709551616", "0.1000000000000000055"] {
            read(text);
            assert!(reading.saw_double.replace(false), "{text}");
        }
    }
}
