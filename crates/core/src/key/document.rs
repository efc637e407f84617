//! JSON text as the value that expressions read.
//!
//! Parsed by `serde_json`, but into our own choice of value: what `serde_json::Value` makes of
//! numbers and of member order depends on features that any crate of the user's program can turn
//! on, and a key must not.

use std::{collections::BTreeMap, fmt, sync::Arc};

use jmespath::{Rcvar, Variable, ast::Ast};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::numeral;

/// A parsed JSON text.
#[derive(Clone, Debug)]
pub struct Document(pub(super) Rcvar);

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
    /// A member name that `serde_json` keeps for itself.
    #[error("a member name that begins with `{RESERVED}` is reserved")]
    ReservedMember,
}

/// With `arbitrary_precision` or `raw_value` on somewhere, `serde_json` gives such members a
/// meaning of its own; text that brings them along would be read as something else.
const RESERVED: &str = "$serde_json::private::";
const NUMBER: &str = "$serde_json::private::Number";
const DUPLICATE: &str = "duplicate member";

impl Document {
    /// Parses `json`.
    ///
    /// A numeral that no double holds exactly becomes a value that no expression can select.
    ///
    /// # Errors
    /// Not JSON; an object with two members of one name; a reserved member name.
    pub fn parse(json: &str) -> Result<Self, DocumentError> {
        if json.contains(RESERVED) {
            return Err(DocumentError::ReservedMember);
        }
        let reading = Reading::default();
        let value = reading.run(json)?;
        if !reading.saw_double.get() {
            return Ok(Self(value));
        }
        // Rare enough to be worth a second look: was each of them written exactly?
        let exact = numeral::exactness(json);
        if exact.iter().all(|exact| *exact) {
            return Ok(Self(value));
        }
        Reading { exact: Some(exact), ..Reading::default() }.run(json).map(Self)
    }

    /// A document that is one JSON string.
    #[must_use]
    pub fn string(text: impl Into<String>) -> Self {
        Self(Rcvar::new(Variable::String(text.into())))
    }
}

/// What stands for a numeral that is not exact: an expression reference, which no JSON text
/// contains and which no key accepts.
fn inexact() -> Variable {
    Variable::Expref(Ast::Identity { offset: 0 })
}

/// Whether `value` stands for an inexact numeral.
pub(super) const fn is_inexact(value: &Variable) -> bool {
    matches!(value, Variable::Expref(_))
}

#[derive(Default)]
struct Reading {
    /// Whether each numeral, in document order, is exact; `None` if all are.
    exact: Option<Vec<bool>>,
    numerals: std::cell::Cell<usize>,
    saw_double: std::cell::Cell<bool>,
}

impl Reading {
    fn run(&self, json: &str) -> Result<Rcvar, DocumentError> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        Node(self)
            .deserialize(&mut deserializer)
            .and_then(|value| deserializer.end().map(|()| value))
            .map_err(|e| describe(&e))
    }

    fn number(&self, number: Option<Number>) -> Variable {
        let at = self.numerals.get();
        self.numerals.set(at + 1);
        let exact = self.exact.as_ref().is_none_or(|exact| exact.get(at) == Some(&true));
        match number {
            Some(number) if exact || !number.is_f64() => Variable::Number(number),
            _ => inexact(),
        }
    }

    /// A numeral handed over as text, as `arbitrary_precision` does.
    fn numeral(&self, text: &str) -> Variable {
        let integer = text
            .parse::<u64>()
            .map(Number::from)
            .or_else(|_| text.parse::<i64>().map(Number::from))
            .ok()
            // `serde_json` reads it as a double, whose sign counts.
            .filter(|_| text != "-0");
        if let Some(number) = integer {
            return self.number(Some(number));
        }
        self.saw_double.set(true);
        let double = text.parse().ok().filter(|_| numeral::is_exact(text));
        self.number(double.and_then(Number::from_f64))
    }
}

fn describe(error: &serde_json::Error) -> DocumentError {
    let (line, column) = (error.line(), error.column());
    let reason = match error.classify() {
        serde_json::error::Category::Eof => "it ends too early",
        // Only our own visitor and the depth limit raise anything else; the message is not shown,
        // since it may quote the text.
        _ if error.to_string().starts_with(DUPLICATE) => {
            return DocumentError::DuplicateMember { line, column };
        }
        _ => "a character that cannot stand there, an invalid escape or too deep a nesting",
    };
    DocumentError::Syntax { reason, line, column }
}

#[derive(Clone, Copy)]
struct Node<'a>(&'a Reading);

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
        Ok(self.0.number(Some(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Variable, E> {
        Ok(self.0.number(Some(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Variable, E> {
        self.0.saw_double.set(true);
        Ok(self.0.number(Number::from_f64(value)))
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
        while let Some(name) = map.next_key::<String>()? {
            if name == NUMBER {
                return Ok(self.0.numeral(&map.next_value::<String>()?));
            }
            let value = map.next_value_seed(self)?;
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom(DUPLICATE));
            }
        }
        Ok(Variable::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> String {
        Document::parse(json).unwrap().0.to_string()
    }

    #[test]
    fn values_of_every_kind() {
        assert_eq!(
            parsed(r#" {"b":[1,-2,2.5,true,null,"é\u0041"],"a":{}} "#),
            r#"{"a":{},"b":[1,-2,2.5,true,null,"éA"]}"#
        );
    }

    #[test]
    fn an_inexact_numeral_is_marked_and_the_others_are_not() {
        let document = Document::parse("[1.5, 0.1000000000000000055, 7, 1e999e]");
        assert!(document.is_err());
        let document = Document::parse("[1.5, 0.1000000000000000055, 7]").unwrap();
        let marks: Vec<_> =
            document.0.as_array().unwrap().iter().map(|item| is_inexact(item)).collect();
        assert_eq!(marks, [false, true, false]);
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
        ];
        for (json, expected) in cases {
            let message = Document::parse(json).unwrap_err().to_string();
            assert!(message.contains(expected), "{json}: {message}");
            assert!(!message.contains("s3cr3t"), "{message}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(Document::parse(&deep).is_err());
    }

    #[test]
    fn numerals_given_as_text_read_the_same() {
        let reading = Reading::default();
        for (text, shown) in [
            ("1", "1"),
            ("-2", "-2"),
            ("18446744073709551615", "18446744073709551615"),
            ("2.5", "2.5"),
            ("-0", "-0.0"),
        ] {
            assert_eq!(reading.numeral(text).to_string(), shown);
        }
        assert!(is_inexact(&reading.numeral("0.1000000000000000055")));
        assert!(is_inexact(&reading.numeral("1e999")));
    }
}
