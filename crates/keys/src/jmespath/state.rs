//! The state of one evaluation, shared by the evaluator and the functions.

use std::{cell::Cell, collections::BTreeMap};

use super::{
    Collisions, Variant, error::EvaluationError, limits::MOST_BYTES, sorted::Sorted, value::Value,
    wanted::Wanted,
};

/// The state of one evaluation.
pub(crate) struct State<'e> {
    pub(crate) variant: Variant,
    pub(crate) collisions: &'e Collisions,
    pub(crate) sorted: Sorted,
    /// How many bytes may still be decompressed.
    pub(crate) room: Cell<usize>,
    pub(crate) budget: Budget,
    /// The fields that the expression reads of nested JSON, by the offset of the call that parses
    /// it. Other nested JSON is parsed completely.
    pub(super) texts: Option<&'e BTreeMap<usize, Wanted>>,
}

impl<'e> State<'e> {
    pub(crate) fn new(variant: Variant, collisions: &'e Collisions) -> Self {
        Self {
            variant,
            collisions,
            sorted: Sorted::default(),
            room: Cell::new(MOST_BYTES),
            budget: Budget::default(),
            texts: None,
        }
    }

    /// Parses only these fields of nested JSON.
    pub(crate) fn with_texts(self, texts: &'e BTreeMap<usize, Wanted>) -> Self {
        Self { texts: Some(texts), ..self }
    }

    /// With another budget.
    pub(crate) fn with_budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// Records the collisions of a value that affects the result.
    pub(crate) fn see(&self, value: &Value) {
        if self.variant != Variant::Standard {
            self.collisions.see(value);
        }
    }
}

/// Limits the items and text that an evaluation may make, because an expression can multiply the
/// data of a record.
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

    /// Restores the full budget.
    pub(crate) fn renew(&self) {
        self.items.set(MOST_ITEMS);
        self.text.set(MOST_TEXT);
    }

    pub(crate) fn spend_items(&self, count: usize) -> Result<(), EvaluationError> {
        Self::spend(&self.items, count)
    }

    pub(crate) fn spend_text(&self, bytes: usize) -> Result<(), EvaluationError> {
        Self::spend(&self.text, bytes)
    }

    fn spend(left: &Cell<usize>, amount: usize) -> Result<(), EvaluationError> {
        left.set(left.get().checked_sub(amount).ok_or(EvaluationError::TooLong)?);
        Ok(())
    }
}
