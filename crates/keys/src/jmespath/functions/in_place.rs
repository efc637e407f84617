//! `sort` and `reverse`, with which TypeScript changes the list itself, so that every use of the
//! list sees the change.

use std::{cmp::Ordering, sync::Arc};

use super::{
    super::{coercion, sorted::List, value::Value},
    Answer, Call,
};

impl Call<'_> {
    /// `sort` of values that JavaScript compares as numbers. The order of texts depends on the
    /// locale.
    pub(super) fn sort_in_place(&self, items: &List) -> Answer {
        if items.len() > 1 && items.iter().any(|item| matches!(item, Value::String(_))) {
            return Err(self.differs("TypeScript sorts text as the locale has it"));
        }
        // JavaScript puts `undefined` values last, without comparing them.
        let (last, defined): (Vec<&Value>, Vec<&Value>) =
            items.iter().partition(|item| matches!(item, Value::Undefined));
        let mut keyed = Vec::with_capacity(items.len());
        for item in defined {
            match coercion::number(item) {
                Some(number) if items.len() < 2 || !number.is_nan() => keyed.push((number, item)),
                _ if items.len() < 2 => keyed.push((0.0, item)),
                _ => return Err(self.differs("TypeScript sorts values that are not numbers")),
            }
        }
        if last.is_empty() && keyed.is_sorted_by(|a, b| items.len() < 2 || a.0 <= b.0) {
            return Ok(Value::Array(Arc::clone(items)));
        }
        keyed.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
        let sorted = keyed.into_iter().map(|(_, item)| item).chain(last);
        let sorted: List = sorted.cloned().collect();
        self.state.sorted.note(items, &sorted);
        Ok(Value::Array(sorted))
    }

    /// TypeScript evaluates an expression more than once, and each evaluation reverses the list
    /// again. So the result is certain only for a list that has no other use.
    pub(super) fn reverse_in_place(&self, items: &List) -> Answer {
        if Arc::strong_count(items) > 1 {
            return Err(self.differs("TypeScript reverses the list itself, for all who see it"));
        }
        Ok(Value::array(items.iter().rev().cloned().collect()))
    }
}
