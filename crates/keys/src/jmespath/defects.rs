//! Why a value cannot be a key: a part of it is missing, or distinct records can share it under Powertools.

use std::{cell::Cell, collections::BTreeSet};

use super::value::{Members, Presence};

/// A part that is missing or empty, with its place from the innermost list outwards.
pub(crate) struct Absent {
    pub(crate) presence: Presence,
    place: Vec<String>,
}

impl Absent {
    pub(super) fn at(presence: Presence, label: String) -> Self {
        Self { presence, place: vec![label] }
    }

    pub(super) fn within(mut self, label: String) -> Self {
        self.place.push(label);
        self
    }

    /// Its place, from the outermost list inwards.
    pub(crate) fn place(self) -> String {
        self.place.into_iter().rev().collect::<Vec<_>>().join(", ")
    }
}

/// The parts of an expression that may be missing: by name if the expression names its parts (`{x: a}`), otherwise by
/// index, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Optional {
    pub(crate) names: BTreeSet<String>,
    pub(crate) positions: BTreeSet<usize>,
}

/// How distinct records can get the same key under Powertools. The message never quotes the
/// selected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Collision {
    /// A number that is not distinct from others: a double cannot hold it exactly, or (in
    /// TypeScript) its double has other integers too.
    #[error("it selects a number that the variant cannot distinguish from others")]
    Number,
    /// An object with two members of one name, of which the last counts.
    #[error("it selects from an object that names a member twice")]
    RepeatedMember,
    /// A member named `__proto__`, which TypeScript leaves out.
    #[error("it selects a member `__proto__`, which the variant leaves out")]
    Prototype,
    /// A value that is `undefined` in JavaScript, and is left out or becomes `null`.
    #[error("it selects something undefined, which the variant leaves out")]
    Undefined,
    /// `0`, `false`, or a list or object of such values, which TypeScript treats as missing.
    #[error("it selects only values that the variant treats as missing")]
    TakenForMissing,
    /// Text that is not UTF-8, which TypeScript replaces.
    #[error("it decodes bytes that are not UTF-8, which the variant replaces")]
    Text,
    /// The record belongs to a tenant, which the variant does not add to its keys.
    #[error("the record has a tenant, which the variant leaves out")]
    Tenant,
}

/// The first collision that an evaluation found in the values it used.
#[derive(Default)]
pub(crate) struct Collisions {
    first: Cell<Option<Collision>>,
}

impl Collisions {
    /// The first one, if there was any.
    pub(crate) const fn first(&self) -> Option<Collision> {
        self.first.get()
    }

    /// Records a collision, unless one was recorded before.
    pub(crate) fn note(&self, collision: Collision) {
        if self.first.get().is_none() {
            self.first.set(Some(collision));
        }
    }

    pub(crate) fn see_members(&self, members: &Members) {
        if members.repeated {
            self.note(Collision::RepeatedMember);
        }
    }
}
