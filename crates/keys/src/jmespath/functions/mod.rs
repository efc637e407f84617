//! The functions that expressions may call, and where the variants differ.

mod in_place;
mod order;
mod text;

use std::sync::Arc;

use super::{
    Collision, Variant, coercion,
    error::EvaluationError,
    numbers, signatures,
    state::State,
    text::Text,
    value::{Members, Number, Value},
    write::{Layout, TooLong, write},
};

/// Why a call fails.
pub(crate) enum Why {
    /// The message, with types and counts but without values.
    Reason(String),
    /// An error without an offset, or with its own.
    Error(EvaluationError),
}
type Answer = Result<Value, Why>;

/// The result of evaluating an expression.
pub(super) type Evaluated = Result<Value, EvaluationError>;

/// An argument of a function.
pub(super) enum Argument<'a> {
    Value(Value),
    /// `&expression`: what it selects from an item.
    Expression(Box<dyn Fn(&Value) -> Evaluated + 'a>),
}

impl From<String> for Why {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

impl Why {
    /// The error of a call at this offset.
    pub(crate) fn at(self, offset: usize) -> EvaluationError {
        match self {
            Self::Reason(reason) => EvaluationError::Failed { reason, offset },
            Self::Error(error) => error,
        }
    }
}

pub(super) fn call(
    state: &State<'_>,
    name: &'static str,
    offset: usize,
    arguments: Vec<Argument<'_>>,
) -> Answer {
    let call = Call { state, variant: state.variant, name, offset };
    let mut arguments = arguments.into_iter();
    match (name, arguments.next(), arguments.next()) {
        ("map", Some(expression), Some(Argument::Value(items))) => call.map(&expression, &items),
        (
            "max_by" | "min_by" | "sort_by",
            Some(Argument::Value(items)),
            Some(Argument::Expression(key)),
        ) => call.by(&items, &key),
        ("merge" | "not_null", first, second) => {
            let all = [first, second].into_iter().flatten().chain(arguments);
            let values: Result<Vec<Value>, Why> = all.map(|one| call.value(one)).collect();
            if name == "merge" { call.merge(&values?) } else { Ok(call.not_null(values?)) }
        }
        (_, Some(first), None) => call.unary(call.value(first)?),
        (_, Some(first), Some(second)) => call.binary(&call.value(first)?, &call.value(second)?),
        (_, None, _) => Err(format!("{name}() has no arguments").into()),
    }
}

struct Call<'c> {
    state: &'c State<'c>,
    variant: Variant,
    name: &'static str,
    offset: usize,
}

