//! The functions of both libraries, where they agree and where they do not.

use std::{cmp::Ordering, sync::Arc};

use jmespath::ast::Ast;

use super::{
    Library, Loss, compare, decode,
    evaluate::{Argument, Evaluation},
    numbers,
    read::read,
    value::{Members, Text, Value},
    write::{Layout, write},
};
use crate::key::SelectionError;

/// What went wrong: types and counts, never values.
type Why = String;

/// How many arguments each function takes: at least, and at most.
pub(super) fn arity(name: &str) -> Option<(usize, usize)> {
    Some(match name {
        "abs"
        | "avg"
        | "ceil"
        | "floor"
        | "keys"
        | "length"
        | "max"
        | "min"
        | "reverse"
        | "sort"
        | "sum"
        | "to_array"
        | "to_number"
        | "to_string"
        | "type"
        | "values"
        | "powertools_json"
        | "powertools_base64"
        | "powertools_base64_gzip" => (1, 1),
        "contains" | "ends_with" | "join" | "map" | "max_by" | "min_by" | "sort_by"
        | "starts_with" => (2, 2),
        "merge" | "not_null" => (1, usize::MAX),
        _ => return None,
    })
}

pub(super) fn call(
    evaluation: &Evaluation<'_>,
    name: &str,
    arguments: Vec<Argument<'_>>,
) -> Result<Value, Why> {
    let call = Call { evaluation, library: evaluation.library, name };
    let mut arguments = arguments.into_iter();
    match (name, arguments.next(), arguments.next()) {
        ("map", Some(Argument::Expression(ast)), Some(Argument::Value(items))) => {
            call.map(ast, &items)
        }
        (
            "max_by" | "min_by" | "sort_by",
            Some(Argument::Value(items)),
            Some(Argument::Expression(ast)),
        ) => call.by(&items, ast),
        ("merge" | "not_null", first, second) => {
            let all = [first, second].into_iter().flatten().chain(arguments);
            let values: Result<Vec<Value>, Why> = all.map(|one| call.value(one)).collect();
            if name == "merge" { call.merge(&values?) } else { Ok(call.not_null(values?)) }
        }
        (_, Some(first), None) => call.unary(call.value(first)?),
        (_, Some(first), Some(second)) => call.binary(&call.value(first)?, &call.value(second)?),
        (_, None, _) => Err(format!("{name}() has no arguments")),
    }
}

struct Call<'c> {
    evaluation: &'c Evaluation<'c>,
    library: Library,
    name: &'c str,
}

