//! Evaluates an expression on a value.

use std::{cell::Cell, collections::BTreeMap, ptr, sync::Arc};

use super::{
    ast::{Node, Wanted},
    value::{
        Absent, Collision, Collisions, MOST_BYTES, Members, Optional, Presence, Text, Value,
        Variant,
    },
};

/// The most items that an evaluation may make, because an expression can multiply the data of a record. A document has
/// fewer.
const MOST_ITEMS: usize = MOST_BYTES;

/// Why an expression has no value for a document. The message never quotes a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EvaluationError {
    /// A text cannot be decoded, or it is not a text.
    Failed {
        /// The failure, with types but without values.
        reason: String,
        /// The position in the expression, in characters.
        offset: usize,
    },
    /// More items than an evaluation may make.
    TooLong,
}

type Evaluated = Result<Value, EvaluationError>;

/// One evaluation.
pub(crate) struct Evaluation<'e> {
    variant: Variant,
    /// How distinct documents could have the same value, in the variants of Powertools.
    collisions: Collisions,
    /// The first missing part of a list that becomes a value.
    absent: Cell<Option<Absent>>,
    /// The list with optional parts.
    pub(crate) optional: Option<(&'e Node, &'e Optional)>,
    /// The fields that the expression reads of nested JSON, by the offset of the call that parses it. Other nested JSON
    /// is parsed completely.
    pub(crate) texts: Option<&'e BTreeMap<usize, Wanted>>,
    /// How many bytes may still be decompressed.
    room: Cell<usize>,
    /// How many items may still be made.
    items: Cell<usize>,
}

