//! JMESPath as `jmespath.py` and `@aws-lambda-powertools/jmespath` evaluate it.
//!
//! Not by the crate that evaluates our own expressions: its values have no order of members, no
//! integers beyond 64 bits and no half surrogates, and the two libraries differ from the
//! specification, and from each other, where it leaves room.

use std::sync::Arc;

use jmespath::ast::{Ast, Comparator, KeyValuePair};

use super::{
    Library, Losses, compare, functions,
    read::read,
    value::{Members, Text, Value},
};
use crate::key::{ExpressionError, SelectionError, syntax};

/// What every JavaScript object has without having been given it; there, a field of that name is a
/// function where it should be missing.
const INHERITED: [&str; 11] = [
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];

/// Finds what would fail for every record: unknown functions, literals that are not JSON.
pub(super) fn check(library: Library, ast: &Ast, text: &str) -> Result<(), ExpressionError> {
    if library == Library::TypeScript && (text == "__proto__" || INHERITED.contains(&text)) {
        let reason = "TypeScript fails for an expression of this name; put it as `@.name`";
        return Err(ExpressionError::at(text, 0, reason.to_owned()));
    }
    let mut open = vec![ast];
    while let Some(ast) = open.pop() {
        let mistake = match ast {
            Ast::Function { offset, name, args } => match functions::arity(name) {
                None => Some((*offset, format!("Powertools has no function `{name}`"))),
                Some((least, most)) if !(least..=most).contains(&args.len()) => Some((
                    *offset,
                    format!("`{name}` takes {least} argument(s), not {}", args.len()),
                )),
                Some(_) => None,
            },
            Ast::Literal { offset, .. } => syntax::literal(text, *offset)
                .and_then(|json| read(library, &json).err())
                .map(|error| (*offset, error.to_string())),
            Ast::Slice { offset, step: 0, .. } => {
                Some((*offset, "the step of a slice cannot be 0".to_owned()))
            }
            _ => None,
        };
        if let Some((offset, reason)) = mistake {
            return Err(ExpressionError::at(text, offset, reason));
        }
        open.extend(syntax::children(ast));
    }
    Ok(())
}

/// One evaluation.
pub(super) struct Evaluation<'e> {
    pub(super) library: Library,
    /// The expression, where its literals are read anew.
    pub(super) text: &'e str,
    pub(super) losses: &'e Losses,
}

/// An argument of a function.
pub(super) enum Argument<'a> {
    Value(Value),
    /// `&expression`.
    Expression(&'a Ast),
}