impl Call<'_> {
    /// Counts the bytes of a text that is made.
    fn spend_text(&self, bytes: usize) -> Result<(), Why> {
        self.state.budget.spend_text(bytes).map_err(Why::Error)
    }

    fn value(&self, argument: Argument<'_>) -> Answer {
        match argument {
            Argument::Value(value) => Ok(value),
            Argument::Expression(_) => {
                Err(format!("{}() takes no `&expression` there", self.name).into())
            }
        }
    }

    fn type_error(&self, value: &Value) -> Why {
        let (name, takes) = (self.name, signatures::takes(self.name));
        format!("{name}() takes {takes}, and this is of type {}", type_name(value)).into()
    }

    fn differs(&self, what: &str) -> Why {
        let exactly =
            if self.variant == Variant::Standard { "" } else { ", which cannot be reproduced" };
        format!("{}(): {what}{exactly}", self.name).into()
    }

    fn unary(&self, value: Value) -> Answer {
        let collisions = self.state.collisions;
        match self.name {
            "type" => return Ok(Value::text(type_name(&value))),
            "length" => return self.length(&value),
            "to_array" if matches!(value, Value::Array(_)) => return Ok(value),
            "to_array" => return Ok(Value::array(vec![value])),
            "keys" | "values" => return self.members(&value),
            "json"
            | "base64"
            | "base64_gzip"
            | "powertools_json"
            | "powertools_base64"
            | "powertools_base64_gzip" => {
                let Value::String(text) = &value else { return Err(self.type_error(&value)) };
                return match text.to_str() {
                    Some(text) if self.variant == Variant::Standard => self.decode_strictly(text),
                    _ => self.decode(text),
                };
            }
            _ => self.state.see(&value),
        }
        match (self.name, &value) {
            ("abs" | "ceil" | "floor", Value::Number(number)) => {
                numbers::round(self.variant, self.name, number).map_err(|what| self.differs(what))
            }
            ("avg" | "sum", Value::Array(items)) => {
                let numbers = self.all_numbers(items)?;
                let total = if self.name == "sum" { numbers::sum } else { numbers::average };
                total(self.variant, &numbers, collisions).map_err(|what| self.differs(what))
            }
            ("max" | "min" | "sort", Value::Array(items)) => self.ordered(items),
            ("reverse", value) => self.reverse(value),
            ("to_number", Value::Number(_)) => Ok(value),
            ("to_number", Value::String(text)) => {
                numbers::from_text(self.variant, text).map_err(|what| self.differs(what))
            }
            ("to_number", _) => Ok(Value::Null),
            ("to_string", Value::String(_)) => Ok(value),
            ("to_string", value) => {
                let text = write(Layout::to_string(self.variant), value, collisions)
                    .map_err(|TooLong| format!("{}() gives too long a text", self.name))?;
                if self.variant == Variant::Standard && collisions.first().is_some() {
                    return Err(Why::Error(EvaluationError::InexactNumber));
                }
                self.spend_text(text.as_ref().map_or(0, String::len))?;
                Ok(text.map_or(Value::Undefined, |text| Value::text(&text)))
            }
            (_, value) => Err(self.type_error(value)),
        }
    }

    fn binary(&self, first: &Value, second: &Value) -> Answer {
        self.state.see(first);
        self.state.see(second);
        match (self.name, first, second) {
            ("starts_with", Value::String(text), Value::String(part)) => {
                Ok(Value::Bool(self.symbols(text).starts_with(&self.symbols(part))))
            }
            ("ends_with", Value::String(text), Value::String(part)) => {
                Ok(Value::Bool(self.symbols(text).ends_with(&self.symbols(part))))
            }
            ("join", Value::String(separator), Value::Array(items)) => self.join(separator, items),
            ("contains", Value::String(text), part) => self.contains_text(text, part),
            ("contains", Value::Array(items), part) => Ok(Value::Bool(self.has(items, part))),
            (_, Value::Array(_) | Value::String(_), second) => Err(self.type_error(second)),
            (_, first, _) => Err(self.type_error(first)),
        }
    }

    fn length(&self, value: &Value) -> Answer {
        let length = match value {
            Value::String(text) => self.symbols(text).len(),
            Value::Array(items) => items.len(),
            Value::Object(members) => {
                self.state.collisions.see_members(members);
                members.len()
            }
            _ => return Err(self.type_error(value)),
        };
        Ok(numbers::count(self.variant, length))
    }

    fn members(&self, value: &Value) -> Answer {
        let Value::Object(members) = value else { return Err(self.type_error(value)) };
        self.state.collisions.see_members(members);
        Ok(Value::array(if self.name == "values" {
            members.iter().map(|(_, value)| value.clone()).collect()
        } else {
            members.iter().map(|(name, _)| Value::String(name.clone())).collect()
        }))
    }

    fn all_numbers<'v>(&self, items: &'v [Value]) -> Result<Vec<&'v Number>, Why> {
        let number = |item: &'v Value| match item {
            Value::Number(number) => Ok(number),
            other => Err(self.type_error(other)),
        };
        items.iter().map(number).collect()
    }

    fn map(&self, expression: &Argument<'_>, items: &Value) -> Answer {
        let Value::Array(items) = items else { return Err(self.type_error(items)) };
        let run = match (expression, self.variant) {
            (Argument::Expression(run), _) => run,
            // TypeScript does not use the reference if the list is empty.
            (Argument::Value(_), Variant::TypeScript(_)) if items.is_empty() => {
                return Ok(Value::array(vec![]));
            }
            (Argument::Value(_), Variant::TypeScript(_)) => return Ok(Value::Undefined),
            (Argument::Value(value), _) => return Err(self.type_error(value)),
        };
        let mapped = items.iter().map(|item| Ok(self.or_null(run(item).map_err(Why::Error)?)));
        mapped.collect::<Result<_, Why>>().map(Value::array)
    }

    /// `value || null` in JavaScript, where 0, "" and false are falsy.
    fn or_null(&self, value: Value) -> Value {
        if !self.variant.is_typescript() || coercion::is_truthy(&value) {
            return value;
        }
        if !value.is_null() {
            self.state.collisions.note(Collision::TakenForMissing);
        }
        Value::Null
    }

    /// Both libraries check the type of only the first argument.
    fn merge(&self, values: &[Value]) -> Answer {
        if let Some(first) = values.first().filter(|first| !matches!(first, Value::Object(_))) {
            return Err(self.type_error(first));
        }
        let mut merged = Vec::new();
        for value in values {
            match (value, self.variant) {
                (Value::Object(members), _) => {
                    self.state.collisions.see_members(members);
                    self.state.budget.spend_items(members.len()).map_err(Why::Error)?;
                    merged.extend(members.iter().cloned());
                }
                (other, Variant::Standard) => return Err(self.type_error(other)),
                (Value::Array(items), _) if items.is_empty() => {}
                (Value::String(text), _) if text.is_empty() => {}
                (Value::Array(_) | Value::String(_), Variant::Python(_)) => {
                    return Err(self.differs("it takes pairs of names and values"));
                }
                (_, Variant::Python(_)) => return Err(self.type_error(value)),
                // `{...value}`
                (Value::Array(items), _) => {
                    let place = |(at, item): (usize, &Value)| (place(at), item.clone());
                    merged.extend(items.iter().enumerate().map(place));
                }
                (Value::String(text), _) => {
                    for (at, unit) in text.units().into_iter().enumerate() {
                        merged.push((place(at), Value::String(Text::from_units(&[unit]))));
                    }
                }
                _ => {}
            }
        }
        Ok(Value::Object(Arc::new(Members::merged(self.variant, merged))))
    }

    fn not_null(&self, values: Vec<Value>) -> Value {
        let found = values.into_iter().find(|value| !value.is_null());
        self.or_null(found.unwrap_or(Value::Null))
    }
}

fn place(at: usize) -> Text {
    at.to_string().as_str().into()
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