impl Evaluation<'_> {
    pub(crate) fn new(variant: Variant) -> Self {
        Self {
            variant,
            collisions: Collisions::default(),
            absent: Cell::new(None),
            optional: None,
            texts: None,
            room: Cell::new(MOST_BYTES),
            items: Cell::new(MOST_ITEMS),
        }
    }

    /// The first missing part that was found, and how distinct documents could have the same value.
    pub(crate) fn found(self) -> (Option<Absent>, Collisions) {
        (self.absent.into_inner(), self.collisions)
    }

    pub(crate) fn run(&self, node: &Node, value: &Value) -> Evaluated {
        Ok(match node {
            Node::Current => value.clone(),
            Node::Field(name) => self.field(name, value),
            Node::Index(index) => item(value, *index),
            Node::Then(first, second) => self.run(second, &self.run(first, value)?)?,
            Node::Each(list, each) => match self.run(list, value)? {
                Value::Array(items) => self.each(&items, each)?,
                _ => Value::Null,
            },
            Node::List(_) | Node::Hash(_) if value.is_null() => Value::Null,
            Node::List(parts) => {
                self.spend(parts.len())?;
                let part = |(at, part): (usize, &Node)| {
                    let is_optional =
                        || self.optional_of(node).is_some_and(|it| it.positions.contains(&at));
                    let is_accepted = |part: &Value| is_present(part) || is_optional();
                    self.part(part, value, is_accepted, || (at + 1).to_string())
                };
                let items: Result<_, _> = parts.iter().enumerate().map(part).collect();
                Value::array(items?)
            }
            Node::Hash(parts) => {
                self.spend(parts.len())?;
                let part = |(name, part): &(Text, Node)| {
                    let is_optional = || {
                        self.optional_of(node).is_some_and(|it| it.names.contains(&name.shown()))
                    };
                    let is_accepted = |part: &Value| is_present(part) || is_optional();
                    let label = || format!("`{}`", name.shown());
                    Ok((name.clone(), self.part(part, value, is_accepted, label)?))
                };
                let members: Result<_, _> = parts.iter().map(part).collect();
                Value::Object(Arc::new(Members::new(self.variant, members?)))
            }
            Node::NotNull(arguments) => self.not_null(arguments, value)?,
            Node::Decode { encoding, text, offset } => {
                let decoded = match self.run(text, value)? {
                    Value::String(text) => {
                        let wanted = self.texts.and_then(|texts| texts.get(offset));
                        let limits = (&self.room, &self.collisions);
                        encoding
                            .decode(self.variant, &text, wanted.unwrap_or(&Wanted::All), limits)
                            .map_err(|why| format!(": {why}"))
                    }
                    other => {
                        Err(format!(" takes a string, and this is of type {}", other.type_name()))
                    }
                };
                decoded.map_err(|why| {
                    let name = encoding.function(self.variant).unwrap_or_default();
                    EvaluationError::Failed { reason: format!("{name}(){why}"), offset: *offset }
                })?
            }
        })
    }

    fn spend(&self, items: usize) -> Result<(), EvaluationError> {
        let left = self.items.get().checked_sub(items).ok_or(EvaluationError::TooLong)?;
        self.items.set(left);
        Ok(())
    }

    fn optional_of(&self, node: &Node) -> Option<&Optional> {
        self.optional.and_then(|(list, optional)| ptr::eq(list, node).then_some(optional))
    }

    /// The member of this name, or null.
    fn field(&self, name: &Text, value: &Value) -> Value {
        let Value::Object(members) = value else { return Value::Null };
        self.collisions.see_members(members);
        members.get(name).cloned().unwrap_or(Value::Null)
    }

    /// Evaluates a part of a list. It is a missing part unless `is_accepted` says otherwise.
    fn part(
        &self,
        node: &Node,
        value: &Value,
        is_accepted: impl FnOnce(&Value) -> bool,
        label: impl FnOnce() -> String,
    ) -> Evaluated {
        let before = self.absent.take();
        let part = self.run(node, value)?;
        let found = match self.absent.take() {
            Some(within) => Some(within.within(label())),
            None if is_accepted(&part) => None,
            None => Some(Absent::at(Presence::of(&part), label())),
        };
        self.absent.set(before.or(found));
        Ok(part)
    }

    /// Applies `each` to every item and drops `null` results, as JMESPath does. A dropped item is a missing part: without
    /// it, lists of different items would be equal.
    fn each(&self, items: &[Value], each: &Node) -> Evaluated {
        self.spend(items.len())?;
        let mut collected = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let is_kept = |selected: &Value| !selected.is_null();
            let selected = self.part(each, item, is_kept, || (at + 1).to_string())?;
            if is_kept(&selected) {
                collected.push(selected);
            }
        }
        Ok(Value::array(collected))
    }

    /// Evaluates all arguments, as JMESPath does. Arguments that are passed over may have missing parts, unless all are
    /// passed over.
    fn not_null(&self, arguments: &[Node], value: &Value) -> Evaluated {
        let before = self.absent.take();
        let (mut chosen, mut passed_over) = (None, None);
        for argument in arguments {
            let argument = self.run(argument, value)?;
            let absent = self.absent.take();
            if chosen.is_none() && argument.is_null() {
                passed_over = passed_over.or(absent);
            } else if chosen.is_none() {
                chosen = Some((argument, absent));
            }
        }
        let (value, absent) = chosen.unwrap_or((Value::Null, passed_over));
        self.absent.set(before.or(absent));
        // `value || null` in JavaScript, where 0, "" and false are falsy.
        if self.variant.is_typescript() && !value.is_truthy_to_javascript() && !value.is_null() {
            self.collisions.note(Collision::TakenForMissing);
            return Ok(Value::Null);
        }
        Ok(value)
    }
}

fn is_present(value: &Value) -> bool {
    Presence::of(value) == Presence::Present
}

/// The item at an index; from the end, if that is negative.
fn item(value: &Value, index: i64) -> Value {
    let Value::Array(items) = value else { return Value::Null };
    let position = usize::try_from(index.unsigned_abs()).ok();
    let position =
        if index < 0 { position.and_then(|back| items.len().checked_sub(back)) } else { position };
    match position.and_then(|at| items.get(at)) {
        Some(Value::Undefined) | None => Value::Null,
        Some(item) => item.clone(),
    }
}
