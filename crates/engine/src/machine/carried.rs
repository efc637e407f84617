//! Values that the machine hands on without looking into them.

use std::{
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
};

/// An error or an outcome, which the machine only hands on. It has no equality, since
/// users' errors have none; two states of a machine count as equal if what they carry reads the same
/// in `Debug`, which shows kinds, types and counts.
#[derive(Clone)]
pub struct Carried<T>(pub T);

impl<T> Deref for Carried<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Carried<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Debug> PartialEq for Carried<T> {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl<T: fmt::Debug> Eq for Carried<T> {}

impl<T: fmt::Debug> Hash for Carried<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        format!("{self:?}").hash(state);
    }
}

#[cfg(test)]
#[path = "carried_tests.rs"]
mod tests;
