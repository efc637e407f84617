//! Evaluates an expression on a value.

use std::sync::Arc;

use super::{
    absences::Absences,
    ast::{Comparator, Node},
    compare,
    error::EvaluationError,
    fields::{self, failed},
    functions::{self, Argument, Evaluated},
    lists::{at, slice},
    presence::Presence,
    state::State,
    text::Text,
    value::{Members, Value},
};

const STEP: &str = "the step of a slice cannot be 0";

/// One evaluation.
pub(crate) struct Evaluation<'e> {
    pub(crate) state: State<'e>,
    /// Records the first missing part of a list that becomes a value, if the caller needs it.
    pub(crate) absences: Option<Absences<'e>>,
}

impl Evaluation<'_> {
    pub(crate) fn run(&self, node: &Node, value: &Value) -> Evaluated {
        let selected = self.step(node, value)?;
        match (node, &selected) {
            // These make no new lists or objects, or have counted them already.
            (
                Node::Current
                | Node::Field { .. }
                | Node::Literal(_)
                | Node::Index(_)
                | Node::Indexed(_)
                | Node::Then(..)
                | Node::Or(..)
                | Node::And(..)
                | Node::Flatten { .. },
                _,
            ) => {}
            (_, Value::Array(items)) => self.state.budget.spend_items(items.len())?,
            (_, Value::Object(members)) => self.state.budget.spend_items(members.len())?,
            _ => {}
        }
        Ok(self.state.sorted.now(selected))
    }

    fn step(&self, node: &Node, value: &Value) -> Evaluated {
        Ok(match node {
            Node::Current => value.clone(),
            Node::Field { name, offset } => fields::field(&self.state, name, value, *offset)?,
            Node::Literal(value) => value.clone(),
            Node::Index(index) => at(value, *index),
            Node::Slice { start, stop, step, offset } => match (value, step.unwrap_or(1)) {
                // Python checks the step only if there is a list to slice.
                (Value::Array(_), 0) => return Err(failed(STEP.to_owned(), *offset)),
                (_, 0) if self.state.variant.is_typescript() => {
                    return Err(failed(STEP.to_owned(), *offset));
                }
                (Value::Array(items), step) => slice(items, *start, *stop, step),
                _ => Value::Null,
            },
            Node::Indexed(nodes) => {
                nodes.iter().try_fold(value.clone(), |value, node| self.run(node, &value))?
            }
            Node::Then(first, second) => self.run(second, &self.run(first, value)?)?,
            Node::Each(list, each) => match self.run(list, value)? {
                Value::Array(items) => self.each(items.iter(), each)?,
                _ => Value::Null,
            },
            Node::Values { object, each, .. } => match self.run(object, value)? {
                Value::Object(members) => {
                    self.state.collisions.see_members(&members);
                    self.each(members.iter().map(|(_, value)| value), each)?
                }
                _ => Value::Null,
            },
            Node::Filter { list, keep, each } => match self.run(list, value)? {
                Value::Array(items) => self.filter(&items, keep, each)?,
                _ => Value::Null,
            },
            Node::Flatten { list, .. } => match self.flattened(list, value)? {
                Value::Array(items) => self.flatten(&items)?,
                _ => Value::Null,
            },
            Node::Or(left, right) => {
                let left = self.run(left, value)?;
                if left.is_truthy() { left } else { self.run(right, value)? }
            }
            Node::And(left, right) => {
                let left = self.decide(left, value)?;
                if left.is_truthy() {
                    self.run(right, value)?
                } else if self.is_selecting() && !right.is_condition() {
                    // A condition that does not hold selects nothing: `false` would be the value of
                    // all these records.
                    Value::Null
                } else {
                    left
                }
            }
            Node::Not(node) => Value::Bool(!self.decide(node, value)?.is_truthy()),
            Node::Compare { by, left, right, offset } => {
                let (left, right) = (self.decide(left, value)?, self.decide(right, value)?);
                self.compare(*by, &left, &right, *offset)?
            }
            Node::List(_) | Node::Hash(_) if value.is_null() => Value::Null,
            Node::List(parts) => {
                let mut items = Vec::with_capacity(parts.len());
                for part in parts {
                    let item = self.run(part, value)?;
                    if let Some(absences) = &self.absences {
                        absences.expect(node, part, &item, || (items.len() + 1).to_string());
                    }
                    items.push(item);
                }
                Value::array(items)
            }
            Node::Hash(members) => self.hash(node, members, value)?,
            Node::Call { name, arguments, offset } => {
                let given: Vec<_> = match *name {
                    "not_null" => self.alternatives(arguments, value)?,
                    _ => arguments
                        .iter()
                        .map(|argument| self.argument(name, argument, value))
                        .collect::<Result<_, _>>()?,
                };
                if let ("to_array" | "to_string", [Argument::Value(absent)]) = (*name, &*given)
                    && self.is_selecting()
                    && !Presence::of(absent).is_present()
                {
                    // It stays absent: `"null"` would be the value of all records without the field.
                    return Ok(absent.clone());
                }
                functions::call(&self.state, name, *offset, given).map_err(|why| why.at(*offset))?
            }
            Node::Own { name, function, arguments, offset } => {
                let given: Result<Vec<_>, _> =
                    arguments.iter().map(|argument| self.run(argument, value)).collect();
                (function.call)(&given?).map_err(|error| match error {
                    EvaluationError::Failed { reason, .. } => {
                        failed(format!("{name}(): {reason}"), *offset)
                    }
                    error => error,
                })?
            }
            Node::Reference(_) => return Err(EvaluationError::NotAValue),
        })
    }

    /// Evaluates a node that only decides which values are selected, or in which order. Lists in it
    /// may have missing parts.
    pub(crate) fn decide(&self, node: &Node, value: &Value) -> Evaluated {
        match &self.absences {
            Some(absences) => absences.deciding(|| self.run(node, value)),
            None => self.run(node, value),
        }
    }

    /// Whether a missing value is refused, and what is evaluated now becomes part of the value.
    fn is_selecting(&self) -> bool {
        self.absences.as_ref().is_some_and(Absences::is_selecting)
    }

    fn argument<'a>(
        &'a self,
        function: &str,
        argument: &'a Node,
        value: &Value,
    ) -> Result<Argument<'a>, EvaluationError> {
        Ok(match argument {
            // In all functions except `map`, the reference only decides an order.
            Node::Reference(node) if function == "map" => Argument::Expression(Box::new(|item| {
                let mapped = self.run(node, item)?;
                if let Some(absences) = self.absences.as_ref().filter(|_| !item.is_null()) {
                    absences.expect_item(&mapped);
                }
                Ok(mapped)
            })),
            Node::Reference(node) => Argument::Expression(Box::new(|item| self.decide(node, item))),
            node => Argument::Value(self.run(node, value)?),
        })
    }

    /// Evaluates the arguments of `not_null`. Arguments that are passed over may have missing
    /// parts, unless all are passed over.
    fn alternatives<'a>(
        &'a self,
        arguments: &'a [Node],
        value: &Value,
    ) -> Result<Vec<Argument<'a>>, EvaluationError> {
        let take = || self.absences.as_ref().and_then(Absences::take);
        let before = take();
        let (mut chosen, mut passed_over) = (None, None);
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let argument = self.argument("not_null", argument, value)?;
            let absent = take();
            let is_null = matches!(&argument, Argument::Value(value) if value.is_null());
            if chosen.is_none() && is_null {
                passed_over = passed_over.or(absent);
            } else if chosen.is_none() {
                chosen = Some(absent);
            }
            given.push(argument);
        }
        if let Some(absences) = &self.absences {
            absences.put(before.or(chosen.unwrap_or(passed_over)));
        }
        Ok(given)
    }

    /// Evaluates a list that is flattened.
    fn flattened(&self, list: &Node, value: &Value) -> Evaluated {
        match &self.absences {
            Some(absences) => absences.flattening(list, || self.run(list, value)),
            None => self.run(list, value),
        }
    }

    /// Applies `each` to every item and drops `null` results.
    fn each<'v>(&self, items: impl Iterator<Item = &'v Value>, each: &Node) -> Evaluated {
        let mut collected = Vec::new();
        for item in items {
            let selected = self.run(each, item)?;
            if !selected.is_null() {
                collected.push(selected);
            }
        }
        Ok(Value::array(collected))
    }

    fn flatten(&self, items: &[Value]) -> Evaluated {
        let length = |item: &Value| if let Value::Array(inner) = item { inner.len() } else { 1 };
        let count = items.iter().map(length).sum();
        self.state.budget.spend_items(count)?;
        let mut flat = Vec::with_capacity(count);
        for item in items {
            match item {
                Value::Array(inner) => flat.extend(inner.iter().cloned()),
                other => flat.push(other.clone()),
            }
        }
        Ok(Value::array(flat))
    }

    fn filter(&self, items: &[Value], keep: &Node, each: &Node) -> Evaluated {
        let mut kept = Vec::new();
        for item in items {
            if self.decide(keep, item)?.is_truthy() {
                kept.push(item);
            }
        }
        self.each(kept.into_iter(), each)
    }

    fn compare(
        &self,
        comparator: Comparator,
        left: &Value,
        right: &Value,
        offset: usize,
    ) -> Result<Value, EvaluationError> {
        self.state.see(left);
        self.state.see(right);
        let holds = match comparator {
            Comparator::Equal => compare::equal(self.state.variant, left, right),
            Comparator::NotEqual => !compare::equal(self.state.variant, left, right),
            ordering => match compare::order(self.state.variant, left, right) {
                Ok(order) => compare::holds(ordering, order),
                Err(compare::Incomparable::Null) => return Ok(Value::Null),
                Err(compare::Incomparable::Undefined) => return Ok(Value::Undefined),
                Err(compare::Incomparable::Raises) => {
                    let why = "Python compares no text with a number".to_owned();
                    return Err(failed(why, offset));
                }
            },
        };
        Ok(Value::Bool(holds))
    }

    fn hash(&self, node: &Node, parts: &[(Text, Node)], value: &Value) -> Evaluated {
        let mut members = Vec::with_capacity(parts.len());
        for (name, part) in parts {
            let member = self.run(part, value)?;
            if let Some(absences) = &self.absences {
                absences.expect(node, part, &member, || format!("`{}`", name.shown()));
            }
            if self.state.variant.is_typescript() && name.is("__proto__") {
                self.state.collisions.note(super::Collision::Prototype);
            } else {
                members.push((name.clone(), member));
            }
        }
        Ok(Value::Object(Arc::new(Members::new(self.state.variant, members))))
    }
}