impl Call<'_> {
    fn value(&self, argument: Argument<'_>) -> Result<Value, Why> {
        match argument {
            Argument::Value(value) => Ok(value),
            Argument::Expression(_) => Err(format!("{}() takes no `&expression` there", self.name)),
        }
    }

    fn type_error(&self, value: &Value) -> Why {
        format!("{}() does not take {}", self.name, type_name(value))
    }

    fn differs(&self, what: &str) -> Why {
        format!("{}(): {what}, which cannot be reproduced", self.name)
    }

    fn unary(&self, value: Value) -> Result<Value, Why> {
        let losses = self.evaluation.losses;
        match self.name {
            "type" => return Ok(Value::text(type_name(&value))),
            "length" => return self.length(&value),
            "to_array" if matches!(value, Value::Array(_)) => return Ok(value),
            "to_array" => return Ok(Value::array(vec![value])),
            "keys" | "values" => return self.members(&value),
            "powertools_json" | "powertools_base64" | "powertools_base64_gzip" => {
                let Value::String(text) = &value else { return Err(self.type_error(&value)) };
                return self.decode(text);
            }
            _ => losses.see(&value),
        }
        match (self.name, &value) {
            ("abs" | "ceil" | "floor", Value::Number(number)) => {
                numbers::round(self.library, self.name, number).map_err(|what| self.differs(what))
            }
            ("avg" | "sum", Value::Array(items)) => {
                let numbers = self.all_numbers(items)?;
                let total = if self.name == "sum" { numbers::sum } else { numbers::average };
                total(self.library, &numbers).map_err(|what| self.differs(what))
            }
            ("max" | "min" | "sort", Value::Array(items)) => self.ordered(items),
            ("reverse", Value::String(text)) => Ok(Value::String(match self.library {
                Library::Python => Text(text.0.iter().rev().copied().collect()),
                Library::TypeScript => {
                    Text::from_units(&text.units().into_iter().rev().collect::<Vec<_>>())
                }
            })),
            ("reverse", Value::Array(items)) => match self.library {
                Library::Python => Ok(Value::array(items.iter().rev().cloned().collect())),
                Library::TypeScript => Err(self.differs("TypeScript reverses the event itself")),
            },
            ("to_number", value) => Ok(numbers::from_value(self.library, value)),
            ("to_string", Value::String(_)) => Ok(value),
            ("to_string", value) => {
                let text = write(Layout::to_string(self.library), value, losses);
                Ok(text.map_or(Value::Undefined, |text| Value::text(&text)))
            }
            (_, value) => Err(self.type_error(value)),
        }
    }

    fn binary(&self, first: &Value, second: &Value) -> Result<Value, Why> {
        self.evaluation.losses.see(first);
        self.evaluation.losses.see(second);
        match (self.name, first, second) {
            ("starts_with", Value::String(text), Value::String(part)) => {
                Ok(Value::Bool(text.0.starts_with(&part.0)))
            }
            ("ends_with", Value::String(text), Value::String(part)) => {
                Ok(Value::Bool(text.0.ends_with(&part.0)))
            }
            ("join", Value::String(separator), Value::Array(items)) => {
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
            ("contains", Value::String(text), Value::String(part)) => {
                let (text, part) = (text.units(), part.units());
                let found = part.is_empty() || text.windows(part.len()).any(|w| *w == *part);
                Ok(Value::Bool(found))
            }
            ("contains", Value::Array(_), Value::Array(_) | Value::Object(_))
                if self.library == Library::TypeScript =>
            {
                Err(self.differs("TypeScript compares objects by identity"))
            }
            ("contains", Value::Array(items), part) => {
                Ok(Value::Bool(items.iter().any(|item| compare::same(self.library, item, part))))
            }
            (_, Value::Array(_) | Value::String(_), second) => Err(self.type_error(second)),
            (_, first, _) => Err(self.type_error(first)),
        }
    }

    fn length(&self, value: &Value) -> Result<Value, Why> {
        let length = match (value, self.library) {
            (Value::String(text), Library::Python) => text.0.len(),
            (Value::String(text), Library::TypeScript) => text.units().len(),
            (Value::Array(items), _) => items.len(),
            (Value::Object(members), _) => {
                self.evaluation.losses.see_members(members);
                members.len()
            }
            _ => return Err(self.type_error(value)),
        };
        Ok(numbers::count(self.library, length))
    }

    fn members(&self, value: &Value) -> Result<Value, Why> {
        let Value::Object(members) = value else { return Err(self.type_error(value)) };
        if self.name == "values" {
            return Ok(self.evaluation.values(members));
        }
        self.evaluation.losses.see_members(members);
        Ok(Value::array(members.iter().map(|(name, _)| Value::String(name.clone())).collect()))
    }

    /// What TypeScript cannot decode is `undefined` there, and an error in Python.
    fn decode(&self, text: &Text) -> Result<Value, Why> {
        let decoded = match self.name {
            "powertools_json" => text.to_str().and_then(|json| read(self.library, &json).ok()),
            name => decode::base64(self.library, text).and_then(|bytes| {
                let bytes = if name.ends_with("_gzip") { decode::gunzip(&bytes)? } else { bytes };
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

    fn all_numbers<'v>(&self, items: &'v [Value]) -> Result<Vec<&'v super::value::Number>, Why> {
        let number = |item: &'v Value| match item {
            Value::Number(number) => Ok(number),
            other => Err(self.type_error(other)),
        };
        items.iter().map(number).collect()
    }

    /// The order of two texts, or of two numbers that are any.
    fn order(&self, a: &Value, b: &Value) -> Result<Ordering, Why> {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => {
                compare::numbers(a, b).ok_or_else(|| self.differs("it meets NaN"))
            }
            (Value::String(a), Value::String(b)) => Ok(match self.library {
                Library::Python => a.cmp(b),
                Library::TypeScript => a.units().cmp(&b.units()),
            }),
            (Value::Number(_) | Value::String(_), other) | (other, _) => {
                Err(self.type_error(other))
            }
        }
    }

    fn ordered(&self, items: &[Value]) -> Result<Value, Why> {
        if self.name == "sort"
            && self.library == Library::TypeScript
            && items.iter().any(|item| matches!(item, Value::String(_)))
        {
            return Err(self.differs("TypeScript sorts text as the locale has it"));
        }
        let items: Vec<_> = items.iter().map(|item| (item.clone(), item.clone())).collect();
        self.pick(items)
    }

    fn by(&self, items: &Value, ast: &Ast) -> Result<Value, Why> {
        let Value::Array(items) = items else { return Err(self.type_error(items)) };
        let keyed = items.iter().map(|item| {
            let key = self.evaluation.run(ast, item).map_err(|e| e.to_string())?;
            self.evaluation.losses.see(&key);
            Ok((key, item.clone()))
        });
        self.pick(keyed.collect::<Result<_, Why>>()?)
    }

    /// The first greatest, the first least, or all in order, by their keys.
    fn pick(&self, keyed: Vec<(Value, Value)>) -> Result<Value, Why> {
        if let Some((only, _)) = keyed.first() {
            self.order(only, only)?;
        }
        let mut sorted: Vec<(Value, Value)> = Vec::with_capacity(keyed.len());
        for (key, item) in keyed {
            // Behind those that are not greater: stable.
            let mut place = sorted.len();
            while let Some((before, _)) = place.checked_sub(1).and_then(|at| sorted.get(at)) {
                if self.order(before, &key)?.is_le() {
                    break;
                }
                place -= 1;
            }
            sorted.insert(place, (key, item));
        }
        if self.name.starts_with("sort") {
            return Ok(Value::array(sorted.into_iter().map(|(_, item)| item).collect()));
        }
        let picked = if self.name.starts_with("max") {
            let Some((greatest, _)) = sorted.last() else { return Ok(Value::Null) };
            let mut equal = sorted.iter();
            equal.find(|(key, _)| self.order(key, greatest).is_ok_and(Ordering::is_eq))
        } else {
            sorted.first()
        };
        Ok(picked.map_or(Value::Null, |(_, item)| item.clone()))
    }

    fn map(&self, ast: &Ast, items: &Value) -> Result<Value, Why> {
        let Value::Array(items) = items else { return Err(self.type_error(items)) };
        let mapped = items.iter().map(|item| {
            let value =
                self.evaluation.run(ast, item).map_err(|e: SelectionError| e.to_string())?;
            Ok(self.or_null(value))
        });
        mapped.collect::<Result<_, Why>>().map(Value::array)
    }

    /// `value || null` in JavaScript, which takes 0, "" and false for nothing.
    fn or_null(&self, value: Value) -> Value {
        if self.library == Library::Python || is_truthy(&value) {
            return value;
        }
        if !value.is_null() {
            self.evaluation.losses.note(Loss::TakenForMissing);
        }
        Value::Null
    }

    fn merge(&self, values: &[Value]) -> Result<Value, Why> {
        let mut merged = Vec::new();
        for value in values {
            let Value::Object(members) = value else { return Err(self.type_error(value)) };
            self.evaluation.losses.see_members(members);
            merged.extend(members.iter().cloned());
        }
        Ok(Value::Object(Arc::new(Members::merged(self.library, merged))))
    }

    fn not_null(&self, values: Vec<Value>) -> Value {
        let found = values.into_iter().find(|value| !value.is_null());
        self.or_null(found.unwrap_or(Value::Null))
    }
}

/// JavaScript's idea of true.
pub(super) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Undefined | Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => {
            let double = numbers::double(number);
            double != 0.0 && !double.is_nan()
        }
        Value::String(text) => !text.0.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Undefined => "unknown",
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