impl Evaluation<'_> {
    pub(super) fn run(&self, ast: &Ast, value: &Value) -> Result<Value, SelectionError> {
        Ok(match ast {
            Ast::Identity { .. } => value.clone(),
            Ast::Field { name, offset } => self.field(name, value, *offset)?,
            Ast::Subexpr { lhs, rhs, .. } => self.run(rhs, &self.run(lhs, value)?)?,
            Ast::Literal { offset, value, .. } => self.literal(*offset, value),
            Ast::Index { idx, .. } => index(value, *idx),
            Ast::Or { lhs, rhs, .. } => {
                let left = self.run(lhs, value)?;
                if left.is_truthy() { left } else { self.run(rhs, value)? }
            }
            Ast::And { lhs, rhs, .. } => {
                let left = self.run(lhs, value)?;
                if left.is_truthy() { self.run(rhs, value)? } else { left }
            }
            Ast::Not { node, .. } => Value::Bool(!self.run(node, value)?.is_truthy()),
            Ast::Condition { predicate, then, .. } => {
                if self.run(predicate, value)?.is_truthy() {
                    self.run(then, value)?
                } else {
                    Value::Null
                }
            }
            Ast::Comparison { comparator, lhs, rhs, offset } => {
                let (left, right) = (self.run(lhs, value)?, self.run(rhs, value)?);
                self.compare(comparator, &left, &right, *offset)?
            }
            Ast::ObjectValues { node, .. } => match self.run(node, value)? {
                Value::Object(members) => self.values(&members),
                _ => Value::Null,
            },
            Ast::Projection { lhs, rhs, .. } => {
                let Value::Array(items) = self.run(lhs, value)? else { return Ok(Value::Null) };
                let mut collected = Vec::new();
                for item in items.iter() {
                    let current = self.run(rhs, item)?;
                    if !current.is_null() {
                        collected.push(current);
                    }
                }
                Value::array(collected)
            }
            Ast::Flatten { node, .. } => {
                let Value::Array(items) = self.run(node, value)? else { return Ok(Value::Null) };
                let mut flat = Vec::new();
                for item in items.iter() {
                    match item {
                        Value::Array(inner) => flat.extend(inner.iter().cloned()),
                        other => flat.push(other.clone()),
                    }
                }
                Value::array(flat)
            }
            Ast::MultiList { .. } | Ast::MultiHash { .. } if value.is_null() => Value::Null,
            Ast::MultiList { elements, .. } => {
                let parts: Result<_, _> = elements.iter().map(|ast| self.run(ast, value)).collect();
                Value::array(parts?)
            }
            Ast::MultiHash { elements, .. } => self.multi_hash(elements, value)?,
            Ast::Function { name, args, offset } => {
                let mut arguments = Vec::with_capacity(args.len());
                for arg in args {
                    arguments.push(match arg {
                        Ast::Expref { ast, .. } => Argument::Expression(ast),
                        ast => Argument::Value(self.run(ast, value)?),
                    });
                }
                functions::call(self, name, arguments).map_err(|why| evaluation(why, *offset))?
            }
            Ast::Expref { .. } => return Err(SelectionError::NotAValue),
            Ast::Slice { start, stop, step, .. } => match value {
                Value::Array(items) => slice(items, *start, *stop, *step),
                _ => Value::Null,
            },
        })
    }

    fn field(&self, name: &str, value: &Value, offset: usize) -> Result<Value, SelectionError> {
        let Value::Object(members) = value else { return Ok(Value::Null) };
        if self.library == Library::TypeScript && name.is_empty() {
            return Ok(Value::Null);
        }
        self.losses.see_members(members);
        match members.get(name) {
            Some(value) => Ok(value.clone()),
            None if self.library == Library::Python => Ok(Value::Null),
            None if name == "__proto__" => {
                Ok(Value::Object(Arc::new(Members::new(self.library, vec![]))))
            }
            None if INHERITED.contains(&name) => {
                let why =
                    format!("`{name}` is missing, and JavaScript then takes a function for it");
                Err(evaluation(why, offset))
            }
            None => Ok(Value::Null),
        }
    }

    /// A literal with the digits and the order it is written in.
    fn literal(&self, offset: usize, parsed: &jmespath::Variable) -> Value {
        let json = syntax::literal(self.text, offset);
        match (json, parsed) {
            (Some(json), _) => read(self.library, &json).unwrap_or(Value::Null),
            // 'raw'
            (None, parsed) => parsed.as_string().map_or(Value::Null, |text| Value::text(text)),
        }
    }

    fn compare(
        &self,
        comparator: &Comparator,
        left: &Value,
        right: &Value,
        offset: usize,
    ) -> Result<Value, SelectionError> {
        self.losses.see(left);
        self.losses.see(right);
        let holds = match comparator {
            Comparator::Equal => compare::equal(self.library, left, right),
            Comparator::NotEqual => !compare::equal(self.library, left, right),
            ordering => match compare::order(self.library, left, right) {
                Ok(order) => compare::holds(ordering, order),
                Err(compare::Incomparable::Null) => return Ok(Value::Null),
                Err(compare::Incomparable::Undefined) => return Ok(Value::Undefined),
                Err(compare::Incomparable::Raises) => {
                    let why = "Python compares no text with a number".to_owned();
                    return Err(evaluation(why, offset));
                }
            },
        };
        Ok(Value::Bool(holds))
    }

    fn multi_hash(
        &self,
        elements: &[KeyValuePair],
        value: &Value,
    ) -> Result<Value, SelectionError> {
        let mut members = Vec::with_capacity(elements.len());
        for KeyValuePair { key, value: ast } in elements {
            let part = self.run(ast, value)?;
            if self.library == Library::TypeScript && key == "__proto__" {
                self.losses.note(super::Loss::Prototype);
            } else {
                members.push((Text::from(key.as_str()), part));
            }
        }
        Ok(Value::Object(Arc::new(Members::merged(self.library, members))))
    }

    pub(super) fn values(&self, members: &Members) -> Value {
        self.losses.see_members(members);
        Value::array(members.iter().map(|(_, value)| value.clone()).collect())
    }
}

fn evaluation(reason: String, offset: usize) -> SelectionError {
    SelectionError::Evaluation { reason, offset }
}

fn index(value: &Value, idx: i32) -> Value {
    let Value::Array(items) = value else { return Value::Null };
    let place = usize::try_from(idx.unsigned_abs()).ok();
    let place = if idx < 0 { place.and_then(|back| items.len().checked_sub(back)) } else { place };
    place.and_then(|at| items.get(at)).cloned().unwrap_or(Value::Null)
}

/// <https://jmespath.org/specification.html#slices>
fn slice(items: &[Value], start: Option<i32>, stop: Option<i32>, step: i32) -> Value {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let step = i64::from(step);
    let (lowest, highest) = if step < 0 { (-1, length - 1) } else { (0, length) };
    let cap = |bound: Option<i32>, otherwise: i64| match bound.map(i64::from) {
        None => otherwise,
        Some(bound) if bound < 0 => (bound + length).max(lowest),
        Some(bound) => bound.min(highest),
    };
    let (first, last) = if step < 0 { (highest, lowest) } else { (lowest, highest) };
    let (mut at, stop) = (cap(start, first), cap(stop, last));
    let mut taken = Vec::new();
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        taken.extend(usize::try_from(at).ok().and_then(|at| items.get(at)).cloned());
        at += step;
    }
    Value::array(taken)
}
