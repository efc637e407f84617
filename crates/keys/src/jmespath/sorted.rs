//! The lists that TypeScript has sorted in place, so that all who see them see them sorted.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use super::value::Value;

pub(super) type List = Arc<[Value]>;

/// The lists that an evaluation has sorted, by where they are, and what they are since.
#[derive(Default)]
pub(crate) struct Sorted(RefCell<HashMap<usize, (List, List)>>);

fn place(list: &List) -> usize {
    list.as_ptr().addr()
}

impl Sorted {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// The value as it is by now.
    pub(crate) fn now(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        value.replacing(&|list| self.0.borrow().get(&place(list)).map(|(_, now)| Arc::clone(now)))
    }

    /// Keeps the old list, so that no other comes to its place.
    pub(super) fn note(&self, old: &List, now: &List) {
        self.0.borrow_mut().insert(place(old), (Arc::clone(old), Arc::clone(now)));
    }
}
