//! Evaluates an expression on a value.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ptr,
    sync::Arc,
};

use super::{
    Losses, Variant,
    ast::{Comparator, Node},
    compare, functions,
    value::{Members, Text, Value},
};
use crate::{
    Document, DocumentError, SelectionError, document::MOST_BYTES, functions as own, parts, reads,
    texts::Texts,
};

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

const STEP: &str = "the step of a slice cannot be 0";

/// TypeScript's cache of expressions takes them for ones that it has parsed.
pub(crate) fn is_inherited(expression: &str) -> bool {
    expression == "__proto__" || INHERITED.contains(&expression)
}

/// One evaluation.
pub(crate) struct Evaluation<'e> {
    pub(crate) variant: Variant,
    pub(crate) losses: &'e Losses,
    pub(crate) sorted: functions::Sorted,
    /// How many bytes may still be decompressed.
    pub(crate) room: Cell<usize>,
    pub(crate) budget: Budget,
    pub(crate) looks: Option<Looks<'e>>,
    /// The first part found missing of lists that become values, where someone asks.
    pub(crate) absences: Option<Absences<'e>>,
}

/// What the expression looks at in the JSON texts that it reads.
pub(crate) struct Looks<'e> {
    /// By the offset of the call that reads it.
    pub(crate) calls: &'e BTreeMap<usize, reads::Text>,
    /// The texts that several calls share.
    pub(crate) shared: Option<&'e Texts>,
}

impl Looks<'_> {
    /// The value of a JSON text, as far as the expression looks at what the call at `offset` gives.
    pub(crate) fn read(&self, text: &str, offset: usize) -> Result<Value, DocumentError> {
        let Some(call) = self.calls.get(&offset) else {
            return Document::parse(text).map(|document| document.value);
        };
        match self.shared.and_then(|shared| shared.read(text, call)) {
            Some(document) => Ok(document.value.clone()),
            None => Document::reading(text, &call.wanted).map(|document| document.value),
        }
    }
}

/// What an evaluation may still put together: an expression can multiply what a record holds.
pub(crate) struct Budget {
    /// Items and members of lists and objects.
    items: Cell<usize>,
    /// Bytes of texts.
    text: Cell<usize>,
}

/// A document has fewer.
const MOST_ITEMS: usize = MOST_BYTES;
/// A text that is written is at most as long.
const MOST_TEXT: usize = 8 * MOST_BYTES;

impl Default for Budget {
    fn default() -> Self {
        Self::of(MOST_ITEMS)
    }
}

impl Budget {
    pub(crate) const fn of(items: usize) -> Self {
        Self { items: Cell::new(items), text: Cell::new(MOST_TEXT) }
    }

    /// As at the beginning.
    pub(crate) fn renew(&self) {
        self.items.set(MOST_ITEMS);
        self.text.set(MOST_TEXT);
    }

    pub(crate) fn spend_items(&self, count: usize) -> Result<(), SelectionError> {
        Self::spend(&self.items, count)
    }

    pub(crate) fn spend_text(&self, bytes: usize) -> Result<(), SelectionError> {
        Self::spend(&self.text, bytes)
    }

    fn spend(left: &Cell<usize>, amount: usize) -> Result<(), SelectionError> {
        left.set(left.get().checked_sub(amount).ok_or(SelectionError::TooLong)?);
        Ok(())
    }
}

/// Parts that are missing of the lists that an evaluation puts together, wherever their way leads
/// from there.
pub(crate) struct Absences<'e> {
    first: RefCell<Option<SelectionError>>,
    is_deciding: Cell<bool>,
    /// The list whose parts are judged when it has been selected.
    except: Option<&'e Node>,
    /// The list that is being flattened, to be compared with: lists in it may be empty.
    flattened: Cell<*const Node>,
}

impl<'e> Absences<'e> {
    pub(crate) const fn but_of(except: Option<&'e Node>) -> Self {
        Self {
            first: RefCell::new(None),
            is_deciding: Cell::new(false),
            except,
            flattened: Cell::new(ptr::null()),
        }
    }

    pub(crate) fn first(self) -> Option<SelectionError> {
        self.first.into_inner()
    }
}

