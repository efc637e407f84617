//! Functions on text, and some that take lists as well.

use std::sync::Arc;

use super::{Answer, Call};
use crate::key::dialect::{
    Library, coercion, compare, decode,
    read::read,
    value::{Text, Value},
};

impl Call<'_> {
    /// What the language counts: code points, or units of UTF-16.
    pub(super) fn symbols(&self, text: &Text) -> Vec<u32> {
        match self.library {
            Library::Python => text.0.to_vec(),
            Library::TypeScript => text.units().into_iter().map(u32::from).collect(),
        }
    }

    pub(super) fn join(&self, separator: &Text, items: &[Value]) -> Answer {
        let mut joined = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let Value::String(text) = item else { return Err(self.type_error(item)) };
            if at > 0 {
                joined.extend_from_slice(&separator.0);
            }
            joined.extend_from_slice(&text.0);
        }
        let joined = Text(joined.into());
        Ok(Value::String(match self.library {
            Library::Python => joined,
            Library::TypeScript => Text::from_units(&joined.units()),
        }))
    }

    /// `part in text`, or `text.includes(part)`, which makes a text of anything.
    pub(super) fn contains_text(&self, text: &Text, part: &Value) -> Answer {
        let part = match (part, self.library) {
            (Value::String(part), _) => part.clone(),
            (part, Library::TypeScript) => coercion::text(part),
            (part, Library::Python) => return Err(self.type_error(part)),
        };
        let (text, part) = (self.symbols(text), self.symbols(&part));
        let found = part.is_empty() || text.windows(part.len()).any(|w| *w == *part);
        Ok(Value::Bool(found))
    }

    /// JavaScript knows lists and objects by their identity, which is that of ours: it is copied
    /// where the library copies it.
    pub(super) fn has(&self, items: &[Value], part: &Value) -> bool {
        items.iter().any(|item| match (item, part, self.library) {
            (Value::Array(item), Value::Array(part), Library::TypeScript) => {
                Arc::ptr_eq(item, part)
            }
            (Value::Object(item), Value::Object(part), Library::TypeScript) => {
                Arc::ptr_eq(item, part)
            }
            (item, part, library) => compare::same(library, item, part),
        })
    }

    pub(super) fn reverse(&self, value: &Value) -> Answer {
        Ok(match (value, self.library) {
            (Value::String(text), Library::Python) => {
                Value::String(Text(text.0.iter().rev().copied().collect()))
            }
            (Value::String(text), Library::TypeScript) => {
                let units: Vec<u16> = text.units().into_iter().rev().collect();
                Value::String(Text::from_units(&units))
            }
            (Value::Array(items), Library::Python) => {
                Value::array(items.iter().rev().cloned().collect())
            }
            (Value::Array(items), Library::TypeScript) => return self.reverse_in_place(items),
            (value, _) => return Err(self.type_error(value)),
        })
    }

    /// What TypeScript cannot decode is `undefined` there, and an error in Python.
    pub(super) fn decode(&self, text: &Text) -> Answer {
        if text.to_str().is_none() && self.name == "powertools_json" {
            return Err(self.differs("it meets half a surrogate pair"));
        }
        let decoded = match self.name {
            "powertools_json" => text.to_str().and_then(|json| read(self.library, &json).ok()),
            name => decode::base64(self.library, text).and_then(|bytes| {
                let bytes = match name {
                    "powertools_base64" => bytes,
                    _ => decode::gunzip(self.library, &bytes)?,
                };
                let is_plain = name == "powertools_base64";
                decode::utf8(self.library, &bytes, is_plain, self.evaluation.losses)
            }),
        };
        match decoded {
            Some(value) => Ok(value),
            None if self.library == Library::TypeScript => Ok(Value::Undefined),
            None => Err(format!("{}() cannot read the text", self.name)),
        }
    }
}
