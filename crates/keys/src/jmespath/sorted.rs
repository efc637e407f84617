//! The lists that TypeScript sorts in address, so that every later use sees them sorted.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use super::value::Value;

pub(super) type List = Arc<[Value]>;

/// The lists that an evaluation has sorted, by address, with their sorted form.
#[derive(Default)]
pub(crate) struct Sorted(RefCell<HashMap<usize, (List, List)>>);

fn address(list: &List) -> usize {
    list.as_ptr().addr()
}

impl Sorted {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// The value with all lists that were sorted since.
    pub(crate) fn now(&self, value: Value) -> Value {
        if self.is_empty() {
            return value;
        }
        value.replacing(&|list| self.0.borrow().get(&address(list)).map(|(_, now)| Arc::clone(now)))
    }

    /// Keeps the old list alive, so that its address is not reused.
    pub(super) fn note(&self, old: &List, now: &List) {
        self.0.borrow_mut().insert(address(old), (Arc::clone(old), Arc::clone(now)));
    }
}