/// An argument of a function.
pub(crate) enum Argument<'a> {
    Value(Value),
    /// `&expression`.
    Expression(&'a Node),
}

type Evaluated = Result<Value, SelectionError>;

impl Evaluation<'_> {
    pub(crate) fn run(&self, node: &Node, value: &Value) -> Evaluated {
        let selected = self.step(node, value)?;
        match (node, &selected) {
            // They put nothing together, or have been counted.
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
            (_, Value::Array(items)) => self.budget.spend_items(items.len())?,
            (_, Value::Object(members)) => self.budget.spend_items(members.len())?,
            _ => {}
        }
        Ok(self.sorted.now(selected))
    }

    fn step(&self, node: &Node, value: &Value) -> Evaluated {
        Ok(match node {
            Node::Current => value.clone(),
            Node::Field { name, offset } => self.field(name, value, *offset)?,
            Node::Literal(value) => value.clone(),
            Node::Index(index) => at(value, *index),
            Node::Slice { start, stop, step, offset } => match (value, step.unwrap_or(1)) {
                // Python looks at the step only where there is something to slice.
                (Value::Array(_), 0) => return Err(evaluation(STEP.to_owned(), *offset)),
                (_, 0) if self.variant == Variant::TypeScript => {
                    return Err(evaluation(STEP.to_owned(), *offset));
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
                    self.losses.see_members(&members);
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
                if left.is_truthy() { self.run(right, value)? } else { left }
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
                    self.expect(node, part, &item, || (items.len() + 1).to_string());
                    items.push(item);
                }
                Value::array(items)
            }
            Node::Hash(members) => self.hash(node, members, value)?,
            Node::Call { name, arguments, offset } => {
                let given = match *name {
                    "not_null" => self.alternatives(arguments, value)?,
                    _ => arguments
                        .iter()
                        .map(|argument| self.argument(argument, value))
                        .collect::<Result<_, _>>()?,
                };
                functions::call(self, name, *offset, given).map_err(|why| why.at(*offset))?
            }
            Node::Own { name, function, arguments, offset } => {
                let given: Result<Vec<_>, _> =
                    arguments.iter().map(|argument| self.run(argument, value)).collect();
                own::call(function, &given?).map_err(|error| match error {
                    SelectionError::Evaluation { reason, .. } => {
                        evaluation(format!("{name}(): {reason}"), *offset)
                    }
                    error => error,
                })?
            }
            Node::Reference(_) => return Err(SelectionError::NotAValue),
        })
    }

    /// Evaluates what only decides which values are selected, or in which order: parts of lists may
    /// be missing in it.
    pub(crate) fn decide(&self, node: &Node, value: &Value) -> Evaluated {
        let Some(absences) = &self.absences else { return self.run(node, value) };
        let outside = absences.is_deciding.replace(true);
        let decided = self.run(node, value);
        absences.is_deciding.set(outside);
        decided
    }

    fn argument<'a>(
        &self,
        argument: &'a Node,
        value: &Value,
    ) -> Result<Argument<'a>, SelectionError> {
        Ok(match argument {
            Node::Reference(node) => Argument::Expression(node),
            node => Argument::Value(self.run(node, value)?),
        })
    }

    /// The arguments of `not_null`: parts may be missing in those that it passes over, unless it finds
    /// none.
    fn alternatives<'a>(
        &self,
        arguments: &'a [Node],
        value: &Value,
    ) -> Result<Vec<Argument<'a>>, SelectionError> {
        let take = || self.absences.as_ref().and_then(|absences| absences.first.take());
        let before = take();
        let (mut chosen, mut passed_over) = (None, None);
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let argument = self.argument(argument, value)?;
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
            absences.first.replace(before.or(chosen.unwrap_or(passed_over)));
        }
        Ok(given)
    }

    /// Evaluates what is flattened.
    fn flattened(&self, list: &Node, value: &Value) -> Evaluated {
        let Some(absences) = &self.absences else { return self.run(list, value) };
        let outside =
            absences.flattened.replace(parts::list(list).map_or(ptr::null(), ptr::from_ref));
        let flattened = self.run(list, value);
        absences.flattened.set(outside);
        flattened
    }

    /// Notes if a part of a list that becomes a value is missing. A part that does not read the record
    /// is a default: it is as the expression has it.
    fn expect(&self, list: &Node, node: &Node, part: &Value, label: impl Fn() -> String) {
        let Some(absences) = &self.absences else { return };
        let is_elsewhere =
            absences.is_deciding.get() || absences.except.is_some_and(|one| ptr::eq(one, list));
        if is_elsewhere || absences.first.borrow().is_some() {
            return;
        }
        let Some(error) = parts::absence(part, label) else { return };
        let adds_nothing =
            matches!(part, Value::Array(_)) && ptr::eq(absences.flattened.get(), list);
        if !adds_nothing && node.reads_data() {
            *absences.first.borrow_mut() = Some(error);
        }
    }

    /// What is selected of each, as far as it is not `null`.
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
        self.budget.spend_items(count)?;
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

    fn field(&self, name: &Text, value: &Value, offset: usize) -> Evaluated {
        let Value::Object(members) = value else { return Ok(Value::Null) };
        if self.variant == Variant::TypeScript && name.is_empty() {
            return Ok(Value::Null);
        }
        self.losses.see_members(members);
        match members.get(name) {
            Some(value) => Ok(value.clone()),
            None if self.variant != Variant::TypeScript => Ok(Value::Null),
            None if name.is("__proto__") => {
                Ok(Value::Object(Arc::new(Members::new(self.variant, vec![]))))
            }
            None => match INHERITED.iter().find(|inherited| name.is(inherited)) {
                Some(name) => {
                    let why =
                        format!("`{name}` is missing, and JavaScript takes a function for it");
                    Err(evaluation(why, offset))
                }
                None => Ok(Value::Null),
            },
        }
    }

    /// Notes what the library could lose of a value that something depends on.
    pub(crate) fn see(&self, value: &Value) {
        if self.variant != Variant::Standard {
            self.losses.see(value);
        }
    }

    fn compare(
        &self,
        comparator: Comparator,
        left: &Value,
        right: &Value,
        offset: usize,
    ) -> Result<Value, SelectionError> {
        self.see(left);
        self.see(right);
        let holds = match comparator {
            Comparator::Equal => compare::equal(self.variant, left, right),
            Comparator::NotEqual => !compare::equal(self.variant, left, right),
            ordering => match compare::order(self.variant, left, right) {
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

    fn hash(&self, node: &Node, parts: &[(Text, Node)], value: &Value) -> Evaluated {
        let mut members = Vec::with_capacity(parts.len());
        for (name, part) in parts {
            let member = self.run(part, value)?;
            self.expect(node, part, &member, || format!("`{}`", name.shown()));
            if self.variant == Variant::TypeScript && name.is("__proto__") {
                self.losses.note(super::Loss::Prototype);
            } else {
                members.push((name.clone(), member));
            }
        }
        Ok(Value::Object(Arc::new(Members::new(self.variant, members))))
    }
}

fn evaluation(reason: String, offset: usize) -> SelectionError {
    SelectionError::Evaluation { reason, offset }
}

fn at(value: &Value, index: i64) -> Value {
    let Value::Array(items) = value else { return Value::Null };
    let place = usize::try_from(index.unsigned_abs()).ok();
    let place =
        if index < 0 { place.and_then(|back| items.len().checked_sub(back)) } else { place };
    match place.and_then(|at| items.get(at)) {
        Some(Value::Undefined) | None => Value::Null,
        Some(item) => item.clone(),
    }
}

/// <https://jmespath.org/specification.html#slices>
fn slice(items: &[Value], start: Option<i64>, stop: Option<i64>, step: i64) -> Value {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let (lowest, highest) = if step < 0 { (-1, length - 1) } else { (0, length) };
    let cap = |bound: Option<i64>, otherwise: i64| match bound {
        None => otherwise,
        Some(bound) if bound < 0 => (bound + length).max(lowest),
        Some(bound) => bound.min(highest),
    };
    let (first, last) = if step < 0 { (highest, lowest) } else { (lowest, highest) };
    let (mut at, stop) = (cap(start, first), cap(stop, last));
    let mut taken = Vec::new();
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        taken.extend(usize::try_from(at).ok().and_then(|at| items.get(at)).cloned());
        at = at.saturating_add(step);
    }
    Value::array(taken)
}
