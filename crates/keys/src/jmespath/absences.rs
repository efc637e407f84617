//! Finds missing parts of the lists that an expression makes.

use std::{
    cell::{Cell, RefCell},
    ptr,
};

use super::{ast::Node, presence::Presence, value::Value};

/// A part that is not there.
pub(crate) struct Absence {
    pub(crate) presence: Presence,
    /// Its name or position in its list, if it is in a list that the expression names parts of.
    pub(crate) part: Option<String>,
}

/// Records missing parts of the lists that an evaluation makes, wherever the lists are used
/// afterwards.
pub(crate) struct Absences<'e> {
    first: RefCell<Option<Absence>>,
    is_deciding: Cell<bool>,
    /// The list whose parts are checked after it was selected.
    except: Option<&'e Node>,
    /// The list that is being flattened; lists in it may be empty.
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

    pub(crate) fn first(self) -> Option<Absence> {
        self.first.into_inner()
    }

    /// Runs a step that only decides which values are selected, or in which order. Lists in it may
    /// have missing parts.
    pub(super) fn deciding<T>(&self, run: impl FnOnce() -> T) -> T {
        let outside = self.is_deciding.replace(true);
        let decided = run();
        self.is_deciding.set(outside);
        decided
    }

    /// Runs a step whose result is flattened.
    pub(super) fn flattening<T>(&self, list: &Node, run: impl FnOnce() -> T) -> T {
        let flattened = list.listed().map_or(ptr::null(), ptr::from_ref);
        let outside = self.flattened.replace(flattened);
        let result = run();
        self.flattened.set(outside);
        result
    }

    /// Takes out the error found so far; the caller may put it back.
    pub(super) fn take(&self) -> Option<Absence> {
        self.first.take()
    }

    pub(super) fn put(&self, first: Option<Absence>) {
        self.first.replace(first);
    }

    /// Records that a part of a list is missing, if the list becomes a value. A part that does not
    /// read the record is a constant, and may be `null` or empty.
    pub(super) fn expect(
        &self,
        list: &Node,
        node: &Node,
        part: &Value,
        label: impl Fn() -> String,
    ) {
        let is_elsewhere =
            self.is_deciding.get() || self.except.is_some_and(|one| ptr::eq(one, list));
        if is_elsewhere || self.first.borrow().is_some() {
            return;
        }
        let presence = Presence::of(part);
        let adds_nothing = matches!(part, Value::Array(_)) && ptr::eq(self.flattened.get(), list);
        if !presence.is_present() && !adds_nothing && node.reads_data() {
            *self.first.borrow_mut() = Some(Absence { presence, part: Some(label()) });
        }
    }

    /// Records that an item of a list has no value, if the list becomes a value.
    pub(super) fn expect_item(&self, item: &Value) {
        let mut first = self.first.borrow_mut();
        if item.is_null() && !self.is_deciding.get() && first.is_none() {
            *first = Some(Absence { presence: Presence::Missing, part: None });
        }
    }

    /// Whether values that are computed now become part of the selected value.
    pub(super) fn is_selecting(&self) -> bool {
        !self.is_deciding.get()
    }
}
