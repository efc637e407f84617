//! Reading JSON: `serde_json` finds the values, and we make of them what they are.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt,
    sync::Arc,
};

use jmespath::{Rcvar, Variable};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, value::RawValue};

use super::{
    DocumentError,
    numeral::{self, Bounds, Scanner, Side},
    reads::Node,
};

/// With `arbitrary_precision` or `raw_value` on somewhere, `serde_json` gives such members a
/// meaning of its own; text that brings them along would be read as something else.
pub(super) const RESERVED: &str = "$serde_json::private::";
const NUMBER: &str = "$serde_json::private::Number";
const DUPLICATE: &str = "duplicate member";
const TOO_LARGE: &str = "a number that is larger than any double";

/// One reading of a text.
pub(super) struct Reading<'j> {
    json: &'j str,
    side: Side,
    /// How many numerals have been read since the scanner was placed.
    numerals: Cell<usize>,
    scanner: RefCell<Scanner<'j>>,
    met_inexact: Cell<bool>,
}

impl<'j> Reading<'j> {
    pub(super) fn new(json: &'j str, side: Side) -> Self {
        Self {
            json,
            side,
            numerals: Cell::new(0),
            scanner: RefCell::new(Scanner::new(json, 0)),
            met_inexact: Cell::new(false),
        }
    }

    /// Whether there was any number that is not exact.
    pub(super) const fn met_inexact(&self) -> bool {
        self.met_inexact.get()
    }

    /// Reads what is wanted of the text, and skips the rest.
    pub(super) fn run(&self, wanted: &Node) -> Result<Rcvar, DocumentError> {
        let mut deserializer = serde_json::Deserializer::from_str(self.json);
        Value { reading: self, wanted }
            .deserialize(&mut deserializer)
            .and_then(|value| deserializer.end().map(|()| value))
            .map_err(|e| describe(&e))
    }

    fn integer(&self, number: impl Into<Number>) -> Variable {
        self.numerals.set(self.numerals.get() + 1);
        Variable::Number(number.into())
    }

    /// The number that comes next, taken from the text.
    fn double<E: Error>(&self) -> Result<Variable, E> {
        let number = self.numerals.replace(self.numerals.get() + 1);
        let numeral = self.scanner.borrow_mut().nth(number);
        self.bounded(numeral.unwrap_or_default())
    }

    fn bounded<E: Error>(&self, numeral: &str) -> Result<Variable, E> {
        let bounds = Bounds::of(numeral).ok_or_else(|| E::custom(TOO_LARGE))?;
        self.met_inexact.set(self.met_inexact.get() || !bounds.is_exact());
        let number = Number::from_f64(bounds.on(self.side));
        number.map(Variable::Number).ok_or_else(|| E::custom(TOO_LARGE))
    }

    /// A numeral handed over as text, as `arbitrary_precision` does.
    fn numeral<E: Error>(&self, text: &str) -> Result<Variable, E> {
        numeral::integer(text)
            .map_or_else(|| self.bounded(text), |number| Ok(Variable::Number(number)))
    }

    /// Numerals in what was skipped have not been counted: looks for the next one behind it.
    fn skipped(&self, value: &RawValue) {
        let end = value.get().as_ptr().addr() + value.get().len() - self.json.as_ptr().addr();
        *self.scanner.borrow_mut() = Scanner::new(self.json.get(end..).unwrap_or_default(), 0);
        self.numerals.set(0);
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

/// A value, as far as it is wanted.
#[derive(Clone, Copy)]
struct Value<'a, 'j> {
    reading: &'a Reading<'j>,
    wanted: &'a Node,
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = Rcvar;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Rcvar, D::Error> {
        deserializer.deserialize_any(self).map(Arc::new)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = Variable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Variable, E> {
        Ok(Variable::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Variable, E> {
        Ok(self.reading.integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Variable, E> {
        Ok(self.reading.integer(value))
    }

    fn visit_f64<E: Error>(self, _nearly: f64) -> Result<Variable, E> {
        self.reading.double()
    }

    fn visit_str<E>(self, value: &str) -> Result<Variable, E> {
        // Where only members are wanted, it is enough that it is no object.
        Ok(Variable::String(if self.all() { value.to_owned() } else { String::new() }))
    }

    fn visit_unit<E>(self) -> Result<Variable, E> {
        Ok(Variable::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Variable, A::Error> {
        let mut items = Vec::new();
        if self.all() {
            while let Some(item) = seq.next_element_seed(self)? {
                items.push(item);
            }
        } else {
            while let Some(item) = seq.next_element::<&RawValue>()? {
                self.reading.skipped(item);
            }
        }
        Ok(Variable::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Variable, A::Error> {
        let mut members = BTreeMap::new();
        while let Some(name) =
            map.next_key_seed(NameSeed { wanted: self.wanted, json: self.reading.json })?
        {
            let (name, wanted) = match name {
                Name::Member(name, wanted) => (name, wanted),
                Name::Other => {
                    self.reading.skipped(map.next_value()?);
                    continue;
                }
                Name::Number => return self.reading.numeral(&map.next_value::<String>()?),
            };
            let value = map.next_value_seed(Value { wanted, ..self })?;
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom(DUPLICATE));
            }
        }
        Ok(Variable::Object(members))
    }
}

impl Value<'_, '_> {
    const fn all(&self) -> bool {
        matches!(self.wanted, Node::All)
    }
}

enum Name<'a> {
    /// A member, and what of it is wanted.
    Member(String, &'a Node),
    /// A member that nobody looks at.
    Other,
    /// What follows is no member, but a numeral as text.
    Number,
}

/// Tells the name of a member from `serde_json`'s own, which does not stand in the text.
struct NameSeed<'a> {
    wanted: &'a Node,
    json: &'a str,
}

impl<'de, 'a> DeserializeSeed<'de> for NameSeed<'a> {
    type Value = Name<'a>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name<'a>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, 'a> Visitor<'de> for NameSeed<'a> {
    type Value = Name<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Name<'a>, E> {
        let is_text = self.json.as_bytes().as_ptr_range().contains(&name.as_ptr());
        if name == NUMBER && !is_text { Ok(Name::Number) } else { self.visit_str(name) }
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Name<'a>, E> {
        if name.starts_with(RESERVED) {
            return Err(E::custom(RESERVED));
        }
        Ok(match self.wanted {
            Node::All => Name::Member(name.to_owned(), self.wanted),
            Node::Members(members) => match members.get(name) {
                Some(wanted) => Name::Member(name.to_owned(), wanted),
                None => Name::Other,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerals_given_as_text_read_the_same() {
        let reading = Reading::new("", Side::Below);
        let read = |text| reading.numeral::<serde_json::Error>(text).unwrap().to_string();
        for text in ["1", "-2", "18446744073709551615", "-9223372036854775808", "2.5"] {
            assert_eq!(read(text), text);
        }
        assert_eq!(read("-0"), "-0.0");
        assert!(!reading.met_inexact());
        for text in ["18446744073709551617", "0.1000000000000000055"] {
            read(text);
            assert!(reading.met_inexact.replace(false), "{text}");
        }
    }
}
